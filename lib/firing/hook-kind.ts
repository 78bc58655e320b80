// Hooks: their occasions are deliveries that a server is told of.

import { formatDuration } from '../duration.ts'
import { CadreError, type Detail } from '../error.ts'
import type { Json, JsonObject } from '../json.ts'
import { occasionRule } from '../team/team.ts'
import { deliveryOf } from '../triggers/hook/delivery.ts'
import { type Hook, HookFields, TOLERANCE_MS } from '../triggers/hook/fields.ts'
import { checkSecret } from '../triggers/hook/secrets.ts'
import { checkHook, type HookSpec } from '../triggers/hook/spec.ts'
import { storedHeaders } from '../triggers/hook/stored-headers.ts'
import { OCCASION_VARIABLES } from '../wire/records/trigger-words.ts'
import type { TriggerRecord } from '../wire/records/triggers.ts'
import { given, type Kind, type OwnFields } from './kind.ts'
import { refusal } from './refusal.ts'

const FIELDS = Object.keys(HookFields)
const OF_ANY_SCHEME = ['max_bytes', 'keep_days', 'keep_body']
/** They are not a part of the spec: secrets are sealed apart from it. */
const SECRETS = ['secret', 'add_secret', 'expire_secret']

export const hook: Kind<Hook> = {
  overlap: 'allow',
  variables: OCCASION_VARIABLES.hook,
  fields: [...FIELDS, ...SECRETS],

  check(fields, { isNew }) {
    const own = given(fields, FIELDS)
    const { spec, problems } = checkHook(own, occasionRule)
    const found = [...problems, ...secretProblems(spec, fields, isNew)]
    return found.length > 0 ? { problems: found } : { own: own as Hook }
  },

  changed(own, changes) {
    const isOther = changes.scheme !== undefined && changes.scheme !== own.scheme
    return { ...(isOther ? given(own, OF_ANY_SCHEME) : own), ...given(changes, [...FIELDS, ...SECRETS]) }
  },

  /** No delivery is missed by a change: each is judged when it comes. */
  isSameRule: () => true,

  words: ({ scheme }) => `each delivery of the scheme ${scheme}`,

  shown: ({ spec: { own } }) => shownHook(own),

  variablesNow: now => ({ body: {}, headers: {}, query: {}, delivery: deliveryValue('now', null, now) }),

  startedBy({ id, name }, { id: firing, occasion, manual, variables }) {
    const by = manual && { manual }
    const { id: delivery = occasion } = variables.delivery as { id?: string }
    return { kind: 'hook', trigger: id, name, firing, delivery, ...by }
  },
}

/** The checked form of what a hook keeps, which was checked when it was added. */
export function hookSpec(own: Hook): HookSpec {
  const { spec, problems } = checkHook(own, occasionRule)
  if (spec) return spec
  throw new CadreError('internal', `a hook that was added is wrong: ${problems[0]?.message}`)
}

/** Its fields with their defaults, and what its scheme leaves open. */
export function shownHook(own: Hook): Partial<TriggerRecord> {
  const { maxBytes, keepDays, keepBodyDays, reply, how } = hookSpec(own)
  return {
    ...own,
    ...(how.isTimed && { tolerance: own.tolerance ?? formatDuration(TOLERANCE_MS.default) }),
    ...{ max_bytes: maxBytes, keep_days: keepDays, keep_body: keepBodyDays, reply },
    words: hook.words(own),
    notes: checkHook(own, occasionRule).notes.map(text => ({ kind: 'hook', text })),
  }
}

/** The hook of a body, for a preview. Throws `invalid_request`. */
export function hookOf(body: OwnFields): Hook {
  const own = given(body, FIELDS)
  const { problems } = checkHook(own, occasionRule)
  if (problems.length > 0) throw refusal(problems)
  return own as Hook
}

/** What expressions would see of a delivery that has this body, as a value, and these headers. */
export function previewVariables(own: Hook, body: unknown, headers: Record<string, string>, now: number): JsonObject {
  const spec = hookSpec(own)
  const request = {
    headers: headersFrom(headers),
    body: Buffer.from(JSON.stringify(body)),
    query: new URLSearchParams(),
  }
  const { id, event } = deliveryOf(spec, request, body as Json)
  const delivery = deliveryValue(id ?? 'preview', event, now)
  return { body: body as Json, headers: storedHeaders(spec, request.headers), query: {}, delivery }
}

/** Throws `invalid_request` that names the one which no sender can send. */
function headersFrom(given: Record<string, string>): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(given)) {
    try {
      headers.append(name, value)
    } catch (cause) {
      const message = `${name} is no header that can be sent`
      throw new CadreError('invalid_request', message, { details: [{ path: `/headers/${name}`, message }], cause })
    }
  }
  return headers
}

/** What expressions see as `delivery`. */
export const deliveryValue = (id: string, event: string | null, at: number): JsonObject => ({
  ...{ id, event, at: new Date(at).toISOString() },
})

/** `spec` is null where the hook itself is wrong. */
function secretProblems(spec: HookSpec | null, fields: OwnFields, isNew: boolean): Detail[] {
  const { secret, add_secret: added } = fields
  const found: Detail[] = []
  if (isNew && secret === undefined) {
    found.push({ path: '/secret', message: 'is required: the sender and cadre share it' })
  }
  if (!isNew && secret !== undefined) {
    found.push({ path: '/secret', message: 'is given when the hook is added: `add_secret` adds another one' })
  }
  if (spec && typeof secret === 'string') found.push(...checkSecret(spec, secret).problems)
  if (spec && typeof added === 'string') found.push(...checkSecret(spec, added, '/add_secret').problems)
  return found
}
