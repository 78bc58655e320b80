// Fills the lines of a log: first with the stored lines, then with the lines of the event stream. When numbers of lines are
// missing, for example after a lost connection, it reads these lines again.

import { signal } from '@preact/signals'
import { GetLogs } from '../../wire/calls/runs.ts'
import type { LogLine, TreeLines } from '../../wire/records/run-records.ts'
import { call } from '../kit/api.ts'
import type { Live } from './live.ts'
import { Lines } from './log/lines.ts'
import { logPieces } from './streams.ts'

const PAGE = 1_000

export class LogFeed {
  readonly lines = new Lines()
  readonly error = signal<unknown>(null)
  /** Whether all stored lines have been read. */
  readonly complete = signal(false)
  readonly #live: Live
  readonly #runId: string
  readonly #below: boolean
  readonly #closed = new AbortController()
  /** The lines of events that came while others were being read. */
  #postponed: TreeLines[] = []
  /** The runs with missing lines. */
  readonly #incomplete = new Set<string>()
  #busy = true

  constructor(live: Live, runId: string, below: boolean) {
    this.#live = live
    this.#runId = runId
    this.#below = below
    live.listeners.add(this.#listen)
    // The last lines may come with the end of the run.
    const unsubscribe = live.run.subscribe(run => {
      if (run && run.completed_at !== null) this.#reread(this.#runId)
    })
    this.#closed.signal.addEventListener('abort', unsubscribe)
    void this.#read()
  }

  close(): void {
    this.#closed.abort()
    this.#live.listeners.delete(this.#listen)
  }

  readonly #listen = (run_id: string, lines: readonly LogLine[]): void => {
    if (!this.#below && run_id !== this.#runId) return
    const update = { run_id, lines: [...lines] }
    if (this.#busy) this.#postponed.push(update)
    else this.#addInOrder(update)
  }

  async #read(): Promise<void> {
    const { signal } = this.#closed
    try {
      for await (const piece of logPieces(this.#runId, this.#below, signal)) this.lines.add(piece)
    } catch (thrown) {
      if (!signal.aborted) this.error.value = thrown
    }
    this.lines.publishCount()
    this.complete.value = true
    await this.#catchUp()
  }

  #addInOrder(update: TreeLines): void {
    const next = this.lines.last(update.run_id) + 1
    if (update.lines.some(({ seq }) => seq === next)) this.lines.add(update)
    else if (update.lines.some(({ seq }) => seq > next)) this.#reread(update.run_id)
  }

  #reread(runId: string): void {
    this.#incomplete.add(runId)
    if (this.#busy) return
    this.#busy = true
    void this.#catchUp()
  }

  /** Reads missing lines, and adds those of the meantime, until no line is missing. */
  async #catchUp(): Promise<void> {
    const { signal } = this.#closed
    for (;;) {
      for (const update of this.#postponed.splice(0)) this.#addInOrder(update)
      const [run_id] = this.#incomplete
      if (run_id === undefined || signal.aborted) break
      this.#incomplete.delete(run_id)
      try {
        for (;;) {
          const { lines } = await call(GetLogs, { run_id, after_seq: this.lines.last(run_id), limit: PAGE })
          if (signal.aborted) return
          this.lines.add({ run_id, lines })
          // When lines are long, a reply has fewer of them than the limit.
          if (lines.length === 0) break
        }
        this.error.value = null
      } catch (thrown) {
        this.error.value = thrown
      }
    }
    this.#busy = false
  }
}
