// A hook as it is checked and used: its fields with their defaults, and what is wrong with them. Each problem has the JSON
// pointer of a field and says what to write there; notes say what the choice means, and refuse nothing.

import { parseDuration } from '../../duration.ts'
import { CadreError, type Detail } from '../../error.ts'
import type { Json, JsonObject } from '../../json.ts'
import { matches, problems as misfits } from '../../schema/schema.ts'
import { DEFAULT_BYTES, DEFAULT_DAYS, Hook, TOLERANCE_MS } from './fields.ts'
import { payloadOf } from './payload.ts'
import { inHeaders, type KeyForm, NOWHERE, SCHEMES, type Scheme, type SchemeName } from './schemes.ts'

/** Evaluates an expression over the values that a request has. Throws a CadreError `invalid_request`. */
export type Evaluate = (values: JsonObject) => Json

/** `occasionRule` of lib/team, which stands above: it compiles templates that name `variables`. Throws `invalid_request`. */
export type Compile = (
  rule: { inputs: JsonObject },
  variables: readonly string[],
) => { inputsOf(variables: JsonObject): JsonObject }

/** What a template of `dedup` may name. */
const VARIABLES = ['body', 'headers', 'query']

export interface HookSpec {
  readonly scheme: SchemeName
  readonly how: Scheme
  readonly key: KeyForm
  readonly toleranceMs: number
  /** What makes deliveries the same; null for the id that the sender gives. */
  readonly dedup: 'none' | 'body' | Evaluate | null
  readonly maxBytes: number
  readonly keepDays: number
  /** 0: bodies are not kept. */
  readonly keepBodyDays: number
  readonly reply: 'json' | 'empty'
}

export interface CheckedHook {
  /** Null if there are problems. */
  spec: HookSpec | null
  problems: Detail[]
  notes: string[]
}

/** The fields that only some schemes have. */
const ONLY: readonly (readonly [keyof Hook, readonly SchemeName[]])[] = [
  ['header', ['hmac', 'bearer']],
  ['algorithm', ['hmac']],
  ['encoding', ['hmac']],
  ['prefix', ['hmac']],
  ['payload', ['hmac']],
  ['key', ['hmac']],
  ['timestamp_header', ['hmac']],
  ['unit', ['hmac']],
  ['id_header', ['hmac', 'bearer']],
]

/** Checks the fields of a hook. `compile` is called for a template of `dedup`. */
export function checkHook(given: unknown, compile: Compile): CheckedHook {
  if (!matches(Hook, given)) return { spec: null, problems: misfits(Hook, given), notes: [] }
  const found = new Problems()
  for (const [field, schemes] of ONLY) {
    if (given[field] === undefined || schemes.includes(given.scheme)) continue
    found.add(field, `belongs to ${schemes.join(' and ')}: leave it out with ${given.scheme}`)
  }
  const how = howOf(given, found)
  const toleranceMs = toleranceOf(given, how, found)
  const dedup = dedupOf(given, how, compile, found)
  if (found.list.length > 0) return { spec: null, problems: found.list, notes: [] }
  const spec: HookSpec = {
    scheme: given.scheme,
    how,
    key: given.key ?? 'text',
    toleranceMs,
    dedup,
    maxBytes: given.max_bytes ?? DEFAULT_BYTES,
    keepDays: given.keep_days ?? DEFAULT_DAYS.keep,
    keepBodyDays: given.keep_body ?? DEFAULT_DAYS.body,
    reply: given.reply ?? (given.scheme === 'slack' ? 'empty' : 'json'),
  }
  return { spec, problems: [], notes: notesOf(spec) }
}

class Problems {
  readonly list: Detail[] = []

  add(field: keyof Hook, message: string): void {
    const path = `/${field}`
    if (!this.list.some(problem => problem.path === path)) this.list.push({ path, message })
  }
}

function howOf(given: Hook, found: Problems): Scheme {
  const { scheme } = given
  if (scheme === 'hmac') return hmacScheme(given, found)
  if (scheme === 'bearer') return bearerScheme(given, found)
  return SCHEMES[scheme]
}

