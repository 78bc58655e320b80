// Interrupted runs: runs that have not ended and that no process executes. The database has them as `running`, which
// they will be again when a process takes them up. People are shown `interrupted`.

import { commandLine } from '../../program/called-as.ts'
import type { RunPhases } from '../../run/engine.ts'
import { refuseInPlace } from '../../wire/in-place.ts'
import type { Explanation, Why } from '../../wire/records/run-records.ts'

/** A record with the state that is shown to people. */
export type Shown<T extends { state: string }> = Omit<T, 'state'> & { state: T['state'] | 'interrupted' }

export type ShownPhases = Omit<Shown<RunPhases>, 'phases'> & { phases: Shown<RunPhases['phases'][number]>[] }

/**
 * The filter of a list in terms of the database, which knows `running` only. `left` are the top runs that no process
 * continues. Throws `invalid_request` for the name of a map in place, whose runs are listed with those above.
 */
export function storedFilter<F extends { state?: string; team?: string }>(filter: F, left: readonly string[]) {
  refuseInPlace(filter.team)
  if (filter.state === 'interrupted') return { ...filter, state: 'running', trees: { only: true, roots: left } }
  return filter.state === 'running' ? { ...filter, trees: { only: false, roots: left } } : filter
}

/** A record of a tree that no process executes. */
export function shown<T extends { state: string }>(record: T): Shown<T> {
  return record.state === 'running' ? { ...record, state: 'interrupted' } : record
}

export function shownPhases(found: RunPhases): ShownPhases {
  return { ...shown(found), phases: found.phases.map(shown) }
}

const INTERRUPTED = 'The run was interrupted: no process goes on with it.'
const COPIED =
  'The run was unfinished when this home was copied, and the original home may have continued it. It waits until a person resumes it here. cadre then first looks up what the run may have written.'

/**
 * `left` is the top run when no process continues it: it is then the run that has to be resumed. `isHeld`: because the home
 * was copied.
 */
export function shownWhy(found: Explanation, left: string | null, isHeld: boolean): Why {
  const why = isHeld ? COPIED : INTERRUPTED
  const isLeft = left !== null && (isHeld || ['running', 'queued'].includes(found.chain[0]?.state ?? ''))
  const lines = isLeft ? [why, ...found.lines] : found.lines
  const next = isLeft ? [['resume', left]] : found.next
  const text = [...lines, ...next.map(args => `  ${commandLine(...args)}`)].join('\n')
  return { ...found, text, lines, next, chain: left === null ? found.chain : found.chain.map(shown) }
}
