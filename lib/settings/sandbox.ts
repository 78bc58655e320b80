// The owner's choice in settings.yml where commands run: `exec.sandbox`, `exec.image`, `exec.sandbox_network` and
// `packages.sandbox`. A choice that cannot be read never counts as a choice of no sandbox. Pure.

import { isObject, type Json, type JsonObject } from '../json.ts'
import { listed } from '../text/spelling.ts'
import { fits, teamsProblem } from './named.ts'

const KINDS = ['none', 'bubblewrap', 'container'] as const
export type SandboxKind = (typeof KINDS)[number]

/** The choice of the owner; null where there is none. */
interface Choice {
  kind: SandboxKind | null
  /** Why the choice cannot be read. No command that it concerns may run then. */
  problem: string | null
}

export interface SandboxChoices {
  /** For all commands. */
  exec: Choice
  /** For those of packages. */
  packages: Choice
  image: string | null
  /** Names and patterns of the teams that may have the network. */
  network: readonly string[]
}

/** An image begins with a letter or digit, so that podman does not take it for an option. */
const IMAGE = /^[A-Za-z0-9][\w.:/@-]*$/

/** The problem with the value of a setting of sandboxes; null for a valid value and for any other setting. */
export function sandboxProblem(key: string, value: Json): string | null {
  switch (key) {
    case 'exec.sandbox':
    case 'packages.sandbox':
      return KINDS.some(kind => kind === value) ? null : `must be one of ${KINDS.join(', ')}`
    case 'exec.image':
      if (typeof value === 'string' && IMAGE.test(value)) return null
      return 'must be the name of a container image, such as docker.io/library/debian:stable'
    case 'exec.sandbox_network':
      return teamsProblem(value) && 'must be a list of team names, such as ["@acme/*"]'
    default:
      return null
  }
}

/** `raw` has unresolved references, because a choice that depends on the environment could be lost with it. */
export function sandboxChoices(raw: JsonObject): SandboxChoices {
  const exec = sectionOf(raw, 'exec', ['sandbox', 'image', 'sandbox_network'])
  const packages = sectionOf(raw, 'packages', ['trust', 'sandbox'])
  const sound = exec.problem === null
  return {
    exec: { kind: kindOf(exec.values.sandbox), problem: exec.problem },
    packages: { kind: kindOf(packages.values.sandbox), problem: exec.problem ?? packages.problem },
    image: sound ? ((exec.values.image as string | undefined) ?? null) : null,
    network: sound ? ((exec.values.sandbox_network as string[] | undefined) ?? []) : [],
  }
}

/** Whether the owner lets the team have the network. */
export const mayHaveNetwork = ({ network }: Pick<SandboxChoices, 'network'>, team: string): boolean =>
  network.some(pattern => fits(pattern, team))

const kindOf = (value: Json | undefined): SandboxKind | null => KINDS.find(kind => kind === value) ?? null

/** The values of a section that are set, and why it cannot be read. A misspelt name may be a choice, too. */
function sectionOf(raw: JsonObject, name: string, known: readonly string[]) {
  const section = raw[name] ?? {}
  if (!isObject(section)) return { values: {}, problem: `${name} in settings.yml must be a mapping` }
  const entries = Object.entries(section as JsonObject).filter(([, value]) => value !== null)
  const problems = entries.flatMap(([key, value]) => {
    const problem = known.includes(key)
      ? sandboxProblem(`${name}.${key}`, value)
      : `is no setting: there are ${listed([...known])}`
    return problem === null ? [] : [`${name}.${key} in settings.yml ${problem}`]
  })
  return { values: Object.fromEntries(entries) as JsonObject, problem: problems[0] ?? null }
}
