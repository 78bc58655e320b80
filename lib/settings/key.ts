// Which settings exist, and which values they accept. Pure.

import { basename } from 'node:path'
import type { TSchema } from 'typebox'
import type { AgentDefinition } from '../agent/define.ts'
import { isAllowEntry } from '../agent/net/address.ts'
import { A_DURATION, parseDuration } from '../duration.ts'
import { CadreError } from '../error.ts'
import { isObject, type Json } from '../json.ts'
import { type Misfit, misfits } from '../schema/schema.ts'
import { didYouMean } from '../text/spelling.ts'
import { environmentProblem } from './command-environment.ts'
import { environmentFieldProblem, environmentNameProblem, reviewProblem } from './environments.ts'
import { labelsProblem } from './labels.ts'
import { isLend, lendProblem } from './lend.ts'
import { limitSchemaAt } from './limit.ts'
import { entryProblem, SECRET_NAME, teamsProblem } from './named.ts'
import { onFailProblem } from './on-fail.ts'
import { isReference, misspeltReference } from './references.ts'
import { sandboxProblem } from './sandbox.ts'
import { GLOBAL, inEnvironment, namesAt, schemasAt, takesNames, valueAt } from './tree.ts'
import { trustProblem } from './trust.ts'
import { typed } from './typed.ts'

export interface Agents {
  get(name: string): AgentDefinition | undefined
  names(): string[]
  /** Files that are named like an agent but cannot be used, with the reasons. */
  readonly skipped?: readonly { file: string; reason: string }[]
}

const REFERENCE = /^[a-z][a-z0-9_-]*(@[A-Za-z0-9_-]+)?$/
const SEGMENT = /^[^\s.\p{C}]{1,100}$/u
const UNSAFE = ['__proto__', 'constructor', 'prototype']
export const SECTIONS = [
  ...new Set(['agents', 'secrets', 'environments', ...Object.keys(GLOBAL).map(key => key.split('.', 1)[0]!)]),
]

/** That an agent is not installed, with the nearest that is; or why its file cannot be used. */
export function noAgent(reference: string, { names, skipped = [] }: Pick<Agents, 'names' | 'skipped'>): string {
  const known = names()
  const [name = ''] = reference.split('@', 1)
  const broken = skipped.find(({ file }) => basename(file) === `${name}.ts`)
  if (broken) return `the agent ${name} cannot be used: ${broken.reason}`
  const near = didYouMean(name, known)
  return `there is no agent ${reference}${near}; there are ${known.join(', ')}`
}

/** The path of a key. Throws `invalid_request` for any other text. */
export function pathOf(key: string): string[] {
  const path = key.split('.')
  if (path.some(segment => !SEGMENT.test(segment) || UNSAFE.includes(segment))) {
    fail(key, 'a key has parts between dots, such as agents.wiki.base_url')
  }
  return path
}

/** The path of a key. Throws `invalid_request` for an unknown key, or one that is not in its agent's schema. */
export function checkKey(key: string, agents?: Agents): string[] {
  const path = pathOf(key)
  const problem = keyProblem(path, agents)
  if (problem !== null) fail(key, problem)
  return path
}

/** The reason why a setting does not exist; null if it does. */
export function keyProblem(path: readonly string[], agents?: Agents): string | null {
  const key = path.join('.')
  const [section = '', reference = '', ...rest] = path
  if (section === 'secrets') return secretKeyProblem(path)
  if (section === 'environments') return environmentKeyProblem(path, agents)
  if (section === 'labels' && path.length === 2) return null
  if (section !== 'agents') {
    if (Object.hasOwn(GLOBAL, key)) return null
    const known = Object.keys(GLOBAL)
    return `there is no such setting; known are agents.<agent>.<key>, secrets.<name>, environments.<name>.agents.<agent>.<key>, ${known.join(', ')}${didYouMean(key, [...known, ...SECTIONS])}`
  }
  if (!REFERENCE.test(reference) || rest.length === 0)
    return 'expected agents.<agent>.<key> or agents.<agent>@<account>.<key>'
  const definition = agents?.get(reference)
  if (agents && !definition) return noAgent(reference, agents)
  if (
    !definition ||
    isLend(rest, definition) ||
    limitSchemaAt(rest, definition) ||
    schemasAt(definition.settings, rest).length > 0
  )
    return null
  if (limitSchemaAt(rest.slice(0, 1), definition)) return `${path.slice(0, 3).join('.')} takes count and per`
  const from = rest.findIndex((_, at) => schemasAt(definition.settings, rest.slice(0, at + 1)).length === 0)
  const above = rest.slice(0, from)
  const known = namesAt(definition.settings, above)
  const forms = known.map(name => formOf(definition, [...above, name], name))
  const owner = from === 0 ? `the agent ${reference}` : ['agents', reference, ...rest.slice(0, from)].join('.')
  return `${owner} takes ${forms.join(', ') || 'no settings'}${didYouMean(rest[from]!, known)}`
}

