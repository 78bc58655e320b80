// What the change of a run says besides its row: how much log there is, what its listeners were asked to send, and why it
// ended or waits. It is read when the change is sent, so that the engine does not wait for it.

import { type RunRow, reportedWhy, type Step, type Store } from '../../../run/engine.ts'
import type { Bundle } from '../../../team/team.ts'
import { cut, jsonBytes, within } from '../../../wire/budget.ts'
import { MAX_CHANGE_BYTES, type SyncChange } from '../../../wire/records/changes.ts'
import { bounded } from '../../../wire/records/explain.ts'
import type { Explanation } from '../../../wire/records/run-records.ts'
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
  isBare: boolean
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
  of(runId: string, told: { state: string; attempt: number }, bytes: number, steps: Map<string, Step>): Details {
    const { rows, isBare } = this.#options
    const run = rows.present(runId)
    if (!run) return {}
    const { logged: lines, log_ended } = run
    const log = isBare ? { lines: 0, ended: true, kept: true } : { lines, ended: log_ended === 1, kept: false }
    const isPresent = run.state === told.state && run.attempt === told.attempt
    return { log, ...(isPresent && this.#present(run, MAX_CHANGE_BYTES - FRAME_BYTES - bytes, steps)) }
  }

  #present(run: Pick<RunRow, 'id' | 'state'>, room: number, steps: Map<string, Step>): Details {
    const { store, isBare } = this.#options
    const deliveries = store.deliveries.of(run.id).map(({ listener, event, state, error }) => {
      // What another system said stays here with `isBare`.
      return { phase: listener, event, state, error: error === null || isBare ? null : cut(error, ERROR_BYTES) }
    })
    const told = within(deliveries, jsonBytes, room / 2)
    const why = this.#explanation(run, steps)
    return {
      ...(told.length > 0 && { deliveries: told }),
      ...(why !== undefined && { why: why && bounded(why, room - jsonBytes(told)) }),
    }
  }

  /** Null where there is nothing to explain. A run that cannot be explained is reported all the same, without a word. */
  #explanation(run: Pick<RunRow, 'id' | 'state'>, steps: Map<string, Step>): Explanation | null | undefined {
    const { store, bundle, isBare } = this.#options
    try {
      return reportedWhy(store, run, bundle, { steps, isBare })
    } catch {
      return undefined
    }
  }
}
