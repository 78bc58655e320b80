// Calls of a JSON API: how they are sent, and how a refusal is explained. The paths, fields and queries of a vendor are
// in its agent.

import type { TSchema } from 'typebox'
import type { Json, JsonObject } from '../json.ts'
import { problems } from '../schema.ts'
import { type AgentContext, AgentError, type FetchOptions } from './define.ts'
import { replyError } from './reply.ts'

/**
 * The value of an `Authorization` header for HTTP Basic (RFC 7617), in UTF-8.
 * @example const headers = { authorization: basicAuth(email, api_token) }
 */
export function basicAuth(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
}

/** The credential that a call uses, for the hints of its errors. */
export interface Credential {
  /** The key of the setting that holds the credential, e.g. `api_token`. */
  setting: string
  /** The permission or scope that the call needs, in the vendor's words. */
  scope?: string | undefined
}

/**
 * The error for a reply with an unexpected status. For 401 it names the setting, for 403 the scope. 404 and 410 have
 * the codes `not_found` and `gone`; 408, 429 and 5xx are retryable. Reads the body. `doing` names the operation that
 * failed: `get ticket 7`.
 */
export function explain(
  { agent, place }: Pick<AgentContext, 'agent' | 'place'>,
  reply: Response,
  doing: string,
  { setting, scope }: Credential,
  hints: Record<number, string> = {},
): Promise<AgentError> {
  const key = `agents.${agent}.${setting}`
  return replyError(reply, `[${place}] ${doing}`, {
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

export interface Call extends Omit<FetchOptions, 'body'> {
  /** Undefined parameters are left out. A list adds one parameter for each item. */
  query?: Record<string, string | number | boolean | readonly string[] | undefined>
  /** Sent as JSON. */
  body?: Json
  scope?: string
  /** What the reply must be at least; anything else is an error `unexpected_reply`. */
  reply?: TSchema
  /** What to do about a status that means something of its own here. */
  hints?: Record<number, string>
}

/** The hint for a reply that does not come from the vendor. */
export const ADDRESS = 'check that the address is correct and belongs to the vendor'

/**
 * Creates the function that calls a JSON API. `base` is the address that precedes the vendor's paths, and `headers`
 * contain the credential. A status outside 200–299 throws an AgentError that names the setting of the credential.
 * @example
 * const call = jsonApi(context, { setting: 'api_token', base, headers })
 * const item = await call<Type.Static<typeof Item>>(`get item ${ref}`, `/items/${pathSegment(ref)}`, { reply: Item })
 */
export function jsonApi(
  context: AgentContext<unknown>,
  { base, headers, ...credential }: Omit<Credential, 'scope'> & { base: string; headers: Record<string, string> },
) {
  /**
   * The JSON of the reply; null when the reply to a write is empty. For a status outside 200–299 it throws the error of
   * `explain`.
   */
  return async function call<T = JsonObject>(doing: string, path: string, options: Call = {}): Promise<T> {
    const { query = {}, body, scope, hints, reply: schema, ...init } = options
    const url = new URL(base.replace(/\/+$/, '') + path)
    for (const [name, value = []] of Object.entries(query)) {
      for (const each of [value].flat()) url.searchParams.append(name, `${each}`)
    }
    const reply = await context.fetch(url, {
      ...init,
      headers: {
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
        ...(init.headers as Record<string, string> | undefined),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    if (!reply.ok) throw await explain(context, reply, doing, { ...credential, scope }, hints)
    const isEmpty = reply.status === 204 || reply.headers.get('content-length') === '0'
    if (isEmpty) {
      if (init.method !== undefined && !schema) return null as T
      throw new AgentError(`[${context.place}] ${doing}: the reply is empty`, { code: 'no_json', hint: ADDRESS })
    }
    const answer: unknown = await reply.json()
    const [wrong] = schema ? problems(schema, answer) : []
    if (!wrong) return answer as T
    const message = `[${context.place}] ${doing}: the reply is of another form: ${wrong.path || 'it'} ${wrong.message}`
    throw new AgentError(message, { code: 'unexpected_reply', hint: ADDRESS })
  }
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