/** The key that is set for the setting at `path` of an agent: of a mapping of names, that of one name. */
export function formOf({ settings }: AgentDefinition, path: readonly string[], key: string): string {
  return schemasAt(settings, path).some(takesNames) ? `${key}.NAME` : key
}

function environmentKeyProblem(path: readonly string[], agents?: Agents): string | null {
  const [, name = '', field, ...more] = path
  const problem = environmentNameProblem(name) ?? (field === undefined ? null : environmentFieldProblem(field))
  if (problem !== null) return problem
  if ((field === 'inherit' || field === 'review') && more.length === 0) return null
  if (inEnvironment(path).above.length > 0) return keyProblem(path.slice(2), agents)
  const place = `environments.${name}`
  return `expected ${place}.agents.<agent>.<key>, ${place}.secrets.<name>, ${place}.inherit or ${place}.review`
}

export function secretKeyProblem([, name = '', field, ...more]: readonly string[]): string | null {
  if (!SECRET_NAME.test(name))
    return 'the name of a secret must consist of letters, digits, _ and -, and begin with a letter or _'
  if (more.length === 0 && (field === undefined || field === 'value' || field === 'teams')) return null
  return `expected secrets.${name}, secrets.${name}.value or secrets.${name}.teams`
}

/** Lists of texts, with what finds their problems. */
const LISTS: Readonly<Record<string, (value: Json) => string | null>> = {
  'packages.trust': trustProblem,
  'notify.on_fail': onFailProblem,
  'references.env': environmentProblem,
}

/** The problem with the value of a setting that belongs to no agent, as far as it is known before `settings set`. */
export const globalProblem = (key: string, value: Json): string | null =>
  Object.hasOwn(LISTS, key) ? LISTS[key]!(value) : value === null ? null : sandboxProblem(key, value)

/** The value in the form in which it is stored. Throws `invalid_request` for a value that the key does not accept. */
export function checkValue(path: readonly string[], value: Json, agents?: Agents): Json {
  const key = path.join('.')
  const misspelt = typeof value === 'string' ? misspeltReference(value) : null
  if (misspelt !== null) fail(key, misspelt)
  if (key === 'network.allow') return allowList(key, value)
  if (key === 'network.proxy_resolves' && typeof value !== 'boolean') fail(key, 'expected true or false')
  if (path[0] === 'labels') return labels(path, value)
  if (Object.hasOwn(LISTS, key)) return checkedList(key, value, LISTS[key]!)
  if (path[0] === 'exec' || key === 'packages.sandbox') return sandboxSetting(key, value)
  if (key === 'sync' && value !== 'full' && value !== 'status') fail(key, 'expected full or status')
  if (key === 'settle' && !isText(value, text => parseDuration(text) !== null)) fail(key, `expected ${A_DURATION}`)
  if (key === 'hub.api_key' && (typeof value !== 'string' || !value)) fail(key, 'expected the text of a user token')
  if (key === 'hub.realm_token' && !isText(value, text => text.startsWith('cadre_dt_')))
    fail(key, 'must be a realm token (cadre_dt_…)')
  if (key === 'hub.url' && !isText(value, text => /^https?:/.test(text) && URL.canParse(text)))
    fail(key, 'must be an address such as https://hub.example.com')
  const { above, below } = inEnvironment(path)
  const [section, reference = '', ...rest] = below
  if (above.length === 0 && section === 'environments') {
    if (rest[0] === 'review') return checkedList(key, value, reviewProblem)
    if (typeof value !== 'boolean') fail(key, 'expected true or false')
  }
  if (section === 'secrets') return checkSecret(path, below, value)
  if (value === '' || (isObject(value) && Object.keys(value).length === 0))
    fail(key, 'the value is empty; null removes it')
  const definition = section === 'agents' ? agents?.get(reference) : undefined
  if (!definition) return value
  if (isLend(rest, definition)) return checkLend(key, words(value))
  const limit = limitSchemaAt(rest, definition)
  if (limit) return checkLimit(key, typed(value, limit), limit)
  // Several schemas are the branches of a union, and the value must match one of them.
  const wrong = schemasAt(definition.settings, rest).map(schema => unfit(schema, value))
  if (wrong.every(found => found !== null)) {
    const form = isObject(value) ? key : formOf(definition, rest, key)
    fail(key, form === key ? wrong[0]! : `${wrong[0]}: set ${form}, each by its name`)
  }
  return value
}

