// Completes the end of a run: waits for its deliveries, removes its secrets, reports the end of its log to the hub, and
// notifies callers that wait for the end. If the run is resumed in the meantime, everything is kept and the callers
// continue to wait.

import type { RunId } from '../../files/run-id.ts'
import type { Log } from '../../log/log.ts'
import type { DeliverySender, LaterLookups, RootSecrets, RunLogs } from '../attempt/attempt.ts'
import { textOf } from '../steps/steps.ts'
import type { Journal, Store } from '../store/store.ts'
import type { Followers } from '../views/views.ts'
import type { Outbox } from './outbox.ts'

interface Parts {
  store: Store
  journal: Journal
  logs: RunLogs
  messenger: DeliverySender
  looks: LaterLookups
  secrets: RootSecrets
  followers: Followers
  outbox: Outbox | undefined
  /** Whether a top run is being deleted or resumed at the moment. */
  isHeld(runId: RunId): boolean
  stopping: AbortSignal
  log: Log
}

export class AfterRun {
  readonly #parts: Parts
  readonly #going = new Set<Promise<void>>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** `settled`: the end needs no work outside, unless deliveries are still being sent. */
  completeEnd(runId: RunId, root: string, settled: boolean): void {
    const { logs, looks, messenger, secrets, followers } = this.#parts
    if (looks.any) looks.wake()
    if (!settled || messenger.isSending(runId)) return this.#keep(this.#wait(runId, root))
    logs.close(runId)
    if (runId === root) void secrets.forget(runId).catch(() => {})
    followers.ended(runId)
  }

  /** Resolves when the ends that are being completed are complete. */
  async idle(): Promise<void> {
    await Promise.all(this.#going)
  }

  #keep(work: Promise<void>): void {
    this.#going.add(work)
    void work.finally(() => this.#going.delete(work))
  }

  /** Closes the log, and reports to the hub that it is complete. */
  #endLog(runId: RunId): void {
    const { store, journal, logs, outbox, stopping } = this.#parts
    if (!outbox || stopping.aborted || !store.runs.isSynced(runId)) return logs.close(runId)
    const last = logs.end(runId)
    const reported = journal
      .write({ root: null, apply: () => outbox.endLog(runId, last) })
      .then(() => outbox.committed())
    this.#keep(reported.catch(() => {}))
  }

  /** Never throws. */
  async #wait(runId: RunId, root: string): Promise<void> {
    const { store, journal, logs, messenger, secrets, followers, isHeld, log } = this.#parts
    if (messenger.isSending(runId)) logs.close(runId)
    await messenger.idle(runId)
    if (!this.#hasEnded(runId)) return
    // A listener may have written to the log in the meantime. What could not be delivered yet may write to it later.
    if (store.deliveries.isPending(runId)) logs.close(runId)
    else this.#endLog(runId)
    const isTop = runId === root && !isHeld(runId)
    try {
      if (isTop) await secrets.forget(runId)
    } catch (error) {
      log.warn('the secret inputs of a run could not be removed', { run: runId, error: textOf(error) })
    }
    if (!this.#hasEnded(runId)) return
    followers.ended(runId)
    if (!isTop || store.runs.isSettled(runId)) return
    await journal.write({ root: null, apply: () => store.runs.settle(runId) }).catch(() => {})
  }

  #hasEnded(runId: RunId): boolean {
    return !this.#parts.stopping.aborted && !this.#parts.store.runs.isOpen(runId)
  }
}
