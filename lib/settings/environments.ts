// Environments, `environments.<name>` in settings.yml: settings of agents and named secrets for the runs that name the
// environment. Of the plain ones such a run gets nothing, unless the environment says `inherit: true`. Then it gets each
// setting and each secret that the environment does not have. `review` names who may approve a run before it begins. Pure.

import { isObject, type Json, type JsonObject } from '../json.ts'
import { matches } from '../schema/schema.ts'
import { didYouMean, listed } from '../text/spelling.ts'
import { EnvironmentName } from '../wire/names.ts'
import { valueAt } from './tree.ts'

const FIELDS = ['agents', 'secrets', 'inherit', 'review'] as const
/** Maximum number of names in `review`. */
const MOST_REVIEWERS = 100

/** The names of the environments, in the order of the file. */
export const environmentsIn = (raw: JsonObject): string[] =>
  isObject(raw.environments) ? Object.keys(raw.environments) : []

/** Where settings of agents and secrets stand in the file: the plain ones, and those of each environment. */
export const placesIn = (raw: JsonObject): string[][] => [
  [],
  ...environmentsIn(raw).map(name => ['environments', name]),
]

/** The problem with the name of an environment; null if there is none. */
export const environmentNameProblem = (name: string): string | null =>
  matches(EnvironmentName, name)
    ? null
    : 'the name of an environment must consist of small letters, digits, _ and -, and begin with a letter'

/** That a field of an environment does not exist, with the nearest that does; null for one that does. */
export function environmentFieldProblem(field: string): string | null {
  if (FIELDS.some(known => known === field)) return null
  return `an environment has ${listed([...FIELDS])}${didYouMean(field, [...FIELDS])}`
}

/** The problems of the form of an environment, each with the path below it. */
export function environmentProblems(name: string, entry: Json): { path: string[]; message: string }[] {
  const problem = environmentNameProblem(name)
  if (problem !== null) return [{ path: [], message: problem }]
  if (entry === null) return []
  if (!isObject(entry)) return [{ path: [], message: `must be a mapping with ${listed([...FIELDS])}` }]
  return Object.entries(entry as JsonObject).flatMap(([field, value]) => {
    const message = environmentFieldProblem(field) ?? fieldProblem(field, value)
    return message === null ? [] : [{ path: [field], message }]
  })
}

function fieldProblem(field: string, value: Json): string | null {
  if (field === 'review') return reviewProblem(value)
  if (field === 'inherit') return typeof value === 'boolean' ? null : 'must be true or false'
  return value === null || isObject(value) ? null : 'must be a mapping'
}

/** The problem with who may approve runs; null if there is none. An empty list would protect nothing. */
export function reviewProblem(value: Json): string | null {
  const isName = (each: Json) => typeof each === 'string' && each.trim() !== '' && each.length <= 300
  if (!Array.isArray(value) || value.length === 0 || value.length > MOST_REVIEWERS || !value.every(isName)) {
    return `must be a list of 1 to ${MOST_REVIEWERS} names of users, or [any] for whoever may decide`
  }
  return value.includes('person')
    ? 'does not know `person`: list the names of users, or [any] for whoever may decide'
    : null
}

/** Who may approve a run of the environment before it begins; null when nobody is asked. */
export function reviewersOf(raw: JsonObject, name: string): string[] | null {
  const { review } = ownOf(raw, name)
  return review === undefined ? null : (review as string[])
}

/**
 * Why runs cannot have the environment; null if they can. One whose form is wrong is not used at all, because a misspelt
 * line may be the one that keeps production apart.
 */
export function whyNoEnvironment(raw: JsonObject, name: string): string | null {
  const known = environmentsIn(raw)
  if (!known.includes(name)) {
    const there = known.length === 0 ? 'it has none' : `it has ${listed(known)}${didYouMean(name, known)}`
    return `there is no environment ${name} in settings.yml of this machine: ${there}`
  }
  const [problem] = environmentProblems(name, valueAt(raw, ['environments', name])!)
  return problem ? `${['environments', name, ...problem.path].join('.')} in settings.yml: ${problem.message}` : null
}

/** The settings of agents and the named secrets that runs of an environment have, with unresolved references. */
export function settingsOf(raw: JsonObject, name: string): JsonObject {
  const own = ownOf(raw, name)
  const inherited = inherits(raw, name) ? raw : {}
  const secrets = { ...mapping(inherited.secrets), ...mapping(own.secrets) }
  return { agents: merged(mapping(inherited.agents), mapping(own.agents)), secrets }
}

/** Where in settings.yml a setting stands that runs of the environment have, or would stand if it were set. */
export function placeOf(raw: JsonObject, name: string, path: readonly string[]): string {
  const own = ownOf(raw, name)
  const isPlain = valueAt(own, path) === undefined && inherits(raw, name)
  const isOfPlain = isPlain && (valueAt(raw, path) !== undefined || valueAt(own, path.slice(0, 2)) === undefined)
  return (isOfPlain ? path : ['environments', name, ...path]).join('.')
}

const ownOf = (raw: JsonObject, name: string): JsonObject => mapping(valueAt(raw, ['environments', name]))
const inherits = (raw: JsonObject, name: string): boolean => ownOf(raw, name).inherit === true
const mapping = (value: Json | undefined): JsonObject => (isObject(value) ? (value as JsonObject) : {})

/** `own` with what it lacks from `inherited`. Null counts as a value: so an environment leaves out a plain setting. */
function merged(inherited: JsonObject, own: JsonObject): JsonObject {
  const both = Object.entries(own).map(([key, value]) => {
    const above = Object.hasOwn(inherited, key) ? inherited[key] : undefined
    return [key, isObject(value) && isObject(above) ? merged(above as JsonObject, value as JsonObject) : value] as const
  })
  return { ...inherited, ...Object.fromEntries(both) }
}