function hmacScheme(given: Hook, found: Problems): Scheme {
  const { header, timestamp_header: time, id_header: id, unit, prefix = '' } = given
  if (header === undefined) found.add('header', 'is required: name the header of the signature, such as X-Signature')
  if (prefix.includes(', '))
    found.add('prefix', 'must not contain a comma before a blank: two headers arrive like that')
  if (same(time, header)) found.add('timestamp_header', 'must be another header than that of the signature')
  if (same(id, header)) found.add('id_header', 'must be another header than that of the signature')
  if (same(id, time)) found.add('id_header', 'must be another header than that of the time')
  const { parts, problem } = payloadOf(given.payload ?? '{body}')
  if (problem !== null) found.add('payload', problem)
  const names = { time: parts.includes('timestamp'), id: parts.includes('id') }
  if (time !== undefined && !names.time) {
    found.add(
      'payload',
      'must say where the time stands, such as {timestamp}.{body}: one that is not signed shows nothing',
    )
  }
  if (time === undefined && names.time) {
    found.add('timestamp_header', 'is required, because `payload` has {timestamp}: name the header of the time')
  }
  if (id === undefined && names.id) {
    found.add('id_header', 'is required, because `payload` has {id}: name the header of the id')
  }
  if (unit !== undefined && time === undefined) {
    found.add('unit', 'is that of the time in `timestamp_header`: name that header, or leave `unit` out')
  }
  return {
    check: {
      kind: 'hmac',
      signature: [header ?? ''],
      algorithm: given.algorithm ?? 'sha256',
      encoding: given.encoding ?? 'hex',
      prefix,
      parts,
      time: time === undefined ? null : { header: time, form: unit ?? 's' },
      id: names.id ? (id ?? null) : null,
    },
    id: id === undefined ? NOWHERE : inHeaders(id),
    event: NOWHERE,
    isTimed: time !== undefined,
    isIdSigned: names.id,
  }
}

function bearerScheme({ header = 'Authorization', id_header: id = 'Idempotency-Key' }: Hook, found: Problems): Scheme {
  if (same(id, header)) found.add('id_header', 'must be another header than that of the secret')
  return {
    check: { kind: 'equal', header, prefix: same(header, 'Authorization') ? 'Bearer ' : '' },
    id: inHeaders(id),
    event: NOWHERE,
    isTimed: false,
    isIdSigned: false,
  }
}

const same = (a: string | undefined, b: string | undefined): boolean =>
  a !== undefined && a.toLowerCase() === b?.toLowerCase()

function toleranceOf({ scheme, tolerance }: Hook, { isTimed }: Scheme, found: Problems): number {
  const { least, default: usual, most } = TOLERANCE_MS
  if (tolerance === undefined) return usual
  const ms = parseDuration(tolerance) ?? usual
  if (!isTimed) {
    const cure = scheme === 'hmac' ? 'name `timestamp_header`, or leave it out' : `leave it out with ${scheme}`
    found.add('tolerance', `is that of a signed time, and there is none: ${cure}`)
  } else if (ms < least || ms > most) {
    found.add('tolerance', 'must be from 30s to 15m')
  }
  return ms
}

function dedupOf(
  { scheme, dedup, id_header }: Hook,
  how: Scheme,
  compile: Compile,
  found: Problems,
): HookSpec['dedup'] {
  const choices = '`none`, `body`, or a template such as {{ body.id }}'
  if (dedup === undefined) {
    if (how.id.headers.length + how.id.body.length > 0) return null
    const or = scheme === 'hmac' ? ' (or name `id_header`)' : ''
    found.add('dedup', `is required, because a delivery of ${scheme} has no id${or}: write ${choices}`)
    return null
  }
  if (id_header !== undefined && !how.isIdSigned) {
    found.add('dedup', 'and `id_header` both say what makes two deliveries the same: write one of them')
  }
  if (dedup === 'none' || dedup === 'body') return dedup
  if (!dedup.includes('{{')) {
    found.add('dedup', `must be ${choices}`)
    return null
  }
  try {
    const { inputsOf } = compile({ inputs: { dedup } }, VARIABLES)
    return values => inputsOf(values).dedup ?? null
  } catch (error) {
    if (!(error instanceof CadreError) || error.code !== 'invalid_request') throw error
    found.add('dedup', error.details?.[0]?.message ?? error.message)
    return null
  }
}

function notesOf({ scheme, how, dedup, keepDays }: HookSpec): string[] {
  const notes: string[] = []
  if (how.check.kind === 'equal' || how.check.kind === 'graph') {
    const better = scheme === 'gitlab_token' ? ', and gitlab is the scheme that signs' : ''
    notes.push(
      `${scheme} sends the secret itself and signs nothing: whoever reads one request can send others${better}`,
    )
  }
  if (!how.isTimed && dedup !== 'none') {
    const days = dedup === 'body' ? 'the same body for 10 minutes' : `a delivery by its id for ${keepDays} days`
    const also = dedup === null && !how.isIdSigned ? ', and the id is not signed either' : ''
    notes.push(`${scheme} signs no time, so a recorded request stays valid: cadre recognises ${days}${also}`)
  }
  if (dedup === 'none') {
    notes.push(
      how.isTimed
        ? 'nothing recognises a delivery that comes again: each repetition of the sender starts a run'
        : `${scheme} signs no time, and nothing recognises a delivery that comes again: each repetition starts a run`,
    )
  }
  if (scheme === 'jira') notes.push('jira signs only the webhooks that an administrator made, not those of apps')
  return notes
}
