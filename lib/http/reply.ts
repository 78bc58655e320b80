// The two forms of replies: plain `{ok, data}`, and the envelope for the daemon's envelope calls. Everything that is
// thrown becomes one CadreError here.

import { ValidationError } from 'elysia'
import type { TSchema } from 'typebox'
import { CadreError, type ErrorBody } from '../error.ts'
import { isObject } from '../json.ts'
import { problems } from '../schema/schema.ts'

/** How data and errors are written. `body` is the body of the request, as far as it could be read. */
export interface Frame {
  /** Whether replies are messages, for OpenAPI. */
  isMessage: boolean
  success(data: unknown, body: unknown): unknown
  failure(error: ErrorBody, body: unknown): unknown
}

export const plainFrame: Frame = {
  isMessage: false,
  success: data => ({ ok: true, data }),
  failure: error => ({ ok: false, error }),
}

/** A success that is read often, and serialized once. Replies share the bytes of a blob, while each would copy a text. */
export class ReadySuccess {
  readonly blob: Blob

  constructor(data: unknown) {
    const text = JSON.stringify(plainFrame.success(data, null))
    this.blob = new Blob([text], { type: 'application/json;charset=utf-8' })
  }
}

/** What Elysia sends for what a handler returned. */
export function replyOf(returned: unknown, frame: Frame, body: unknown): unknown {
  if (returned instanceof Response) return returned
  if (returned instanceof ReadySuccess) return new Response(returned.blob)
  return frame.success(returned ?? null, body)
}

/** Replies in the message envelope. `instanceId` returns the id of the daemon. */
export function envelopeFrame(instanceId: () => string | null): Frame {
  const reply = (type: 'ok' | 'error', body: unknown, payload: unknown) => ({
    type,
    version: 1,
    id: isObject(body) && typeof body.id === 'string' && body.id !== '' ? body.id : crypto.randomUUID(),
    timestamp: Date.now(),
    run_id: isObject(body) && typeof body.run_id === 'string' ? body.run_id : null,
    instance_id: instanceId(),
    payload,
  })
  return {
    isMessage: true,
    success: (data, body) => reply('ok', body, { data }),
    failure: (error, body) => reply('error', body, error),
  }
}

/** `thrown` as a CadreError. An unexpected error becomes `internal`. `program` is who replies: `the hub`. */
export function asFailure(thrown: unknown, program: string): CadreError {
  // What queries a database wraps what is thrown there.
  for (let error = thrown; error instanceof Error; error = error.cause) if (error instanceof CadreError) return error
  if (thrown instanceof ValidationError) return notInForm(Object(thrown.validator).schema, thrown.value)
  if (isOfDisk(thrown)) {
    const message = `the disk of ${program} takes no more writes: free some space there, then try again`
    return new CadreError('unavailable', message, { cause: thrown })
  }
  return new CadreError('internal', 'internal error', { cause: thrown })
}

/** The refusal of a body or query that does not match its schema. */
export function notInForm(schema: TSchema, value: unknown): CadreError {
  const details = problems(schema, value)
  const [first, ...rest] = details
  const more = rest.length > 0 ? `, and ${rest.length} more in details` : ''
  const what = first ? `: ${first.path || 'the body'} ${first.message}${more}` : ''
  return new CadreError('invalid_request', `the request does not have the expected form${what}`, { details })
}

/** Error codes of the file system and of SQLite, which reports a file that cannot grow as an input or output error. */
const DISK_CODES = /^(ENOSPC|EDQUOT|EROFS|SQLITE_(FULL|IOERR|READONLY|CANTOPEN).*)$/

/** Whether an error or one of its causes is that a disk takes no writes. */
export function isOfDisk(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (DISK_CODES.test(String((error as NodeJS.ErrnoException).code))) return true
  }
  return false
}
