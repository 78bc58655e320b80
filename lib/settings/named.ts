// Named secrets, `secrets.<name>` in settings.yml: a value, or `{value, teams}` if packages may read it too. A team
// that was started from a path may read all secrets, a package only those whose `teams` match its name. Pure.

import { isObject, type Json, type JsonObject } from '../json.ts'
import { commandLine } from '../program/called-as.ts'
import { inEnvironment, valueAt } from './tree.ts'

/** What determines which secrets a team may read. */
export interface SecretReader {
  /** `@scope/name`. */
  name: string
  /** Whether the team was started from a folder on this machine. Otherwise it is a package. */
  fromPath: boolean
}

export const SECRET_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,99}$/
const TEAMS = /^(@[a-z0-9*-]+\/[a-z0-9*-]+|\*)$/

const isScalar = (value: Json | undefined): value is string | number | boolean =>
  value !== '' && ['string', 'number', 'boolean'].includes(typeof value)

/** The text of a named secret; null when there is none. */
export function secretText(settings: JsonObject, name: string): string | null {
  const entry = valueAt(settings, ['secrets', name])
  const value = isObject(entry) ? valueAt(entry as JsonObject, ['value']) : entry
  return isScalar(value) ? String(value) : null
}

/** The problem with an entry of `secrets`; null if there is none. */
export function entryProblem(entry: Json): string | null {
  if (isScalar(entry)) return null
  if (!isObject(entry)) return 'must be a text, or a mapping with `value` and `teams`'
  const { value, teams, ...others } = entry as JsonObject
  const [other] = Object.keys(others)
  if (other !== undefined) return `must contain only \`value\` and \`teams\`, not \`${other}\``
  if (value !== undefined && !isScalar(value)) return 'must have a text as its `value`'
  return teams === undefined ? null : teamsProblem(teams)
}

export function teamsProblem(teams: Json): string | null {
  const isList = Array.isArray(teams) && teams.every(each => typeof each === 'string' && TEAMS.test(each))
  return isList ? null : 'must have a list of team names as its `teams`, such as ["@acme/*"]'
}

/**
 * Why `team` cannot read the secret, and what to do about it; null when it can. `raw` has unresolved references. `key` is
 * where the secret stands, or would stand, in settings.yml.
 */
export function whyNoSecret(
  raw: JsonObject,
  name: string,
  { name: team, fromPath }: SecretReader,
  key: string,
): string | null {
  const entry = valueAt(raw, ['secrets', name])
  const command = commandLine('settings', 'set', key)
  if (secretText(raw, name) === null) {
    const line = fromPath ? `${name}: …` : `${name}: {value: …, teams: ["${team}"]}`
    const above = key.slice(0, key.lastIndexOf('.'))
    const where = above === 'secrets' ? '' : ` in ${above.replace(/\.secrets$/, '')}`
    return `the secret ${name} is not set${where}; add \`${line}\` below \`${above}:\` in settings.yml, or set it with: ${command} -`
  }
  const teams = isObject(entry) ? (entry as JsonObject).teams : undefined
  const allowed = Array.isArray(teams) ? teams.map(String) : []
  if (fromPath || allowed.some(pattern => fits(pattern, team))) return null
  const line = `teams: ${JSON.stringify([...allowed, team])}`
  const set = `${command}.teams '${JSON.stringify([...allowed, team])}'`
  return `the package ${team} may not read the secret ${name}; to allow it, give ${key} in settings.yml the line \`${line}\`, or call: ${set}`
}

/** Whether a pattern matches a team. `*` matches any text without a slash; `*` alone matches every package. */
export function fits(pattern: string, team: string): boolean {
  if (pattern === '*') return true
  return new RegExp(`^${pattern.split('*').map(RegExp.escape).join('[^/]*')}$`).test(team)
}

/**
 * The path and value to write for a change of `path`. `teams` can be added to a plain value, and is kept when the value
 * changes.
 */
export function placeInEntry(raw: JsonObject, path: readonly string[], value: Json): { path: string[]; value: Json } {
  const { above, below } = inEnvironment(path)
  const [section, , field] = below
  const place = [...above, ...below.slice(0, 2)]
  const entry = section === 'secrets' ? valueAt(raw, place) : undefined
  const isMapping = isObject(entry)
  if (value === null && field !== 'value') return { path: [...path], value }
  if (field === undefined && isMapping && !isObject(value)) return { path: [...path, 'value'], value }
  if (field === 'value' && !isMapping) return { path: place, value }
  if (field === 'teams' && isScalar(entry)) return { path: place, value: { value: entry, teams: value } }
  return { path: [...path], value }
}

/**
 * Whether a text is `{value, teams}` in JSON, as opposed to a secret that is itself JSON, such as the key of a service
 * account.
 */
export function isEntryText(text: string): boolean {
  try {
    const parsed: Json = JSON.parse(text)
    return isObject(parsed) && 'value' in parsed && entryProblem(parsed as JsonObject) === null
  } catch {
    return false
  }
}
