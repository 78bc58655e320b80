// Fills the lines of a log: first with everything that was written, then with what the events of the run tell. A gap in
// the numbers of a run, as a lost connection may leave one, is read again.

import { signal } from '@preact/signals'
import { GetLogs } from '../../wire/calls/runs.ts'
import type { LogLine, TreeLines } from '../../wire/records/run-records.ts'
import { call, logPieces } from '../kit/api.ts'
import { Lines } from './lines.ts'
import type { Live } from './live.ts'

const PAGE = 1_000

export class LogFeed {
  readonly lines = new Lines()
  readonly error = signal<unknown>(null)
  /** Whether everything that was written before has been read. */
  readonly complete = signal(false)
  readonly #live: Live
  readonly #runId: string
  readonly #below: boolean
  readonly #gone = new AbortController()
  /** What was told while something else was being read. */
  #waiting: TreeLines[] = []
  /** Runs of which lines are missing. */
  readonly #behind = new Set<string>()
  #busy = true

  constructor(live: Live, runId: string, below: boolean) {
    this.#live = live
    this.#runId = runId
    this.#below = below
    live.listeners.add(this.#listen)
    // The last lines may come with the end of the run.
    const unsubscribe = live.run.subscribe(run => {
      if (run && run.completed_at !== null) this.#miss(this.#runId)
    })
    this.#gone.signal.addEventListener('abort', unsubscribe)
    void this.#read()
  }

  close(): void {
    this.#gone.abort()
    this.#live.listeners.delete(this.#listen)
  }

  readonly #listen = (run_id: string, lines: readonly LogLine[]): void => {
    if (!this.#below && run_id !== this.#runId) return
    const told = { run_id, lines: [...lines] }
    if (this.#busy) this.#waiting.push(told)
    else this.#take(told)
  }

  async #read(): Promise<void> {
    const { signal } = this.#gone
    try {
      for await (const piece of logPieces(this.#runId, this.#below, signal)) this.lines.add(piece)
    } catch (thrown) {
      if (!signal.aborted) this.error.value = thrown
    }
    this.lines.tell()
    this.complete.value = true
    await this.#catchUp()
  }

  #take(told: TreeLines): void {
    const next = this.lines.last(told.run_id) + 1
    if (told.lines.some(({ seq }) => seq === next)) this.lines.add(told)
    else if (told.lines.some(({ seq }) => seq > next)) this.#miss(told.run_id)
  }

  #miss(runId: string): void {
    this.#behind.add(runId)
    if (this.#busy) return
    this.#busy = true
    void this.#catchUp()
  }

  /** Reads what is missing, and takes what was told meanwhile, until nothing is missing. */
  async #catchUp(): Promise<void> {
    const { signal } = this.#gone
    for (;;) {
      for (const told of this.#waiting.splice(0)) this.#take(told)
      const [run_id] = this.#behind
      if (run_id === undefined || signal.aborted) break
      this.#behind.delete(run_id)
      try {
        for (;;) {
          const { lines } = await call(GetLogs, { run_id, after_seq: this.lines.last(run_id), limit: PAGE })
          if (signal.aborted) return
          this.lines.add({ run_id, lines })
          // A reply has fewer lines than were asked for when they are long.
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
