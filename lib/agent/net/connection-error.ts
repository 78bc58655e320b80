// What it means when a request has no reply: whether it may have reached its server, whether another try may help, and what
// to do.

import { messageOf } from '../../error.ts'
import { AgentError } from '../core/agent-error.ts'
import { isOfCertificate, TRUSTING } from './certificate.ts'

const NOT_SENT = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EADDRNOTAVAIL', 'FailedToOpenSocket']

/** Whether a request failed before anything of it left this machine. */
export function isNotSent(error: unknown): boolean {
  return NOT_SENT.includes((error as { code?: string } | null)?.code ?? '')
}

interface Circumstances {
  /** The method and origin. */
  endpoint: string
  /** Whether `timeout` is over, in milliseconds. */
  late: boolean
  timeout: number
  /** Whether the phase was stopped. */
  aborted: boolean
}

/** What was thrown as an error for people, which says whether the request may have reached its server. */
export function classify(error: unknown, { endpoint, late, timeout, aborted }: Circumstances): AgentError {
  if (error instanceof AgentError) return error
  if (aborted) return new AgentError(`${endpoint} was stopped`, { code: 'aborted', sent: 'unknown', cause: error })
  if (late) {
    const message = `${endpoint} did not answer within ${timeout} ms`
    return new AgentError(message, { code: 'timeout', retryable: true, sent: 'unknown', cause: error })
  }
  const { code = '' } = error as { code?: string }
  if (isNotSent(error)) {
    const hint = 'check that the service is running and that the address is correct'
    return new AgentError(`${endpoint}: no connection (${code})`, {
      code: 'network',
      hint,
      retryable: true,
      sent: 'no',
      cause: error,
    })
  }
  if (isOfCertificate(code)) {
    return new AgentError(`${endpoint}: its certificate is not trusted (${code})`, {
      code: 'certificate',
      hint: `for a private CA, start the daemon with ${TRUSTING}`,
      sent: 'no',
      cause: error,
    })
  }
  return new AgentError(`${endpoint}: the connection broke (${code || messageOf(error)})`, {
    code: 'network',
    retryable: true,
    sent: 'unknown',
    cause: error,
  })
}
