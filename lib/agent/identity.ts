// The id by which the vendor knows an entry, chosen before the entry is sent: one that the vendor gave out beforehand, for
// example. All attempts use the same id, so that the vendor itself recognizes a repetition.

import { AgentError } from './core/agent-error.ts'

/** See `identity` of AgentContext. */
export interface Identity {
  (): Promise<string | null>
  (make: () => string | Promise<string>): Promise<string>
}

/** Where the value of one entry is kept. */
export interface Kept {
  read(): string | null
  /** Keeps the value unless there is one. Resolves once it outlasts a crash. */
  keep(value: string): void | Promise<void>
}

const MOST = 1_000

export function identityIn({ read, keep }: Kept): Identity {
  const identity = async (make?: () => string | Promise<string>): Promise<string | null> => {
    const known = read()
    if (known !== null || !make) return known
    const value = await make()
    if (typeof value !== 'string' || value === '' || value.length > MOST) {
      throw new AgentError(`identity: the value must be a text of 1 to ${MOST} characters`, { sent: 'no' })
    }
    await keep(value)
    const kept = read()
    if (kept !== null) return kept
    throw new AgentError('the run is gone: nothing was sent', { code: 'aborted', sent: 'no' })
  }
  return identity as Identity
}

/** An identity that lasts as long as `values`, in which it has the name `key`. */
export function identityAmong(values: Map<string, string>, key: string): Identity {
  return identityIn({ read: () => values.get(key) ?? null, keep: value => void values.set(key, value) })
}
