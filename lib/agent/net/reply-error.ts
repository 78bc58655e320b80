// Turns an unexpected reply of a vendor into an AgentError, in the same way for every agent.

import { AgentError } from '../core/agent-error.ts'
import { isRateLimit } from './rate-limit.ts'

/** Number of characters of the reply's body that the message quotes. */
const QUOTED = 300

const HINTS: Record<number, string> = {
  401: 'check the credentials in the agent’s settings',
  403: 'the credentials are valid but lack the permission',
  404: 'check the id; vendors also answer 404 when the account lacks access',
  410: 'the vendor has removed this address',
  429: 'the rate limit outlasted the retries; run it later or less often',
}

const CODES: Record<number, string> = {
  400: 'rejected',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  408: 'timeout',
  409: 'conflict',
  410: 'gone',
  413: 'too_large',
  422: 'rejected',
  429: 'rate_limited',
}

/** Whether the same request may succeed later: 408, 429 and 5xx except 501. */
export function isTransient(status: number): boolean {
  return status === 408 || status === 429 || (status >= 500 && status !== 501)
}

/**
 * An AgentError for a reply with an unexpected status. Reads the body. The message begins with `doing`, for example
 * `create issue`. A complete 4xx except 408 is a definite refusal, so nothing was written and `sent` is `no`; for any
 * other status it is `unknown`. `hints` by status take precedence over the general ones.
 * @example if (!reply.ok) throw await replyError(reply, `get item ${ref}`)
 */
export async function replyError(
  reply: Response,
  doing: string,
  hints: Record<number, string> = {},
): Promise<AgentError> {
  const isPage = reply.headers.get('content-type')?.includes('html') ?? false
  const body = await reply.text().catch(() => '')
  const quotedBody = isPage ? '' : quoted(body.replace(/\s+/g, ' ').trim())
  const { status } = reply
  const refused = status >= 400 && status < 500 && status !== 408
  // Some vendors answer 403 when there were too many requests.
  const meant = isRateLimit(status, reply.headers, body) ? 429 : status
  const hint = hints[meant] ?? HINTS[meant]
  return new AgentError(`${doing}: HTTP ${status}${quotedBody && `: ${quotedBody}`}`, {
    code: CODES[meant] ?? (status >= 500 ? 'vendor_error' : 'unexpected_status'),
    retryable: isTransient(meant),
    sent: refused ? 'no' : 'unknown',
    ...(hint && { hint }),
  })
}

/** Cuts the text between words: half of a secret that the reply repeats would not be recognised and not be masked. */
export function quoted(text: string): string {
  return text.length <= QUOTED ? text : `${text.slice(0, QUOTED + 1).replace(/[^\s"]*$/, '')}…`
}
