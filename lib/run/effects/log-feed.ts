// Passes the log lines of runs on: to followers at once, and to the hub's outbox once a second while a phase runs. The
// ends of attempts and of runs put their last lines into the outbox themselves.

import type { RunId } from '../../files/run-id.ts'
import type { LogLine } from '../core/core.ts'
import type { Machine } from '../steps/steps.ts'
import type { Journal } from '../store/store.ts'
import type { Followers, Outbox } from '../views/views.ts'

/** How often the log of a running phase is sent to the hub. */
const SYNC_MS = 1_000

interface Parts {
  machine: Machine
  journal: Journal
  followers: Followers
  outbox: Outbox | undefined
  /** The number of the last line of a run's log. */
  last(runId: RunId): number
  stopping: AbortSignal
}

export class LogFeed {
  readonly #parts: Parts
  /** Runs whose log has lines that are not in the outbox yet. */
  readonly #unsynced = new Set<RunId>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Passes on lines that have been written to the file. */
  tell(runId: RunId, lines: readonly LogLine[]): void {
    const { machine, followers, outbox, stopping } = this.#parts
    const live = machine.lives.get(runId)
    // A listener may write to the log of a run that has ended.
    const rootId = live?.root ?? (followers.any ? machine.store.runs.get(runId)?.root_id : undefined)
    if (followers.any && rootId !== undefined) {
      followers.tell({ rootId, runId, kind: 'log', position: null, lines })
    }
    if (!live?.row.synced || !outbox || stopping.aborted) return
    if (this.#unsynced.size === 0) setTimeout(() => this.#sync(outbox), SYNC_MS).unref()
    this.#unsynced.add(runId)
  }

  #sync(outbox: Outbox): void {
    const { machine, journal, last, stopping } = this.#parts
    const runs = [...this.#unsynced]
    this.#unsynced.clear()
    if (stopping.aborted) return
    const apply = () => {
      for (const runId of runs) if (machine.lives.has(runId)) outbox.recordLog(runId, last(runId))
    }
    void journal
      .write({ root: null, apply })
      .then(() => outbox.committed())
      .catch(() => {})
  }
}
