// Starts the runs of a concurrency key one after the other, and cancels runs that a later run replaces. Steps name a
// key when one of its runs was queued, started or ended. Everything follows from the rows, so a restart only names it
// again. In a drain no run takes its turn.

import type { Log } from '../../log/log.ts'
import { type Machine, nextForKey, startIfAdmitted, supersede, superseded, textOf } from '../steps/steps.ts'
import type { Journal } from '../store/store.ts'

interface Parts {
  machine: Machine
  journal: Journal
  stopping: AbortSignal
  log: Log
}

export class KeyTurns {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  startNext(key: string): void {
    const { machine } = this.#parts
    for (const { runId, by } of superseded(machine, key)) this.#change(runId, () => supersede(machine, runId, by))
    const next = nextForKey(machine, key)
    if (!next) return
    this.#change(next.run_id, () => {
      if (!machine.world.draining()) startIfAdmitted(machine, next.run_id)
    })
  }

  #change(root: string, apply: () => void): void {
    const { journal, stopping, log } = this.#parts
    if (stopping.aborted) return
    void journal.write({ root, apply }).catch(error => {
      if (!stopping.aborted) log.error('a run cannot take its turn', { run: root, error: textOf(error) })
    })
  }
}
