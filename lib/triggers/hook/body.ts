// What the body of a delivery says, as the value that expressions see as `body`. It is read after the signature, which is
// over its bytes.

import { CadreError } from '../../error.ts'
import type { Json, JsonObject } from '../../json.ts'
import { isObject } from '../../json.ts'
import { parseJson } from '../../json-text.ts'
import type { HookSpec } from './spec.ts'

export type ParsedBody = { ok: true; value: Json } | { ok: false; detail: string }

/** A form with more fields is not one that a person or a program sends. */
const MOST_FIELDS = 10_000
const AMPERSAND = 0x26

const FORM = 'application/x-www-form-urlencoded'
const JSON_TYPE = /^(application|text)\/json$|^[a-z]+\/[a-z0-9.!#$&^_-]+\+json$/

/** JSON, a form, or else text. An empty body without a type, or of JSON, counts as `{}`. */
export function parseBody(spec: HookSpec, contentType: string | null, body: Uint8Array): ParsedBody {
  const type = (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()
  try {
    if (JSON_TYPE.test(type)) return { ok: true, value: body.length === 0 ? {} : parseJson(body, 'the body') }
    if (type === FORM) return { ok: true, value: formOf(spec, body) }
  } catch (error) {
    if (error instanceof CadreError) return { ok: false, detail: error.message }
    throw error
  }
  return { ok: true, value: body.length === 0 && type === '' ? {} : new TextDecoder().decode(body) }
}

function formOf({ scheme }: HookSpec, body: Uint8Array): Json {
  mustHaveFewFields(body)
  const form = fieldsOf(new URLSearchParams(new TextDecoder().decode(body)))
  const { payload } = form
  if (typeof payload !== 'string') return form
  const read = () => parseJson(Buffer.from(payload), '`payload` in the body')
  // Slack sends what a person did as JSON in one field. GitHub and Gitea send in such a field what is the body otherwise.
  if (scheme === 'slack') return { ...form, payload: read() }
  return scheme === 'github' || scheme === 'gitea' ? read() : form
}

/** Counted in the bytes, because reading millions of fields takes seconds. */
function mustHaveFewFields(body: Uint8Array): void {
  let separators = 0
  for (let at = body.indexOf(AMPERSAND); at !== -1; at = body.indexOf(AMPERSAND, at + 1)) {
    if (++separators > MOST_FIELDS) throw tooManyFields()
  }
}

const tooManyFields = () => new CadreError('invalid_request', `a form may have at most ${MOST_FIELDS} fields`)

/** The fields of a form or a query; one that comes several times is a list. */
export function fieldsOf(given: URLSearchParams): JsonObject {
  const fields = new Map<string, Json>()
  let count = 0
  for (const [name, value] of given) {
    if (++count > MOST_FIELDS) throw tooManyFields()
    const before = fields.get(name)
    if (Array.isArray(before)) before.push(value)
    else fields.set(name, before === undefined ? value : [before, value])
  }
  // This also makes an own field of `__proto__`.
  return Object.fromEntries(fields)
}

/** The value at a path of names and positions; undefined if there is none. */
export function valueAt(value: Json | undefined, path: readonly (string | number)[]): Json | undefined {
  let found = value
  for (const key of path) {
    if (typeof key === 'number') found = Array.isArray(found) ? found[key] : undefined
    else found = isObject(found) && Object.hasOwn(found, key) ? found[key] : undefined
  }
  return found
}
