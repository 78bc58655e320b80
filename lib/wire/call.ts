// A call as both sides know it: its path, its body and its reply. Clients check every reply against it, so that a reply
// from another program, or from another version of hub or daemon, becomes an error that says so.

import type { Static, TSchema } from 'typebox'
import { CadreError, type Detail, type ErrorCode, STATUS } from '../error.ts'
import { isObject } from '../json.ts'
import { matches, problems } from '../schema/schema.ts'
import { Type } from '../schema/type.ts'
import type { DaemonAccess, HubAccess } from './access.ts'
import { rowsIn } from './page.ts'

export const MIB = 1024 * 1024

/** What is declared of every call, once: its route, its document, its clients and its tests come from this. */
interface Declared {
  /** In a few words, for the document of the API. */
  readonly summary: string
  /** Who may make it to the hub. A call without this is none of the hub's. */
  readonly hub?: HubAccess
  /** Who may make it to a daemon. A call without this is none of a daemon's. */
  readonly daemon?: DaemonAccess
  /** The maximum size of the body in bytes. The default is 1 MiB. */
  readonly limit?: number
  /** The status of a success. The default is 200. */
  readonly status?: 200 | 201
  /** Headers that it reads besides those of every call, and what they are. */
  readonly takes?: Readonly<Record<string, string>>
}

/** Of calls that start a run (https://www.w3.org/TR/trace-context/). */
export const TAKES_TRACE = { traceparent: 'The place in a trace that the run continues.' }

/** A POST with a body of JSON, answered by `data`. */
export interface Call<Body extends TSchema = TSchema, Data extends TSchema = TSchema> extends Declared {
  readonly path: string
  readonly body: Body
  /** The `data` of a success. */
  readonly data: Data
  /** The type of the message envelope for the body, on a daemon. Without it, body and reply are plain. */
  readonly envelope?: string
}

/** A POST with a body of JSON, whose success is not `data`. */
export interface Export<Body extends TSchema = TSchema> extends Declared {
  readonly path: string
  readonly body: Body
  /** The content type of a success. */
  readonly media: string
}

/** A GET, or a PUT of a file, with its parameters in the query. */
export interface Transfer<Query extends TSchema = TSchema> extends Declared {
  readonly path: string
  /** The default is GET. */
  readonly method?: 'GET' | 'PUT'
  readonly query: Query
  /** The content type of a success, unless the reply is `data`. */
  readonly media?: string
  readonly data?: TSchema
}

/** A call of daemons in the form in which a hub takes it, whose objects say more: their realm, and their daemon. */
export function atHub<const C extends { readonly path: string }, const D extends { readonly hub: HubAccess }>(
  call: C,
  declared: D,
): Omit<C, keyof D | 'daemon'> & D {
  const { daemon: _, ...same }: C & { daemon?: DaemonAccess } = call
  // The compiler does not see that the spread leaves out the same names.
  return { ...same, ...declared } as Omit<C, keyof D | 'daemon'> & D
}

export function call<
  const Path extends string,
  const D extends Omit<Call, 'path'> | Omit<Export, 'path'> | Omit<Transfer, 'path'>,
>(path: Path, declared: D) {
  return { path, ...declared }
}

/** Who replied, for errors: the whole address, and what to check when another program replies there. */
export interface Answerer {
  url: string
  /** `hub` or `daemon`. */
  kind: string
  advice: string
}

/** The number of problems that an error about a reply names. */
const MOST_NAMED = 3

/** A row of a list that does not have its form: one program cannot keep the rows of all others from their readers. */
export interface Unreadable {
  /** Its id, or its place in the list. */
  id: string
  problem: string
}

/** The rows that a reply had and that could not be read. */
export function unreadableIn(data: object): readonly Unreadable[] {
  return 'unreadable' in data && Array.isArray(data.unreadable) && ours.has(data.unreadable) ? data.unreadable : []
}

/** The lists of them that were made here. A reply may have anything under this name. */
const ours = new WeakSet<object>()

