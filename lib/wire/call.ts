// A call as both sides know it: where it is, what it takes, and what it answers. Clients hold every reply against it,
// so that what is not from a hub or a daemon, or from another version of one, is an error that says so.

import type { Static, TSchema } from 'typebox'
import { CadreError, type Detail, type ErrorCode, STATUS } from '../error.ts'
import { isObject } from '../json.ts'
import { matches, problems } from '../schema.ts'
import { Type } from '../type.ts'

export interface Call<Body extends TSchema = TSchema, Data extends TSchema = TSchema> {
  readonly path: string
  readonly body: Body
  /** `data` of a success. */
  readonly data: Data
  /** The type of the message envelope that the body goes in; without it body and reply are plain. */
  readonly envelope?: string
}

export function call<Body extends TSchema, Data extends TSchema>(
  path: string,
  body: Body,
  data: Data,
  envelope?: string,
): Call<Body, Data> {
  return { path, body, data, ...(envelope !== undefined && { envelope }) }
}

/** Who answers, for errors: the whole address, and what to check when it is something else that answers there. */
export interface Answerer {
  url: string
  /** `hub` or `daemon`. */
  kind: string
  advice: string
}

/** Problems that an error about a reply names. */
const MOST_TOLD = 3

/** `data` as the call promises it; what else it holds is left alone. Throws `unavailable` when it is something else. */
export function checkedData<S extends TSchema>(schema: S, data: unknown, { url, kind }: Answerer): Static<S> {
  if (matches(schema, data)) return data
  const found = problems(schema, data)
  const told = found.slice(0, MOST_TOLD).map(({ path, message }) => `${path || 'data'} ${message}`)
  const more = found.length > MOST_TOLD ? `; and ${found.length - MOST_TOLD} more` : ''
  throw new CadreError(
    'unavailable',
    `${url} answered with success, but not with what this call answers: ${told.join('; ')}${more}; ` +
      `check that the ${kind} there is of the same version as this program`,
  )
}

const ErrorReply = Type.Object({
  code: Type.Unsafe<ErrorCode>(Type.Enum(Object.keys(STATUS))),
  message: Type.String(),
  details: Type.Optional(
    Type.Unsafe<Detail[]>(Type.Array(Type.Object({ path: Type.String(), message: Type.String() }))),
  ),
})

/** The error that `error` of a reply means; `unavailable` where it means none, because something else answered. */
export function failureOf(error: unknown, reply: Response, { url, kind, advice }: Answerer): CadreError {
  if (!matches(ErrorReply, error)) {
    return new CadreError('unavailable', `${url} answered ${reply.status}, but not as a ${kind} does; ${advice}`)
  }
  const wait = Number(reply.headers.get('retry-after'))
  const { code, message, details } = error
  return new CadreError(code, message, { ...(details && { details }), ...(wait > 0 && { retryAfter: wait }) })
}

/** `data` of a plain reply, `{ok, data}` or `{ok, error}`. Throws the error that it carries. */
export function plainData<S extends TSchema>(schema: S, answer: unknown, reply: Response, from: Answerer): Static<S> {
  if (isObject(answer) && answer.ok === true) return checkedData(schema, answer.data, from)
  throw failureOf(isObject(answer) ? answer.error : undefined, reply, from)
}

/** `payload.data` of a message envelope. Throws the error that it carries. */
export function envelopeData<S extends TSchema>(
  schema: S,
  answer: unknown,
  reply: Response,
  from: Answerer,
): Static<S> {
  const payload = isObject(answer) ? answer.payload : undefined
  if (isObject(answer) && answer.type === 'ok' && isObject(payload)) return checkedData(schema, payload.data, from)
  throw failureOf(payload, reply, from)
}
