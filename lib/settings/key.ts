// Which settings there are, and what they take. Pure.

import type { TSchema } from 'typebox'
import { isAllowEntry } from '../agent/address.ts'
import type { AgentDefinition } from '../agent/define.ts'
import { CadreError } from '../error.ts'
import { isObject, type Json } from '../json.ts'
import { problems } from '../schema.ts'
import { didYouMean } from '../spelling.ts'
import { isReference } from './references.ts'
import { GLOBAL, schemasAt, valueAt } from './tree.ts'
import { typed } from './typed.ts'

interface Agents {
  get(name: string): AgentDefinition | undefined
}

const REFERENCE = /^[a-z][a-z0-9_-]*(@[A-Za-z0-9_-]+)?$/
const SEGMENT = /^[^\s.\p{C}]{1,100}$/u
const UNSAFE = ['__proto__', 'constructor', 'prototype']

/** The path of a key. Throws `invalid_request` for one that means nothing, or that its agent's schema does not have. */
export function checkKey(key: string, agents?: Agents): string[] {
  const path = key.split('.')
  const [section, reference = '', name, ...rest] = path
  if (path.some(segment => !SEGMENT.test(segment) || UNSAFE.includes(segment))) fail(key, 'it is no dotted key')
  if (section !== 'agents') {
    if (Object.hasOwn(GLOBAL, key)) return path
    const known = Object.keys(GLOBAL)
    fail(key, `known are agents.<agent>.<key>, ${known.join(', ')}${didYouMean(key, known)}`)
  }
  if (!REFERENCE.test(reference) || !name) fail(key, 'expected agents.<agent>.<key> or agents.<agent>@<account>.<key>')
  const definition = agents?.get(reference)
  if (!definition) return path
  if (schemasAt(definition.settings, [name, ...rest]).length > 0) return path
  const known = Object.keys(definition.settings.properties ?? {})
  fail(key, `the agent ${reference} takes ${known.join(', ') || 'no settings'}${didYouMean(name, known)}`)
}

/** The value as it is stored. Throws `invalid_request` for one that the key cannot have. */
export function checkValue(path: readonly string[], value: Json, agents?: Agents): Json {
  const key = path.join('.')
  if (key === 'network.allow') return allowList(key, value)
  if (key === 'sync' && value !== 'full' && value !== 'status') fail(key, 'expected full or status')
  if (key === 'hub.api_key' && (typeof value !== 'string' || !value)) fail(key, 'expected the text of a user token')
  if (value === '' || (isObject(value) && Object.keys(value).length === 0))
    fail(key, 'the value is empty; null removes it')
  const [section, reference = '', ...rest] = path
  const definition = section === 'agents' ? agents?.get(reference) : undefined
  if (!definition) return value
  // Several schemas are those of a union's branches: the value has to be as one of them says.
  const wrong = schemasAt(definition.settings, rest).map(schema => unfit(schema, value))
  if (wrong.every(found => found !== null)) fail(key, wrong[0]!)
  return value
}

/** What a value cannot be; null: nothing. What it lacks may be set later, and what it refers to is known at start. */
function unfit(schema: TSchema, value: Json): string | null {
  const given = typed(value, schema)
  for (const { path, message } of problems(schema, given)) {
    const place = path.split('/').slice(1)
    const found = valueAt(given, place)
    if (message === 'is required' || (typeof found === 'string' && isReference(found))) continue
    return place.length > 0 ? `${place.join('.')} ${message}` : message
  }
  return null
}

function allowList(key: string, value: Json): Json {
  const entries = typeof value === 'string' ? value.split(/[\s,]+/).filter(Boolean) : value
  if (!Array.isArray(entries)) fail(key, 'expected a list of CIDRs and host names')
  for (const entry of entries) {
    if (typeof entry !== 'string' || !isAllowEntry(entry)) {
      fail(key, `${JSON.stringify(entry)} is no CIDR, address or host name`)
    }
  }
  return entries
}

function fail(key: string, message: string): never {
  throw new CadreError('invalid_request', `setting ${key}: ${message}`, { details: [{ path: key, message }] })
}
