// Bun's S3 client with what it is given, and nothing that it would take from the daemon's environment; and what a refusal
// of an S3-compatible store means.

import { type AgentContext, AgentError } from '../agent/define.ts'

export interface StoreAccess {
  accessKeyId: string
  secretAccessKey: string
  /** Of temporary keys. */
  sessionToken?: string | undefined
  endpoint: string
  region: string
  bucket: string
}

/**
 * Throws an AgentError `refused` where the environment has a session token and `access` has none: Bun (1.4) adds it to
 * every request, to whatever store, and an empty one does not keep it out.
 */
export function storeClient(access: StoreAccess, env: Record<string, string | undefined> = process.env): Bun.S3Client {
  const { sessionToken, ...rest } = access
  const name = ['S3_SESSION_TOKEN', 'AWS_SESSION_TOKEN'].find(name => env[name])
  if (name && !sessionToken) {
    throw new AgentError(`the daemon's environment has ${name}, which Bun would send along with other keys`, {
      code: 'refused',
      hint: `start the daemon without ${name}; if it belongs to these keys, set session_token to \${env:${name}}`,
      sent: 'no',
    })
  }
  return new Bun.S3Client({ ...rest, ...(sessionToken && { sessionToken }) })
}

/** S3's codes, what they are to us, and what to do: docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html */
const REASONS: [codes: RegExp, code: string, hint: (settings: string) => string][] = [
  [/^NoSuch(Key|Bucket)$/, 'not_found', () => 'check ref: bucket and key, capitals included'],
  [
    /^(InvalidAccessKeyId|SignatureDoesNotMatch|(Invalid|Expired)Token)$/,
    'unauthorized',
    settings => `check ${settings}.access_key_id and ${settings}.secret_access_key`,
  ],
  [/^AccessDenied$/, 'forbidden', settings => `the credentials of ${settings} lack the permission `],
  [
    /^(PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraintException)$/,
    'rejected',
    settings => `the bucket lies elsewhere: check ${settings}.region and ${settings}.endpoint`,
  ],
  [/^RequestTimeTooSkewed$/, 'rejected', () => 'set the clock of this machine'],
  [/^InvalidObjectState$/, 'rejected', () => 'the object is archived: restore it first'],
]
const TRANSIENT =
  /^(UnknownError|InternalError|SlowDown|ServiceUnavailable|RequestTimeout|TooManyRequests|OperationAborted|Timeout|Connection\w+|DNS\w+)$/

/** What is no error of S3's client stays as it is. `doing` follows the place of the call; `permission` is what the call needs. */
export function storeError(
  { agent, place }: Pick<AgentContext, 'agent' | 'place'>,
  error: unknown,
  doing: string,
  permission: string,
): unknown {
  if (!(error instanceof Error && error.name === 'S3Error')) return error
  const { code = '' } = error as { code?: string }
  const settings = `agents.${agent}`
  const [, kind, hintOf] = REASONS.find(([codes]) => codes.test(code)) ?? []
  const hint = hintOf?.(settings)
  const retryable = TRANSIENT.test(code)
  return new AgentError(`[${place}] ${doing}: ${error.message} (${code})`, {
    code: kind ?? (retryable ? 'vendor_error' : 'rejected'),
    retryable,
    cause: error,
    ...(retryable && { hint: `is ${settings}.endpoint right, and the store well?` }),
    ...(hint && { hint: kind === 'forbidden' ? hint + permission : hint }),
  })
}