const isText = (value: Json, fits: (text: string) => boolean): boolean =>
  typeof value === 'string' && (isReference(value) || fits(value))

function checkSecret(path: readonly string[], [, , field]: readonly string[], value: Json): Json {
  const problem = field === 'teams' ? teamsProblem(value) : entryProblem(field === 'value' ? { value } : value)
  if (problem !== null) fail(path.join('.'), value === '' ? 'the value is empty; null removes it' : problem)
  return value
}

/** The problems of settings, as far as they can be found before references are resolved. */
export function faults(schema: TSchema, given: Json): Misfit[] {
  return misfits(schema, given).filter(({ path, kind }) => {
    const found = valueAt(given, path.split('/').slice(1))
    return kind === 'missing' || !(typeof found === 'string' && isReference(found))
  })
}

/**
 * The reason why a value does not fit the schema; null if it does. Missing parts may be set later, and references are
 * resolved at the start, so both are ignored.
 */
function unfit(schema: TSchema, value: Json): string | null {
  const wrong = faults(schema, typed(value, schema)).find(({ kind }) => kind !== 'missing')
  if (!wrong) return null
  const place = wrong.path.split('/').slice(1)
  return place.length > 0 ? `${place.join('.')} ${wrong.message}` : wrong.message
}

const words = (value: Json): Json => (typeof value === 'string' ? value.split(/[\s,]+/).filter(Boolean) : value)

function checkLimit(key: string, value: Json, schema: TSchema): Json {
  const wrong = unfit(schema, value)
  if (wrong !== null) fail(key, wrong)
  return value
}

function checkLend(key: string, value: Json): Json {
  const problem = lendProblem(value)
  if (problem !== null) fail(key, problem)
  return value
}

function labels(path: readonly string[], value: Json): Json {
  const [, name] = path
  const given = name === undefined ? words(value) : value
  const problem = labelsProblem(name === undefined ? given : { [name]: given })
  if (problem !== null) fail(path.join('.'), problem)
  return given
}

/** A list of texts, which may be written as words. */
function checkedList(key: string, value: Json, problemWith: (value: Json) => string | null): Json {
  const entries = words(value)
  const problem = problemWith(entries)
  if (problem !== null) fail(key, problem)
  return entries
}

function sandboxSetting(key: string, value: Json): Json {
  const given = key === 'exec.sandbox_network' ? words(value) : value
  const problem = sandboxProblem(key, given)
  if (problem !== null) fail(key, problem)
  return given
}

function allowList(key: string, value: Json): Json {
  const entries = words(value)
  if (!Array.isArray(entries)) fail(key, 'expected a list of CIDRs and host names')
  for (const entry of entries) {
    if (typeof entry !== 'string' || !isAllowEntry(entry)) {
      fail(key, `${JSON.stringify(entry)} must be a CIDR, an address or a host name`)
    }
  }
  return entries
}

function fail(key: string, message: string): never {
  throw new CadreError('invalid_request', `setting ${key}: ${message}`, { details: [{ path: key, message }] })
}
