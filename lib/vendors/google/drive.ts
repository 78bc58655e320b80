// Google Drive v3: requests with an account, the meaning of refusals, and pauses when the rate limit is reached.
// https://developers.google.com/workspace/drive/api/guides/handle-errors

import { setTimeout as wait } from 'node:timers/promises'
import { type AgentContext, AgentError, type FetchOptions } from '../../agent/define.ts'
import { beforehand } from '../../agent/entry.ts'
import { explain } from '../../agent/json-api.ts'
import { googleToken } from './access-token.ts'

const SCOPE = 'https://www.googleapis.com/auth/drive'
const TRIES = 5
/** Drive answers 403 instead of 429 when an account exceeds its rate limit. */
const TOO_OFTEN = /"(userRateLimitExceeded|rateLimitExceeded)"/

export interface DriveSettings {
  credentials_file: string
  auth_mode?: 'service_account' | 'oauth'
  base_url?: string
}
export type DriveContext = AgentContext<DriveSettings>

/**
 * Sends a request and returns a reply with status 200–299 or 308. For any other status it throws the error of
 * `explain`, after a new token or pauses did not help.
 */
export async function driveRequest(
  doing: string,
  path: string,
  context: DriveContext,
  options: FetchOptions = {},
): Promise<Response> {
  const { credentials_file: file, auth_mode: mode = 'service_account', base_url } = context.settings
  const base = (base_url ?? 'https://www.googleapis.com').replace(/\/+$/, '')
  const tokenUri = base_url ? `${base}/token` : 'https://oauth2.googleapis.com/token'
  let renew = false
  for (let attempt = 1; ; attempt++) {
    const account = { file, mode, scope: SCOPE, tokenUri }
    const token = await beforehand(() => googleToken(context, account, renew))
    const headers = { ...(options.headers as Record<string, string>), authorization: `Bearer ${token}` }
    const reply = await context.fetch(base + path, { ...options, headers })
    if (reply.ok || reply.status === 308) return reply
    if (reply.status === 401 && !renew) {
      renew = true
      await reply.body?.cancel()
      continue
    }
    const error = await failure(reply, doing, context)
    if (reply.status !== 403 || error.code !== 'rate_limited' || attempt >= TRIES) throw error
    await pause(attempt, context)
  }
}

/** Pauses before the next attempt. `attempt` is the number of attempts so far. */
export async function pause(attempt: number, { signal, log, waiting }: DriveContext): Promise<void> {
  const ms = Math.round((0.5 + Math.random()) * 250 * 2 ** attempt)
  log('waiting: the rate limit of Drive', { attempt, wait_ms: ms })
  using _ = waiting('the rate limit of Drive')
  await wait(ms, undefined, { signal })
}

async function failure(reply: Response, doing: string, context: DriveContext): Promise<AgentError> {
  const body = await reply.text().catch(() => '')
  const again = new Response(body, { status: reply.status, headers: reply.headers })
  const error = await explain(context, again, doing, { setting: 'credentials_file', scope: SCOPE })
  const { message, code } = error
  if (reply.status === 403 && TOO_OFTEN.test(body)) {
    return new AgentError(message, { code: 'rate_limited', retryable: true, sent: 'no' })
  }
  const hint = body.includes('"storageQuotaExceeded"')
    ? 'a service account has no storage of its own: upload into a shared drive, or use auth_mode oauth'
    : body.includes('"exportSizeLimitExceeded"')
      ? 'Drive exports at most 10 MB: choose another `export`, or split the document'
      : code === 'not_found'
        ? 'check the id, and that the file is shared with the account of the credentials'
        : undefined
  return hint ? new AgentError(message, { code, hint, sent: 'no' }) : error
}
