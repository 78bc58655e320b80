// The error that agents throw, and what it says about the request: whether it may have reached the vendor.

import type { AgentResult } from './agent-result.ts'

export interface AgentErrorOptions {
  /** A short, stable code: `unauthorized`, `not_found`, `timeout` … */
  code?: string
  /** What the reader can do about it. */
  hint?: string
  /** Whether the same call may succeed if it is repeated later; default false. */
  retryable?: boolean
  /**
   * Whether the request may have reached the vendor. `no` removes the receipt of a `once` entry. The default is
   * `unknown`, unless a complete 4xx reply was read. It does not matter while the entry has only sent requests that
   * read: then nothing was written.
   */
  sent?: 'no' | 'unknown'
  /**
   * What was done when only a part of the call was, such as a message that some of its recipients have: a result as `run`
   * returns it. The receipt of a `once` entry keeps it, and the next attempt gets it as `context.delivered`, so that it
   * does the rest alone. With `sent: 'unknown'` the rest is in doubt, and a person decides before there is a next attempt.
   */
  partial?: AgentResult
  cause?: unknown
}

/**
 * The error that an agent throws. It fails the phase with a message that a person can act on.
 * @example throw new AgentError(`there is no item ${ref}`, { code: 'not_found', hint: 'check ref', sent: 'no' })
 */
export class AgentError extends Error {
  override readonly name = 'AgentError'
  readonly code: string
  readonly hint: string | undefined
  readonly retryable: boolean
  readonly sent: 'no' | 'unknown' | undefined
  readonly partial: AgentResult | undefined

  constructor(message: string, options: AgentErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = options.code ?? 'agent_error'
    this.hint = options.hint
    this.retryable = options.retryable ?? false
    this.sent = options.sent
    this.partial = options.partial
  }
}

/** The same error with another value of `sent`. */
export function withSent(error: AgentError, sent: 'no' | 'unknown'): AgentError {
  return new AgentError(error.message, { ...optionsOf(error), sent })
}

/** The same error with another message. */
export function withMessage(error: AgentError, message: string): AgentError {
  return new AgentError(message, optionsOf(error))
}

/** The same error with another hint. */
export function withHint(error: AgentError, hint: string): AgentError {
  return new AgentError(error.message, { ...optionsOf(error), hint })
}

function optionsOf({ code, hint, retryable, sent, partial, cause }: AgentError): AgentErrorOptions {
  return { code, retryable, cause, ...(sent && { sent }), ...(hint && { hint }), ...(partial && { partial }) }
}
