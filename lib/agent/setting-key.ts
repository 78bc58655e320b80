// Which settings there are, and what they take. Pure.

import { CadreError } from '../error.ts'
import { isObject, type Json } from '../json.ts'
import { didYouMean } from '../team/spelling.ts'
import { isAllowEntry } from './address.ts'
import type { AgentDefinition } from './define.ts'
import { propertyOf } from './setting-tree.ts'

const REFERENCE = /^[a-z][a-z0-9_-]*(@[A-Za-z0-9_-]+)?$/
const SEGMENT = /^[^\s.\p{C}]{1,100}$/u
const UNSAFE = ['__proto__', 'constructor', 'prototype']
const GLOBAL = ['network.allow', 'hub.api_key', 'sync']

/** The path of a key. Throws `invalid_request` for one that means nothing, or that its agent's schema does not have. */
export function checkKey(key: string, agents?: { get(name: string): AgentDefinition | undefined }): string[] {
  const path = key.split('.')
  const [section, reference = '', name, ...rest] = path
  if (path.some(segment => !SEGMENT.test(segment) || UNSAFE.includes(segment))) fail(key, 'it is no dotted key')
  if (section !== 'agents') {
    if (GLOBAL.includes(key)) return path
    fail(key, `known are agents.<agent>.<key>, ${GLOBAL.join(', ')}${didYouMean(key, GLOBAL)}`)
  }
  if (!REFERENCE.test(reference) || !name) fail(key, 'expected agents.<agent>.<key> or agents.<agent>@<account>.<key>')
  const definition = agents?.get(reference)
  if (!definition) return path
  const known = Object.keys(definition.settings.properties ?? {})
  let schemas = [definition.settings as Parameters<typeof propertyOf>[0]]
  for (const segment of [name, ...rest]) {
    schemas = schemas.flatMap(schema => propertyOf(schema, segment))
    if (schemas.length === 0) {
      fail(key, `the agent ${reference} takes ${known.join(', ') || 'no settings'}${didYouMean(name, known)}`)
    }
  }
  return path
}

/** The value as it is stored. Throws `invalid_request` for one that the key cannot have. */
export function checkValue(path: readonly string[], value: Json): Json {
  const key = path.join('.')
  if (key === 'network.allow') return allowList(key, value)
  if (key === 'sync' && value !== 'full' && value !== 'status') fail(key, 'expected full or status')
  if (key === 'hub.api_key' && (typeof value !== 'string' || !value)) fail(key, 'expected the text of a user token')
  if (value === '' || (isObject(value) && Object.keys(value).length === 0))
    fail(key, 'the value is empty; null removes it')
  return value
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
