// What the engine reports to the link with a hub. The link decides what it sends to the hub, and when.

import type { RunId } from '../../files/run-id.ts'
import type { Change } from '../steps/steps.ts'

export interface Outbox {
  /**
   * Called in the transaction of these changes, so that neither exists without the other. A change that cannot be
   * recorded is given to `failed`.
   */
  record(changes: Iterable<Change>, failed: (change: Change, error: unknown) => void): void
  /** Called in a transaction: an attempt ended, and the log of its run has lines up to `last`. */
  recordLog(runId: RunId, last: number): void
  /** Called in a transaction: the log of an ended run is complete with line `last`. */
  endLog(runId: RunId, last: number): void
  /** Lines up to `last` were written to the log of a run that has not ended. */
  logGrew(runId: RunId, last: number): void
  /** Called after a commit in which something was recorded. */
  committed(): void
}
