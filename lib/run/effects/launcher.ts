// Executes an attempt once its start is durable, and records its outcome.

import type { Log } from '../../log/log.ts'
import type { Attempts, RunLogs } from '../attempt/attempt.ts'
import type { LiveRun } from '../core/core.ts'
import type { AttemptFiles } from '../files/files.ts'
import { attemptEnded, type Effect, type Machine, type Outcome, textOf } from '../steps/steps.ts'
import { dropSmallFilesBelow, type Journal, putSmallFiles } from '../store/store.ts'
import type { Outbox } from './outbox.ts'

interface Parts {
  machine: Machine
  journal: Journal
  attempts: Attempts
  logs: RunLogs
  outbox: Outbox | undefined
  stopping: AbortSignal
  log: Log
}

export class Launcher {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  launch({ runId, position, attempt }: Extract<Effect, { kind: 'launch' }>): void {
    const { machine, attempts, stopping, log } = this.#parts
    const live = machine.live(runId, position, attempt)
    // If the tree was read again in the group that started this attempt, it starts another attempt instead.
    if (!live || live.phases[position]!.state !== 'running' || stopping.aborted) return
    void attempts
      .run(live, position, attempt, (outcome, files) => this.#record(live, position, attempt, outcome, files))
      .catch(error => {
        log.error('an attempt could not be recorded', { run: runId, position, error: textOf(error) })
      })
  }

  /** An attempt that is interrupted because the process stops gets no outcome. The next start opens a new attempt. */
  async #record(
    live: LiveRun,
    position: number,
    attempt: number,
    outcome: Outcome,
    files: AttemptFiles,
  ): Promise<void> {
    const { machine, journal, logs, outbox, stopping } = this.#parts
    logs.flush()
    if (stopping.aborted && outcome.kind !== 'completed') return
    const rows = await journal.write({
      root: live.root,
      apply(): number[] {
        if (live.row.synced) outbox?.recordLog(live.id, logs.last(live.id))
        if (!attemptEnded(machine, live.id, position, attempt, outcome) || outcome.kind !== 'completed') return []
        const { db } = machine.store
        if (attempt > 1) dropSmallFilesBelow(db, live.id, `files/${live.phase(position).name}`)
        return outcome.small ? putSmallFiles(db, live.id, outcome.small, machine.world.lived()) : []
      },
    })
    if (rows.length > 0) files.recorded(rows[0]!, rows.at(-1)!)
  }
}
