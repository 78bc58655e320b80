// Access tokens of OAuth 2.0 (RFC 6749). A token is requested with the guarded fetch, concealed, and kept in memory
// until shortly before it expires.

import { Type } from '../schema/type.ts'
import type { AgentContext } from './agent-context.ts'
import { AgentError, withSent } from './core/agent-error.ts'
import { checkedJson } from './json-api.ts'
import { replyError } from './net/reply-error.ts'

export interface TokenRequest {
  /** The beginning of error messages: `sign in to Google`. */
  doing: string
  /** The address of the token endpoint. */
  uri: string
  form: Record<string, string>
  /** What to do when the credentials are refused. */
  hint: string
}

interface Kept {
  token: string
  /** Epoch milliseconds, and the same by the monotonic clock: the wall clock may step, and the other one may sleep. */
  until: number
  lasts: number
}

const kept = new Map<string, Kept>()
/** A token that expires within this time is no longer used. */
const MARGIN = 5 * 60_000
const Reply = Type.Object({
  access_token: Type.String({ minLength: 1 }),
  // Some vendors send a text of digits.
  expires_in: Type.Optional(Type.Union([Type.Number(), Type.String({ pattern: '^\\d+$' })])),
})

/**
 * The access token of these credentials. `renew` requests a new one although the kept one has not expired. Throws an
 * AgentError with `sent: 'no'`.
 */
export async function accessToken(
  context: AgentContext<unknown>,
  credentials: unknown,
  request: () => Promise<TokenRequest>,
  renew = false,
): Promise<string> {
  const key = Bun.hash(JSON.stringify(credentials)).toString(36)
  const found = kept.get(key)
  if (found && !renew && found.until > Date.now() + MARGIN && found.lasts > performance.now() + MARGIN) {
    context.conceal(found.token)
    return found.token
  }
  try {
    const fresh = await ask(context, await request())
    kept.set(key, fresh)
    return fresh.token
  } catch (error) {
    throw error instanceof AgentError ? withSent(error, 'no') : error
  }
}

async function ask(context: AgentContext<unknown>, { doing, uri, form, hint }: TokenRequest): Promise<Kept> {
  const [wall, monotonic] = [Date.now(), performance.now()]
  const reply = await context.fetch(uri, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: new URLSearchParams(form).toString(),
  })
  if (!reply.ok) {
    const error = await replyError(reply, `[${context.callName}] ${doing}`)
    if (reply.status !== 400 && reply.status !== 401) throw error
    throw new AgentError(error.message, { code: 'unauthorized', hint })
  }
  const answer = await checkedJson(context, doing, Reply, reply)
  context.conceal(answer.access_token)
  const ms = Number(answer.expires_in ?? 3_600) * 1_000
  return { token: answer.access_token, until: wall + ms, lasts: monotonic + ms }
}

/** The form that exchanges a refresh token for an access token (RFC 6749, section 6). */
export function refreshForm(account: {
  client_id: string
  client_secret?: string | undefined
  refresh_token: string
  scope?: string | undefined
}): Record<string, string> {
  const { client_id, client_secret, refresh_token, scope } = account
  return {
    grant_type: 'refresh_token',
    client_id,
    refresh_token,
    ...(client_secret && { client_secret }),
    ...(scope && { scope }),
  }
}
