// Values that stand elsewhere: `${env:NAME}`, `${file:/path}`, `${keychain:NAME}` as the whole value of a setting.

import { readFile } from 'node:fs/promises'
import { messageOf } from '../error.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'

const REFERENCE = /^\$\{(env|file|keychain):([^{}]+)\}$/

export interface Sources {
  env: Record<string, string | undefined>
  keychain(name: string): Promise<string | null>
}

export interface Resolved {
  /** As the settings, with references replaced; what could not be is left out. */
  value: JsonObject
  /** Dotted key → why it could not be resolved. */
  failures: Map<string, string>
}

export function isReference(value: string): boolean {
  return REFERENCE.test(value)
}

export async function resolveReferences(settings: JsonObject, sources: Sources): Promise<Resolved> {
  const failures = new Map<string, string>()
  const walk = async (value: Json, key: string): Promise<Json | undefined> => {
    if (Array.isArray(value)) {
      const items = await Promise.all(value.map(item => walk(item, key)))
      return items.filter(item => item !== undefined)
    }
    if (isObject(value)) {
      const entries = Object.entries(value).map(
        async ([name, item]) => [name, await walk(item, key ? `${key}.${name}` : name)] as const,
      )
      return Object.fromEntries((await Promise.all(entries)).filter(entry => entry[1] !== undefined)) as JsonObject
    }
    const [, source, name] = (typeof value === 'string' && REFERENCE.exec(value)) || []
    if (!source || !name) return value
    try {
      return await lookUp(source, name, sources)
    } catch (error) {
      failures.set(key, messageOf(error))
      return undefined
    }
  }
  return { value: (await walk(settings, '')) as JsonObject, failures }
}

async function lookUp(source: string, name: string, { env, keychain }: Sources): Promise<string> {
  if (source === 'env') {
    const value = env[name]
    if (!value) throw new Error(`the environment variable ${name} is not set for the daemon`)
    return value
  }
  if (source === 'file') {
    const value = (await readFile(name, 'utf8')).replace(/\r?\n$/, '')
    if (!value) throw new Error(`the file ${name} is empty`)
    return value
  }
  const value = await keychain(name)
  if (!value) throw new Error(`the keychain has no entry ${name} of the service cadre`)
  return value
}
