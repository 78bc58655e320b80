// The sets of deploy/ as Compose reads them: with what a service extends, and the image of cadre around its variables.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseDocument } from 'yaml'

const DEPLOY = join(import.meta.dir, '../../deploy')

interface Dependency {
  condition: string
}

export interface Service {
  image: string
  command?: string[]
  restart?: string
  /** Null is a variable of whoever calls Compose. */
  environment?: Record<string, string | null>
  depends_on?: Record<string, Dependency>
  ports?: string[]
  volumes?: string[]
  healthcheck?: { test: string[]; interval: string }
  stop_grace_period?: string
  extends?: { file: string; service: string }
}

interface Compose {
  services: Record<string, Service>
  volumes?: Record<string, null>
}

export const deployText = (file: string): string => readFileSync(join(DEPLOY, file), 'utf8')

function composeOf(file: string): Compose {
  const document = parseDocument(deployText(file), { merge: true })
  const faults = [...document.errors, ...document.warnings]
  if (faults.length > 0) throw new Error(`${file}: ${faults.map(({ message }) => message).join('\n')}`)
  return document.toJS() as Compose
}

/** The services of a set by their names. Only mappings of a service that extends another are merged; nothing else needs it. */
export function servicesOf(file: string): Record<string, Service> {
  const services = Object.entries(composeOf(file).services).map(([name, own]): [string, Service] => {
    if (!own.extends) return [name, own]
    const base = composeOf(own.extends.file).services[own.extends.service]!
    return [name, { ...base, ...own, environment: { ...base.environment, ...own.environment } }]
  })
  return Object.fromEntries(services)
}

/** The names of the volumes that a set declares. */
export const volumesOf = (file: string): string[] => Object.keys(composeOf(file).volumes ?? {})

/** The variables that the image of cadre sets. */
export function imageVariables(): string[] {
  const [, lines] = /^ENV ((?:.*\\\n)*.*)$/m.exec(deployText('Containerfile'))!
  return Array.from(lines!.matchAll(/(\w+)=/g), ([, name]) => name!)
}
