// Bun's S3 client with explicit credentials, protected from those in the daemon's environment, and the meaning of
// refusals of an S3-compatible store.

import { type AgentContext, AgentError } from '../agent/define.ts'

export interface StoreAccess {
  accessKeyId: string
  secretAccessKey: string
  /** The session token of temporary keys. */
  sessionToken?: string | undefined
  endpoint: string
  region: string
  bucket: string
}

/**
 * Creates the client. Throws an AgentError `refused` when the environment has a session token and `access` has none:
 * Bun 1.4 adds that token to every request to any store, and an empty token in `access` does not prevent it.
 */
export function storeClient(access: StoreAccess, env: Record<string, string | undefined> = process.env): Bun.S3Client {
  const { sessionToken, ...rest } = access
  const name = ['S3_SESSION_TOKEN', 'AWS_SESSION_TOKEN'].find(name => env[name])
  if (name && !sessionToken) {
    throw new AgentError(`the daemon's environment has ${name}, which Bun would send together with other keys`, {
      code: 'refused',
      hint: `start the daemon without ${name}; if it belongs to these keys, set session_token to \${env:${name}}`,
      sent: 'no',
    })
  }
  return new Bun.S3Client({ ...rest, ...(sessionToken && { sessionToken }) })
}

/** S3's error codes with our codes and hints: docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html */
const REASONS: [codes: RegExp, code: string, hint: (settings: string) => string][] = [
  [/^NoSuch(Key|Bucket)$/, 'not_found', () => 'check ref: the bucket and the key, including upper and lower case'],
  [
    /^(InvalidAccessKeyId|SignatureDoesNotMatch|(Invalid|Expired)Token)$/,
    'unauthorized',
    settings => `check ${settings}.access_key_id and ${settings}.secret_access_key`,
  ],
  [/^AccessDenied$/, 'forbidden', settings => `the credentials of ${settings} lack the permission `],
  [
    /^(PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraintException)$/,
    'rejected',
    settings => `the bucket is in another place: check ${settings}.region and ${settings}.endpoint`,
  ],
  [/^RequestTimeTooSkewed$/, 'rejected', () => 'correct the clock of this machine'],
  [/^InvalidObjectState$/, 'rejected', () => 'the object is archived: restore it first'],
]
const TRANSIENT =
  /^(UnknownError|InternalError|SlowDown|ServiceUnavailable|RequestTimeout|TooManyRequests|OperationAborted|Timeout|Connection\w+|DNS\w+)$/

/**
 * Converts an error of the S3 client; any other error is returned unchanged. The message is the place of the call
 * followed by `doing`. `permission` names what the call needs.
 */
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
    ...(retryable && { hint: `check ${settings}.endpoint, and that the store is available` }),
    ...(hint && { hint: kind === 'forbidden' ? hint + permission : hint }),
  })
}
