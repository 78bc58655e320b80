// What a refusal of an S3-compatible store means, and what to do about it.

import { AgentError } from '../agent/define.ts'

const SETTING = 'agents.objectstore'
/** S3's codes, what they are to us, and what to do: docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html */
const REASONS: [codes: RegExp, code: string, hint: string][] = [
  [/^NoSuch(Key|Bucket)$/, 'not_found', 'check ref: bucket and key, capitals included'],
  [
    /^(InvalidAccessKeyId|SignatureDoesNotMatch|(Invalid|Expired)Token)$/,
    'unauthorized',
    `check ${SETTING}.access_key_id and ${SETTING}.secret_access_key`,
  ],
  [/^AccessDenied$/, 'forbidden', `the credentials of ${SETTING} lack the permission `],
  [
    /^(PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraintException)$/,
    'rejected',
    `the bucket lies elsewhere: check ${SETTING}.region and ${SETTING}.endpoint`,
  ],
  [/^RequestTimeTooSkewed$/, 'rejected', 'set the clock of this machine'],
  [/^InvalidObjectState$/, 'rejected', 'the object is archived: restore it first'],
]
const TRANSIENT =
  /^(UnknownError|InternalError|SlowDown|ServiceUnavailable|RequestTimeout|TooManyRequests|OperationAborted|Timeout|Connection\w+|DNS\w+)$/

/** What is no error of S3's client stays as it is. `doing` begins the message; `permission` is what the call needs. */
export function storeError(error: unknown, doing: string, permission: string): unknown {
  if (!(error instanceof Error && error.name === 'S3Error')) return error
  const { code = '' } = error as { code?: string }
  const [, kind, hint] = REASONS.find(([codes]) => codes.test(code)) ?? []
  const retryable = TRANSIENT.test(code)
  return new AgentError(`${doing}: ${error.message} (${code})`, {
    code: kind ?? (retryable ? 'vendor_error' : 'rejected'),
    retryable,
    cause: error,
    ...(retryable && { hint: `is ${SETTING}.endpoint right, and the store well?` }),
    ...(hint && { hint: kind === 'forbidden' ? hint + permission : hint }),
  })
}
