// The error class of cadre: what went wrong, for programs (`code`) and for people (`message`), and what to do (`hint`).
// Any other error is a fault of cadre itself and reaches callers as `internal`, without its text.

/** The error codes of the wire protocol, each with its HTTP status. */
export const STATUS = {
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  invalid_state: 409,
  expired: 410,
  too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
} as const

export type ErrorCode = keyof typeof STATUS

/** One problem of several. `path` is a JSON pointer into the request, or a place in a file. */
export interface Detail {
  path: string
  message: string
  /** For programs: the number that the message says in words. */
  value?: number
}

export interface ErrorBody {
  code: ErrorCode
  message: string
  /** What the code leaves open, as a word for programs. */
  reason?: string
  details?: Detail[]
}

export interface ErrorOptions {
  details?: readonly Detail[]
  reason?: string
  /** Seconds, sent as the `Retry-After` header. */
  retryAfter?: number
  cause?: unknown
}

export class CadreError extends Error {
  override readonly name = 'CadreError'
  readonly code: ErrorCode
  readonly details: readonly Detail[] | undefined
  readonly retryAfter: number | undefined
  readonly reason: string | undefined

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.details = options.details
    this.retryAfter = options.retryAfter
    this.reason = options.reason
  }

  get status(): number {
    return STATUS[this.code]
  }

  /** The details that the message does not repeat. */
  get besides(): readonly Detail[] {
    return (this.details ?? []).filter(({ message }) => !this.message.includes(message))
  }

  /** The `error` object of a failure reply. */
  body(): ErrorBody {
    const { code, message, reason, details } = this
    return { code, message, ...(reason !== undefined && { reason }), ...(details && { details: [...details] }) }
  }
}

/** Whether the same would fail again: what is asked for is wrong or missing, and it is not the disk, the database or a limit. */
export const isLasting = (error: unknown): error is CadreError =>
  error instanceof CadreError && !['unavailable', 'disk_full', 'rate_limited', 'internal'].includes(error.code)

/** What Bun adds to a broken connection. It is advice to whoever wrote the call, not to whoever reads the message. */
const ADVICE =
  / *(?:For more information, pass `verbose: true` in the second argument to fetch\(\)\.?|Is the computer able to access the url\?)/g

/**
 * The text of anything that was thrown. A database error of Drizzle contains the statement with its parameters, which may
 * be secret. What the database said is its cause, so the text is that of the cause.
 */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error && 'params' in thrown && thrown.cause instanceof Error) return messageOf(thrown.cause)
  return (thrown instanceof Error ? thrown.message : String(thrown)).replace(ADVICE, '')
}
