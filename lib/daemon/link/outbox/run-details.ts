// What the change of a run says besides its row: how much log there is, what its listeners were asked to send, and why it
// ended or waits. It is read when the change is sent, so that the engine does not wait for it.

import { messageOf } from '../../../error.ts'
import type { Log } from '../../../log/log.ts'
import { type RunRow, reportedWhy, type Step, type Store } from '../../../run/engine.ts'
import type { Bundle } from '../../../team/team.ts'
import { cut, jsonBytes, MAX_CHANGE_BYTES, within } from '../../../wire/budget.ts'
import type { SyncChange } from '../../../wire/records/changes.ts'
import type { Explanation } from '../../../wire/records/run-records.ts'
import { bounded } from '../../../wire/why/explain.ts'
import type { OutboxRows } from './outbox-rows.ts'

/** The rest of a change: its number, its run, its kind. */
const FRAME_BYTES = 4_000
/** What stands of the error of a delivery, in bytes. */
const ERROR_BYTES = 2_000

type Details = Pick<SyncChange<'run'>['run'], 'log' | 'deliveries' | 'why'>

interface Options {
  store: Store
  rows: OutboxRows
  bundle: (id: string) => Bundle
  /** Whether logs, and what other systems said, stay on this machine. */
  isStatusOnly: boolean
  log: Log
}

export class RunDetails {
  readonly #options: Options

  constructor(options: Options) {
    this.#options = options
  }

  /**
   * What is said of a run that a change has in `state`, as far as the run still is in it. `bytes` is the size of the change
   * so far. Explanations of the same tree share `steps`.
   */
  of(runId: string, change: { state: string; attempt: number }, bytes: number, steps: Map<string, Step>): Details {
    const { rows, isStatusOnly } = this.#options
    const run = rows.present(runId)
    if (!run) return {}
    const { logged: lines, log_ended } = run
    const log = isStatusOnly ? { lines: 0, ended: true, kept: true } : { lines, ended: log_ended === 1, kept: false }
    const isPresent = run.state === change.state && run.attempt === change.attempt
    return { log, ...(isPresent && this.#present(run, MAX_CHANGE_BYTES - FRAME_BYTES - bytes, steps)) }
  }

  #present(run: Pick<RunRow, 'id' | 'state'>, bytesLeft: number, steps: Map<string, Step>): Details {
    const { store, isStatusOnly } = this.#options
    const deliveries = store.deliveries.of(run.id).map(({ listener, event, state, error }) => {
      // What another system said stays here with `isStatusOnly`.
      return { phase: listener, event, state, error: error === null || isStatusOnly ? null : cut(error, ERROR_BYTES) }
    })
    const reported = within(deliveries, jsonBytes, bytesLeft / 2)
    const why = this.#explanation(run, steps)
    return {
      ...(reported.length > 0 && { deliveries: reported }),
      ...(why !== undefined && { why: why && bounded(why, bytesLeft - jsonBytes(reported)) }),
    }
  }

  /** Null where there is nothing to explain. A run that cannot be explained is reported without an explanation. */
  #explanation(run: Pick<RunRow, 'id' | 'state'>, steps: Map<string, Step>): Explanation | null | undefined {
    const { store, bundle, isStatusOnly, log } = this.#options
    try {
      return reportedWhy(store, run, bundle, { steps, isBare: isStatusOnly })
    } catch (error) {
      log.warn('a run is reported without an explanation of its end', { run: run.id, error: messageOf(error) })
      return undefined
    }
  }
}
