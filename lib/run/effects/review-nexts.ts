// Finds out what the approval of a review leads to, once the review is on disk: the agents that say what they write may have
// to be loaded first. A kill in between loses nothing, because the tree is then read again, and its reviews with it.

import type { RunId } from '../../files/run-id.ts'
import type { Log } from '../../log/log.ts'
import type { EngineHost } from '../core/core.ts'
import { type Machine, reviewLeadsTo, textOf } from '../steps/steps.ts'
import type { Journal } from '../store/store.ts'

interface Parts {
  machine: Machine
  journal: Journal
  host: Pick<EngineHost, 'leadsTo'>
  stopping: AbortSignal
  log: Log
}

export class ReviewNexts {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Never throws. */
  find(runId: RunId, position: number): void {
    this.#find(runId, position).catch(error => {
      if (this.#parts.stopping.aborted) return
      this.#parts.log.warn('it is not known what the approval of a review leads to', {
        run: runId,
        error: textOf(error),
      })
    })
  }

  async #find(runId: RunId, position: number): Promise<void> {
    const { machine, journal, host, stopping } = this.#parts
    const review = machine.store.reviews.pending(runId, position)
    const live = machine.lives.get(runId)
    if (!review || !live || review.next !== null) return
    const next = await host.leadsTo(review)
    if (stopping.aborted) return
    await journal.write({ root: live.root, apply: () => reviewLeadsTo(machine, review, next) })
  }
}
