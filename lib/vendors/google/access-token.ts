// Access tokens for Google accounts. A service account gets one with a signed assertion (RFC 7523), a person with a
// refresh token (RFC 6749, section 6). Tokens are kept in memory until shortly before they expire.
// https://developers.google.com/identity/protocols/oauth2/service-account#httprest

import { type AgentContext, AgentError } from '../../agent/define.ts'
import { replyError } from '../../agent/reply.ts'
import { isObject } from '../../json.ts'

export interface GoogleAccount {
  /** The path of the credentials file, from the agent's setting `credentials_file`. */
  file: string
  /** The kind of file: the key of a service account, or `client_id`, `client_secret` and `refresh_token`. */
  mode: 'service_account' | 'oauth'
  scope: string
  /** The address to request tokens from, when the file has no `token_uri`. */
  tokenUri: string
}

interface Kept {
  token: string
  /** Epoch milliseconds. */
  until: number
}

const kept = new Map<string, Kept>()
/** A token that expires within this time is no longer used. */
const MARGIN = 5 * 60_000
const FIELDS = {
  service_account: ['client_email', 'private_key'],
  oauth: ['client_id', 'client_secret', 'refresh_token'],
}
const SECRET = ['private_key', 'client_secret', 'refresh_token']

/** An access token. `renew` requests a new one. Throws an AgentError with `sent: 'no'`. */
export async function googleToken(context: AgentContext<unknown>, account: GoogleAccount, renew = false) {
  const credentials = await readCredentials(context, account)
  // Concealed before any reply can repeat them. The file may have changed since the settings were read.
  for (const name of SECRET) if (typeof credentials[name] === 'string') context.conceal(credentials[name])
  const key = Bun.hash(JSON.stringify([account, credentials])).toString(36)
  const found = kept.get(key)
  if (found && !renew && found.until > Date.now() + MARGIN) {
    context.conceal(found.token)
    return found.token
  }
  const fresh = await ask(context, account, credentials)
  kept.set(key, fresh)
  return fresh.token
}

async function readCredentials(
  { agent, place }: AgentContext<unknown>,
  { file, mode }: GoogleAccount,
): Promise<Record<string, string>> {
  const setting = `agents.${agent}.credentials_file`
  const refuse = (what: string, hint: string) =>
    new AgentError(`[${place}] ${file} ${what}`, { code: 'unauthorized', hint, sent: 'no' })
  let content: unknown
  try {
    content = await Bun.file(file).json()
  } catch {
    throw refuse('cannot be read as JSON', `set ${setting} to the path of the credentials file`)
  }
  const credentials = isObject(content) ? (content as Record<string, string>) : {}
  const missing = FIELDS[mode].filter(name => typeof credentials[name] !== 'string')
  if (missing.length === 0) return credentials
  const other = mode === 'oauth' ? 'service_account' : 'oauth'
  const fits = FIELDS[other].every(name => typeof credentials[name] === 'string')
  const hint = fits ? `set agents.${agent}.auth_mode to ${other}` : `set ${setting} to another file`
  throw refuse(`has no ${missing.join(', ')}, which auth_mode ${mode} requires`, hint)
}

async function ask(
  context: AgentContext<unknown>,
  account: GoogleAccount,
  credentials: Record<string, string>,
): Promise<Kept> {
  const { agent, place } = context
  const { mode, scope } = account
  const uri = credentials.token_uri ?? account.tokenUri
  const form: Record<string, string> =
    mode === 'oauth'
      ? {
          grant_type: 'refresh_token',
          client_id: credentials.client_id!,
          client_secret: credentials.client_secret!,
          refresh_token: credentials.refresh_token!,
        }
      : {
          grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
          assertion: await signAssertion(context, credentials, scope, uri),
        }
  // Anyone who has the assertion can get a token with it.
  if (form.assertion) context.conceal(form.assertion)
  const asked = Date.now()
  const reply = await context.fetch(uri, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: new URLSearchParams(form).toString(),
  })
  if (!reply.ok) {
    const error = await replyError(reply, `[${place}] sign in to Google`)
    if (reply.status !== 400 && reply.status !== 401) throw error
    const hint = `the credentials were refused: check agents.${agent}.credentials_file and the clock of this machine`
    throw new AgentError(error.message, { code: 'unauthorized', hint, sent: 'no' })
  }
  const { access_token, expires_in = 3_600 } = (await reply.json()) as { access_token?: string; expires_in?: number }
  if (typeof access_token !== 'string' || !access_token) {
    const what = `[${place}] sign in to Google: the reply has no access_token`
    throw new AgentError(what, { code: 'unexpected_reply', hint: `check that ${uri} belongs to Google`, sent: 'no' })
  }
  context.conceal(access_token)
  return { token: access_token, until: asked + expires_in * 1_000 }
}

async function signAssertion(
  { agent, place }: AgentContext<unknown>,
  credentials: Record<string, string>,
  scope: string,
  audience: string,
) {
  const { importPKCS8, SignJWT } = await import('jose')
  const key = await importPKCS8(credentials.private_key!, 'RS256').catch(() => {
    const hint = `set agents.${agent}.credentials_file to the unchanged file from Google`
    throw new AgentError(`[${place}] private_key must be a PKCS #8 key`, { code: 'unauthorized', hint, sent: 'no' })
  })
  const { private_key_id: kid } = credentials
  return new SignJWT({ scope })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(kid && { kid }) })
    .setIssuer(credentials.client_email!)
    .setAudience(audience)
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(key)
}
