// The lines of logs that a report of a daemon has, as far as the quota of the realm has room for them.

import type { Tables } from '../../../db/hub/schema.ts'
import type { Db } from '../../../db/hub/store.ts'
import type { endTurn } from '../../turns.ts'
import { addBytes, logBytesLeft } from '../access/quotas.ts'
import type { Hub } from '../core/hub.ts'
import { logStateWithLines } from './log-state.ts'
import { putLogs, type RunFacts } from './report-statements.ts'

export class ReportedLines {
  readonly #hub: Hub
  readonly #tx: Db
  readonly #realmId: string
  readonly #rows: Tables['logs']['$inferSelect'][] = []
  /** How many bytes of lines the realm has room for; null: any number. */
  #bytesLeft: number | null = null
  #bytes = 0
  /** How many lines were left out. */
  cut = 0

  constructor(hub: Hub, tx: Db, realmId: string) {
    this.#hub = hub
    this.#tx = tx
    this.#realmId = realmId
  }

  /** Reads how much room there is, before lines are added. */
  async readRoom(): Promise<void> {
    this.#bytesLeft = await logBytesLeft(this.#hub, this.#tx, this.#realmId)
  }

  /** Adds the lines of a change, and says in `run` which lines it has now. */
  add(run: RunFacts, change: Parameters<typeof logStateWithLines>[1]): void {
    const missing = run.log_missing ?? []
    const isNew = (seq: number) => seq > run.log_last || missing.some(({ from, to }) => seq >= from && seq <= to)
    const kept = change.lines.filter(({ seq, text }) => !isNew(seq) || this.#hasRoom(run, Buffer.byteLength(text)))
    for (const { seq, phase, at, stream, text } of kept) {
      this.#rows.push({ run_id: run.run_id, seq, phase, at, stream, text })
    }
    const to = change.to ?? change.lines.reduce((last, { seq }) => Math.max(last, seq), run.log_last)
    Object.assign(run, logStateWithLines(run, { ...change, lines: kept, to }))
  }

  /** Counts the bytes of a line. One for which the realm has no room is left out, and its run says so. */
  #hasRoom(run: RunFacts, bytes: number): boolean {
    if (this.#bytesLeft !== null && bytes > this.#bytesLeft - this.#bytes) {
      run.log_cut = true
      this.cut++
      return false
    }
    run.log_bytes += bytes
    this.#bytes += bytes
    return true
  }

  async write(pause: typeof endTurn): Promise<void> {
    await putLogs(this.#hub.store, this.#tx, this.#rows, pause)
    if (this.#bytesLeft !== null && this.#bytes > 0) {
      await addBytes(this.#hub, this.#tx, this.#realmId, 'log_bytes', this.#bytes)
    }
  }
}
