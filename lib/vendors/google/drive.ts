// Google Drive v3: requests with an account, and the meaning of refusals.
// https://developers.google.com/workspace/drive/api/guides/handle-errors

import type { Static, TSchema } from 'typebox'
import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { beforehand } from '../../agent/entry.ts'
import { checkedJson, explain } from '../../agent/json-api.ts'
import type { ApiOptions, FetchOptions } from '../../agent/net/requests.ts'
import { googleSignIn, type SignedIn } from './access-token.ts'

const SCOPE = 'https://www.googleapis.com/auth/drive'

export interface DriveSettings {
  credentials_file: string
  auth_mode?: 'service_account' | 'oauth'
  subject?: string
  base_url?: string
}
export type DriveContext = AgentContext<DriveSettings>

const API = 'https://www.googleapis.com'
const TOKENS = 'https://oauth2.googleapis.com/token'

/** The addresses of Drive and of its tokens, where the settings name no others. */
export function driveAddresses(): readonly string[] {
  return [API, TOKENS]
}

/**
 * Sends a request and returns a reply with status 200–299 or 308. For any other status it throws the error of
 * `explain`, after a new token did not help.
 */
export async function driveRequest(
  doing: string,
  path: string,
  context: DriveContext,
  options: FetchOptions = {},
): Promise<Response> {
  let renew = false
  for (;;) {
    const { token, email } = await beforehand(() => signIn(context, renew))
    const headers = { ...(options.headers as Record<string, string>), authorization: `Bearer ${token}` }
    const reply = await context.fetch(baseOf(context) + path, { ...options, headers })
    if (reply.ok || reply.status === 308) return reply
    if (reply.status === 401 && !renew) {
      renew = true
      await reply.body?.cancel()
      continue
    }
    throw await failure(reply, doing, email, context)
  }
}

/** The API with an access token. */
export async function driveApi(context: DriveContext): Promise<ApiOptions> {
  const { token } = await signIn(context, false)
  return { setting: 'credentials_file', base: baseOf(context), headers: { authorization: `Bearer ${token}` } }
}

function signIn(context: DriveContext, renew: boolean): Promise<SignedIn> {
  const { credentials_file: file, auth_mode: mode = 'service_account', subject, base_url } = context.settings
  const tokenUri = base_url ? `${baseOf(context)}/token` : TOKENS
  return googleSignIn(context, { file, mode, subject, scope: SCOPE, tokenUri }, renew)
}

const baseOf = ({ settings }: DriveContext): string => (settings.base_url ?? API).replace(/\/+$/, '')

/** The JSON of a reply, which must have the form of `schema`. */
export async function driveJson<S extends TSchema>(
  doing: string,
  path: string,
  schema: S,
  context: DriveContext,
): Promise<Static<S>> {
  return checkedJson(context, doing, schema, await driveRequest(doing, path, context))
}

async function failure(
  reply: Response,
  doing: string,
  email: string | null,
  context: DriveContext,
): Promise<AgentError> {
  const body = await reply.text().catch(() => '')
  const again = new Response(body, { status: reply.status, headers: reply.headers })
  const error = await explain(context, again, doing, { setting: 'credentials_file', scope: SCOPE })
  const { message, code } = error
  const hint = body.includes('"storageQuotaExceeded"')
    ? 'a service account has no storage of its own: upload into a shared drive, or use auth_mode oauth'
    : body.includes('"exportSizeLimitExceeded"')
      ? 'Drive exports at most 10 MB: choose another `export`, or split the document'
      : code === 'not_found'
        ? `check the id, and share the file or its folder with ${email ?? 'the account of the credentials'}`
        : undefined
  return hint ? new AgentError(message, { code, hint, sent: 'no' }) : error
}
