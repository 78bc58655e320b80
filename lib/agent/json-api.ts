// Calls of a JSON API: how they are sent, and how a refusal is explained. The paths, fields and queries of a vendor are
// in its agent.

import type { Static, TSchema } from 'typebox'
import type { Detail } from '../error.ts'
import type { Json, JsonObject } from '../json.ts'
import { problems } from '../schema/schema.ts'
import type { AgentContext } from './agent-context.ts'
import { AgentError, withMessage } from './core/agent-error.ts'
import { FileForm } from './core/file-form.ts'
import { quoted, replyError } from './net/reply-error.ts'
import type { ApiCall, ApiOptions } from './net/requests.ts'

/**
 * The value of an `Authorization` header for HTTP Basic (RFC 7617), in UTF-8.
 * @example const headers = { authorization: basicAuth(email, api_token) }
 */
export function basicAuth(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
}

/** The credential that a call uses, for the hints of its errors. */
export interface Credential {
  /** The key of the setting that holds the credential, e.g. `api_token`. Without it hints name the agent's settings. */
  setting?: string | undefined
  /** The permission or scope that the call needs, in the vendor's words. */
  scope?: string | undefined
}

/**
 * The error for a reply with an unexpected status. For 401 it names the setting, for 403 the scope. 404 and 410 have
 * the codes `not_found` and `gone`; 408, 429 and 5xx are retryable. Reads the body. `doing` names the operation that
 * failed: `get ticket 7`.
 */
export function explain(
  { agent, callName }: Pick<AgentContext, 'agent' | 'callName'>,
  reply: Response,
  doing: string,
  { setting, scope }: Credential,
  hints: Record<number, string> = {},
): Promise<AgentError> {
  const key = setting === undefined ? `agents.${agent}` : `agents.${agent}.${setting}`
  return replyError(reply, `[${callName}] ${doing}`, {
    401: `the credential was refused or has expired: set ${key} again`,
    403: `the credential of ${key} lacks ${scope ? `the permission: ${scope}` : 'a permission'}`,
    ...hints,
  })
}

/**
 * Encodes one segment of a URL's path. Throws an AgentError for a text that would lead to another path.
 * @example `/items/${pathSegment(entry.ref)}`
 */
export function pathSegment(text: string): string {
  if (/^\.{0,2}$/.test(text)) {
    const message = `${JSON.stringify(text)} cannot be used as an identifier`
    throw new AgentError(message, { code: 'invalid_request', hint: 'check ref', sent: 'no' })
  }
  return encodeURIComponent(text)
}

/** A call of the built-in agents. */
export interface Call extends Omit<ApiCall, 'body' | 'reply'> {
  /** Sent as JSON, except a form with a file. */
  body?: Json | FileForm
  /** What the reply must be at least; null means empty. Anything else is an error `unexpected_reply`. */
  reply?: TSchema | null
}

/** The hint for a reply that does not come from the vendor. */
export const ADDRESS = 'check that the address is correct and belongs to the vendor'
const NOT_EMPTY = { path: '', message: 'must be empty' }

/**
 * Creates the function that calls a JSON API; `context.api` gives the same. A status outside 200–299 throws an
 * AgentError that names the setting of the credential. The reply to a write may be empty, and is then null.
 * @example
 * const call = jsonApi(context, { setting: 'api_token', base, headers })
 * const item = await call<Type.Static<typeof Item>>(`get item ${ref}`, `/items/${pathSegment(ref)}`, { reply: Item })
 */
export function jsonApi(
  context: Pick<AgentContext<unknown>, 'agent' | 'callName' | 'fetch' | 'key'>,
  { base, headers, setting }: ApiOptions,
) {
  return async function call<T = JsonObject>(doing: string, path: string, options: Call = {}): Promise<T> {
    const { query = {}, body, keyHeader, scope, hints, reply: schema, ...given } = options
    const method = given.method ?? (body === undefined ? undefined : 'POST')
    const init = { ...given, ...(method && { method }), ...(keyHeader && { effect: 'idempotent' as const }) }
    const url = new URL(base.replace(/\/+$/, '') + path)
    for (const [name, value = []] of Object.entries(query)) {
      for (const each of [value].flat()) url.searchParams.append(name, `${each}`)
    }
    const reply = await context.fetch(url, {
      ...init,
      headers: {
        accept: 'application/json',
        ...(body !== undefined && !(body instanceof FileForm) && { 'content-type': 'application/json' }),
        ...headers,
        ...(keyHeader && { [keyHeader]: context.key }),
        ...(init.headers as Record<string, string> | undefined),
      },
      ...(body !== undefined && { body: body instanceof FileForm ? body : JSON.stringify(body) }),
    })
    if (!reply.ok) throw await explain(context, reply, doing, { setting, scope }, hints)
    const isEmpty = reply.status === 204 || reply.headers.get('content-length') === '0'
    if (isEmpty) {
      if (init.method !== undefined && !schema) return null as T
      throw new AgentError(`[${context.callName}] ${doing}: the reply is empty`, { code: 'no_json', hint: ADDRESS })
    }
    const answer = await jsonOf(context, doing, reply)
    if (schema === null) throw otherForm(context, doing, NOT_EMPTY, answer)
    if (schema) checkReply(context, doing, schema, answer)
    return answer as T
  }
}

/** The JSON of a reply. `doing` names the call in the error of a reply that is not JSON, or that breaks off. */
export function jsonOf({ callName }: Pick<AgentContext, 'callName'>, doing: string, reply: Response): Promise<unknown> {
  return reply.json().catch(error => {
    throw error instanceof AgentError ? withMessage(error, `[${callName}] ${doing}: ${error.message}`) : error
  })
}

/** The JSON of a reply, which must have the form that the vendor promises. */
export async function checkedJson<S extends TSchema>(
  context: Pick<AgentContext, 'callName'>,
  doing: string,
  schema: S,
  reply: Response,
): Promise<Static<S>> {
  const answer = await jsonOf(context, doing, reply)
  checkReply(context, doing, schema, answer)
  return answer
}

/** Throws an AgentError `unexpected_reply` when the JSON of a reply does not have the form that the vendor promises. */
export function checkReply<S extends TSchema>(
  { callName }: Pick<AgentContext, 'callName'>,
  doing: string,
  schema: S,
  answer: unknown,
): asserts answer is Static<S> {
  const [wrong] = problems(schema, answer)
  if (wrong) throw otherForm({ callName }, doing, wrong, answer)
}

function otherForm(
  { callName }: Pick<AgentContext, 'callName'>,
  doing: string,
  wrong: Detail,
  answer: unknown,
): AgentError {
  const found = `${wrong.path || 'it'} ${wrong.message}, but it is ${quoted(JSON.stringify(answer))}`
  const message = `[${callName}] ${doing}: the reply is of another form: ${found}`
  return new AgentError(message, { code: 'unexpected_reply', hint: ADDRESS })
}

/** The permissions among `probes` whose read the vendor answers with 403. Throws any other error. */
export async function lacking(probes: Record<string, () => Promise<unknown>>): Promise<string[]> {
  const missing: string[] = []
  for (const [permission, read] of Object.entries(probes)) {
    try {
      await read()
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'forbidden') throw error
      missing.push(permission)
    }
  }
  return missing
}
