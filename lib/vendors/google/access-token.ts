// Signing in to Google. A service account gets an access token with a signed assertion (RFC 7523), also in the name of a
// person of its domain; a person gets one with a refresh token (RFC 6749, section 6).
// https://developers.google.com/identity/protocols/oauth2/service-account#httprest

import { createPrivateKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { accessToken, refreshForm } from '../../agent/oauth.ts'
import { fromHome, whyNoFile } from '../../files/home-path.ts'
import { isObject } from '../../json.ts'

type Mode = 'service_account' | 'oauth'

export interface GoogleAccount {
  /** The path of the credentials file, from the agent's setting `credentials_file`. */
  file: string
  /** The kind of file: the key of a service account, or `client_id`, `client_secret` and `refresh_token`. */
  mode: Mode
  /** The person in whose name a service account acts (domain-wide delegation). */
  subject?: string | undefined
  scope: string
  /** The address to request tokens from, when the file has no `token_uri`. */
  tokenUri: string
}

export interface SignedIn {
  token: string
  /** The address with which files have to be shared; null when the file does not name it. */
  email: string | null
}

const FIELDS = {
  service_account: ['client_email', 'private_key'],
  oauth: ['client_id', 'client_secret', 'refresh_token'],
}
const WANTED = {
  service_account: 'the key of a service account (IAM & Admin → Service accounts → Keys), as Google gave it',
  oauth: 'a JSON file with client_id, client_secret and the refresh_token of a person',
}
const SECRET = ['private_key', 'client_secret', 'refresh_token']

/** Signs in. `renew` requests a new token. Throws an AgentError with `sent: 'no'`. */
export async function googleSignIn(
  context: AgentContext<unknown>,
  account: GoogleAccount,
  renew = false,
): Promise<SignedIn> {
  const credentials = credentialsOf(context, account)
  // Concealed before any reply can repeat them. The file may have changed since the settings were read.
  for (const name of SECRET) if (typeof credentials[name] === 'string') context.conceal(credentials[name])
  const request = () => tokenRequest(context, account, credentials)
  const token = await accessToken(context, [account, credentials], request, renew)
  return { token, email: account.subject ?? credentials.client_email ?? null }
}

/** The content of the file, which may have changed since the settings were judged. */
function credentialsOf({ agent, callName }: AgentContext<unknown>, account: GoogleAccount): Credentials {
  const found = readCredentials(account)
  if (!('setting' in found)) return found
  const message = `[${callName}] agents.${agent}.${found.setting} ${found.words}`
  throw new AgentError(message, { code: 'invalid_settings', sent: 'no' })
}

/** What is wrong with the settings of an account, in words that continue the key. */
export function whyNoAccount({
  credentials_file: file,
  auth_mode: mode = 'service_account',
  subject,
}: {
  credentials_file?: string | undefined
  auth_mode?: Mode | undefined
  subject?: string | undefined
}): Record<string, string> {
  const found = file === undefined ? {} : readCredentials({ file, mode })
  return {
    ...('setting' in found && { [found.setting]: found.words }),
    ...(mode === 'oauth' && subject !== undefined && { subject: FOR_ITSELF }),
  }
}
const FOR_ITSELF =
  'must not be set with auth_mode oauth, because a person cannot act for another one: remove it, or write service_account as auth_mode'

type Credentials = Record<string, string>
interface Problem {
  setting: 'credentials_file' | 'auth_mode'
  /** They continue the name of the setting, and quote nothing of the file. */
  words: string
}

/** Reads the file of an account. */
function readCredentials({ file, mode }: Pick<GoogleAccount, 'file' | 'mode'>): Credentials | Problem {
  const unusable = (words: string): Problem => ({ setting: 'credentials_file', words })
  const missing = whyNoFile(file, WANTED[mode])
  if (missing !== null) return unusable(missing)
  const content = parsed(readFileSync(fromHome(file), 'utf8'))
  if (content === null) return unusable(`is ${file}, which contains no JSON: write the path of ${WANTED[mode]}`)
  const credentials = content as Credentials
  const lacking = (kind: Mode) => FIELDS[kind].filter(name => typeof credentials[name] !== 'string')
  if (lacking(mode).length === 0) {
    const isKey = mode === 'oauth' || isPrivateKey(credentials.private_key!)
    return isKey
      ? credentials
      : unusable(`is ${file}, whose private_key is incomplete: write the path of ${WANTED[mode]}`)
  }
  if (isObject(content.installed) || isObject(content.web)) {
    return unusable(
      `is ${file}, the file of an OAuth client, which names an application but no account: write the path of ${WANTED.service_account}, or with auth_mode oauth of ${WANTED.oauth}`,
    )
  }
  const other = mode === 'oauth' ? 'service_account' : 'oauth'
  if (lacking(other).length === 0) {
    return { setting: 'auth_mode', words: `must be ${other} for the file ${file}: write ${other}` }
  }
  return unusable(`is ${file}, which has no ${lacking(mode).join(', ')}: write the path of ${WANTED[mode]}`)
}

/** Whether it is a key with which an assertion can be signed (PKCS #8). */
function isPrivateKey(text: string): boolean {
  try {
    return text.includes('-----BEGIN PRIVATE KEY-----') && createPrivateKey(text).asymmetricKeyType === 'rsa'
  } catch {
    return false
  }
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const content: unknown = JSON.parse(text)
    return isObject(content) ? content : null
  } catch {
    // The error would quote the file.
    return null
  }
}

async function tokenRequest(
  context: AgentContext<unknown>,
  { mode, scope, subject, tokenUri }: GoogleAccount,
  credentials: Credentials,
) {
  const uri = credentials.token_uri ?? tokenUri
  const doing = 'sign in to Google'
  const setting = `agents.${context.agent}.credentials_file`
  const hint = `the credentials were refused: check ${setting} and the clock of this machine`
  if (mode === 'oauth') {
    const { client_id = '', client_secret, refresh_token = '' } = credentials
    return { doing, uri, form: refreshForm({ client_id, client_secret, refresh_token }), hint }
  }
  const assertion = await signAssertion(credentials, { scope, subject, audience: uri })
  // Anyone who has the assertion can get a token with it.
  context.conceal(assertion)
  const form = { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }
  if (subject === undefined) return { doing, uri, form, hint }
  const client = credentials.client_id ?? credentials.client_email
  const delegation = `in the admin console of the domain, allow domain-wide delegation to the client ${client} with the scope ${scope}, and check agents.${context.agent}.subject`
  return { doing: `${doing} as ${subject}`, uri, form, hint: delegation }
}

async function signAssertion(
  credentials: Credentials,
  { scope, subject, audience }: { scope: string; subject: string | undefined; audience: string },
): Promise<string> {
  const { importPKCS8, SignJWT } = await import('jose')
  const key = await importPKCS8(credentials.private_key!, 'RS256')
  const { private_key_id: kid } = credentials
  const assertion = new SignJWT({ scope })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(kid && { kid }) })
    .setIssuer(credentials.client_email!)
    .setAudience(audience)
    .setIssuedAt()
    .setExpirationTime('1h')
  if (subject !== undefined) assertion.setSubject(subject)
  return assertion.sign(key)
}
