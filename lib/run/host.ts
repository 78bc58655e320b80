// What the machine is told of attempts, and what it asks of its owner: time, agents, timers, files and secrets.

import type { JsonObject } from '../json.ts'
import type { Bundle, EventName, Team } from '../team/team.ts'
import type { LiveRun } from './live.ts'
import type { RunError, RunRow } from './records.ts'
import type { ChangedRun } from './reopening.ts'
import type { PhaseChange } from './store.ts'

/** How an attempt of a leaf phase ended. */
export type Outcome =
  | ({ kind: 'completed' } & PhaseChange)
  | { kind: 'failed'; error: RunError; retryable: boolean; change?: PhaseChange }
  | { kind: 'cancelled' }
  /** It may have written outside, and nobody can tell: a person must. */
  | { kind: 'unknown'; error: RunError; entries: string[] }

/** A run that changed; it need not be in memory. */
export interface ChangedPlace {
  row: ChangedRun
  team: Team
}

/** What the machine asks of its owner. Called after the commit, but for `changed` and `event`. */
export interface MachineHost {
  now(): number
  /** Whether leaf phases have to wait, whatever slots are free. */
  paused(): boolean
  launch(live: LiveRun, position: number, attempt: number): void
  abort(live: LiveRun, position: number, attempt: number): void
  /** Whether this process executes that attempt. */
  executing(runId: string, position: number, attempt: number): boolean
  /** Applies `change` in a journal change at `at` (epoch milliseconds) or soon after. */
  schedule(at: number, change: () => void): void
  /** Rows that this step changed; the run itself when `position` is null. */
  changed(run: ChangedPlace, position: number | null): void
  /** For listeners. */
  event(live: LiveRun, event: EventName, position: number | null): void
  reviewChanged(live: LiveRun, position: number): void
  receiptChanged(live: LiveRun, position: number, entry: string): void
  runEnded(live: LiveRun): void
  /** An open run that could not be read back. */
  unreadable(row: RunRow, thrown: unknown): void
  /** The state folder of a run; sub-runs' files are linked from one to the other. */
  stateDir(runId: string): string
  bundle(id: string): Bundle
  /** Replaces every secret that a tree knows. What expressions give may hold one, and goes through it before it is recorded. */
  mask<T>(rootId: string, value: T): T
  /** The secret inputs of a top run, which its row holds masked. */
  secretInputs(rootId: string): JsonObject
}
