// Interrupted runs: runs that have not ended and that no process executes. The database has them as `running`, which
// they will be again when a process takes them up. People are shown `interrupted`.

import type { RunPhases, Why } from '../run/engine.ts'

/** A record with the state that is shown to people. */
export type Shown<T extends { state: string }> = Omit<T, 'state'> & { state: T['state'] | 'interrupted' }

export type ShownPhases = Omit<Shown<RunPhases>, 'phases'> & { phases: Shown<RunPhases['phases'][number]>[] }

/** A record of a tree that no process executes. */
export function shown<T extends { state: string }>(record: T): Shown<T> {
  return record.state === 'running' ? { ...record, state: 'interrupted' } : record
}

export function shownPhases(found: RunPhases): ShownPhases {
  return { ...shown(found), phases: found.phases.map(shown) }
}

/** `rootId` is the top run, which is the one to continue. */
export function shownWhy(found: Why, rootId: string): Why {
  const chain = found.chain.map(shown)
  if (chain[0]?.state !== 'interrupted') return found
  const text = `The run was interrupted: no process goes on with it. Continue it with: bun daemon.ts resume ${rootId}. ${found.text}`
  return { ...found, chain, text }
}