/** The reply with the rows that have their form, and the others in `unreadable`. */
function withoutUnreadable(schema: TSchema, data: object): object {
  const unreadable: Unreadable[] = []
  const read: Record<string, unknown> = { ...data, unreadable }
  for (const [name, item] of rowsIn(schema)) {
    const rows = read[name]
    if (!Array.isArray(rows)) continue
    read[name] = rows.filter((row: unknown, at) => {
      if (matches(item, row)) return true
      unreadable.push({ id: idOf(row) ?? `${name} ${at}`, problem: inWords(problems(item, row)) })
      return false
    })
  }
  ours.add(unreadable)
  return read
}

const IDS = ['id', 'run_id', 'daemon_id', 'job_id', 'name'] as const
const idOf = (row: unknown): string | undefined =>
  isObject(row)
    ? IDS.map(key => row[key])
        .find(id => typeof id === 'string' || typeof id === 'number')
        ?.toString()
    : undefined

function inWords(found: readonly Detail[]): string {
  const named = found.slice(0, MOST_NAMED).map(({ path, message }) => `${path || 'data'} ${message}`)
  return [...named, ...(found.length > MOST_NAMED ? [`and ${found.length - MOST_NAMED} more`] : [])].join('; ')
}

/**
 * `data` in the form that the call promises; additional properties are kept. Rows of a list that have another form are
 * left out, see `unreadableIn`. Throws `unavailable` when anything else has.
 */
export function checkedData<S extends TSchema>(schema: S, given: unknown, { url, kind }: Answerer): Static<S> {
  if (matches(schema, given)) return given
  const data = isObject(given) ? withoutUnreadable(schema, given) : given
  if (matches(schema, data)) return data
  throw new CadreError(
    'unavailable',
    `${url} replied with success, but not in the form of this call: ${inWords(problems(schema, data))}; ` +
      `check that the ${kind} there is of the same version as this program`,
  )
}

export const ErrorReply = Type.Object({
  code: Type.Unsafe<ErrorCode>(Type.Enum(Object.keys(STATUS))),
  message: Type.String(),
  reason: Type.Optional(Type.String()),
  details: Type.Optional(
    Type.Array(Type.Object({ path: Type.String(), message: Type.String(), value: Type.Optional(Type.Number()) })),
  ),
})

/** What a proxy answers by itself while no server behind it takes calls. */
const OF_PROXIES: readonly number[] = [502, 503, 504]

/**
 * The error that a reply carries. When it carries none, because another program replied, it is `too_large` if that
 * program takes no request of this size, and otherwise `unavailable`.
 */
export function failureOf(error: unknown, reply: Response, { url, kind, advice }: Answerer): CadreError {
  if (!matches(ErrorReply, error)) {
    if (reply.status === 413) {
      return new CadreError('too_large', `a program before ${url} answered 413: it takes no request of this size`)
    }
    if (OF_PROXIES.includes(reply.status)) return new CadreError('unavailable', whyProxy(url, reply.status, kind))
    return new CadreError('unavailable', `${url} answered ${reply.status}, but not as a ${kind} does; ${advice}`)
  }
  const wait = Number(reply.headers.get('retry-after'))
  const { code, message, reason, details } = error
  return new CadreError(code, message, {
    ...(details && { details }),
    ...(reason !== undefined && { reason }),
    ...(wait > 0 && { retryAfter: wait }),
  })
}

/** What it means that a proxy answered with `status` by itself. */
export const whyProxy = (url: string, status: number, kind: Answerer['kind']): string =>
  `a proxy before ${url} answered ${status}: it reaches no ${kind} that is ready; ask each ${kind} behind it for /ready, which says why`

/** The `data` of a plain reply, `{ok, data}` or `{ok, error}`. Throws the error of the reply. */
export function plainData<S extends TSchema>(schema: S, answer: unknown, reply: Response, from: Answerer): Static<S> {
  if (isObject(answer) && answer.ok === true) return checkedData(schema, answer.data, from)
  throw failureOf(isObject(answer) ? answer.error : undefined, reply, from)
}

/** The `payload.data` of a message envelope. Throws the error of the reply. */
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
