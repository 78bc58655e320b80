// Notifies followers of changes in runs, and wakes callers that wait for the end of a run.

import { messageOf } from '../../error.ts'
import type { Log } from '../../log/log.ts'
import type { LogLine } from '../core/core.ts'

/** A notice that followers receive after a commit. */
export interface Notice {
  rootId: string
  runId: string
  kind: 'run' | 'phase' | 'review' | 'log'
  position: number | null
  lines?: readonly LogLine[]
}

export class Followers {
  readonly #log: Log
  readonly #listeners = new Set<(notice: Notice) => void>()
  readonly #waiting = new Map<string, (() => void)[]>()

  constructor(log: Log) {
    this.#log = log
  }

  get any(): boolean {
    return this.#listeners.size > 0
  }

  /** Calls `listener` with every notice until the returned function is called. */
  follow(listener: (notice: Notice) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Passes the notice to all followers. A follower that throws does not affect the others. */
  notify(notice: Notice): void {
    for (const listener of this.#listeners) {
      try {
        listener(notice)
      } catch (error) {
        this.#log.error('a follower could not be notified', { kind: notice.kind, error: messageOf(error) })
      }
    }
  }

  /** Resolves with the next `ended` of the run. */
  untilEnded(runId: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.set(runId, [...(this.#waiting.get(runId) ?? []), resolve])
    return promise
  }

  ended(runId: string): void {
    const waiting = this.#waiting.get(runId) ?? []
    this.#waiting.delete(runId)
    for (const resolve of waiting) resolve()
  }
}
