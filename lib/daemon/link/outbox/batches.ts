// What is sent to the hub next. Changes get their numbers here, and the batch on its way is stored before it is sent, so
// that a number means the same change however often it is sent, and after a restart too. What runs did comes before
// what they said, and every second batch begins with the newest trees, so that a long backlog delays no new run.

import type { RunId } from '../../../files/run-id.ts'
import { type Commit, readLines, type Step, type Store } from '../../../run/engine.ts'
import { jsonBytes } from '../../../wire/budget.ts'
import type { DueLog, OutboxRow, OutboxRows, Turn } from './outbox-rows.ts'
import type { RunDetails } from './run-details.ts'

/** A change as it is sent. */
export interface NumberedChange {
  seq: number
  run_id: string
  attempt: number
  kind: string
  [body: string]: unknown
}

export interface Batch {
  from_seq: number
  changes: NumberedChange[]
  /** About how many bytes the changes are. */
  bytes: number
}

/** Between what the hub has acknowledged and what may have been sent, in numbers of changes. */
export interface Sent {
  acked: number
  last: number
}

/** Where the content of a change is: a row of the outbox, or lines of the log of a run. */
type Reference = number | LogRange

interface LogRange {
  run: RunId
  from: number
  to: number
  /** The log has no more lines. */
  ended: boolean
}

/** The fact `sync`: the last number that the hub has acknowledged, and the batch that follows. */
interface Progress {
  acked: number
  batch: Reference[]
}

/** Maximum number of changes in one batch. */
const MOST_CHANGES = 1_000
/** Maximum size of the log lines in one change, and their number. `MAX_CHANGE_BYTES` of lib/wire is larger. */
const LINES_BYTES = 500_000
const MOST_LINES = 5_000
/** How much the rest of a change adds to its body. */
const FRAME_BYTES = 300
/** How long the runs of one batch may be explained, because nothing else happens meanwhile. */
const EXPLAIN_MS = 50

const PROGRESS = 'sync'

export class Batches {
  readonly #store: Store
  readonly #rows: OutboxRows
  readonly #commit: Commit
  readonly #stateDir: (runId: RunId) => string
  readonly #details: RunDetails
  #turn: Turn = 'newest'
  /** What was chosen and is not acknowledged. */
  #batch: Batch | null = null
  /** How many of its changes were taken. */
  #taken = 0

  constructor(store: Store, rows: OutboxRows, commit: Commit, stateDir: (runId: RunId) => string, details: RunDetails) {
    this.#details = details
    this.#store = store
    this.#rows = rows
    this.#commit = commit
    this.#stateDir = stateDir
  }

  /**
   * What has to be sent next; null when nothing waits. Until it is acknowledged, it is the same again, or with a smaller
   * `maxBytes` the begin of it.
   */
  async take(maxBytes: number): Promise<Batch | null> {
    this.#batch ??= await this.#next(maxBytes)
    if (!this.#batch) return null
    const part = this.#batch.bytes > maxBytes ? beginOf(this.#batch, maxBytes) : this.#batch
    this.#taken = part.changes.length
    return part
  }

  async #next(maxBytes: number): Promise<Batch | null> {
    const { acked, batch } = this.#progress()
    const from_seq = acked + 1
    const changes: NumberedChange[] = []
    const add = (change: Omit<NumberedChange, 'seq'>) =>
      changes.push({ seq: from_seq + changes.length, ...change } as NumberedChange)
    if (batch.length > 0) {
      const steps = new Map<string, Step>()
      for (const reference of batch) add(await this.#again(reference, steps))
      return { from_seq, changes, bytes: sizeOf(changes) }
    }
    const { references, bytes } = await this.#choose(maxBytes, add)
    if (references.length === 0) return null
    await this.#commit(() => this.#setProgress({ acked, batch: references }))
    // It was chosen to fit, by sizes that are only about right.
    return { from_seq, changes, bytes: Math.min(bytes, maxBytes) }
  }

  /** The hub has applied what was taken. */
  async acknowledge(): Promise<void> {
    const { acked, batch } = this.#progress()
    const applied = batch.slice(0, this.#taken)
    await this.#commit(() => {
      this.#rows.drop(applied.filter(reference => typeof reference === 'number'))
      for (const reference of applied) {
        if (typeof reference !== 'number') this.#rows.logSent(reference.run, reference.to, reference.ended)
      }
      this.#setProgress({ acked: acked + applied.length, batch: batch.slice(applied.length) })
    })
    const changes = this.#batch!.changes.slice(applied.length)
    const from_seq = acked + applied.length + 1
    this.#batch = changes.length === 0 ? null : { from_seq, changes, bytes: sizeOf(changes) }
  }

  /** Starts again at number 1. Inside a transaction. */
  restart(): void {
    this.#setProgress({ acked: 0, batch: [] })
    this.#batch = null
  }

  get sent(): Sent {
    // What is on its way is in memory, and is asked for with each batch.
    if (this.#batch) return { acked: this.#batch.from_seq - 1, last: this.#batch.changes.at(-1)!.seq }
    const { acked, batch } = this.#progress()
    return { acked, last: acked + batch.length }
  }

  #progress(): Progress {
    return JSON.parse(this.#store.facts.get(PROGRESS) ?? '{"acked":0,"batch":[]}')
  }

  #setProgress(progress: Progress): void {
    this.#store.facts.set(PROGRESS, JSON.stringify(progress))
  }

  /** Chooses what is sent next, and calls `add` with each change. */
  async #choose(
    maxBytes: number,
    add: (change: Omit<NumberedChange, 'seq'>) => void,
  ): Promise<{ references: Reference[]; bytes: number }> {
    const references: Reference[] = []
    const turn = this.#turn
    this.#turn = turn === 'oldest' ? 'newest' : 'oldest'
    let bytes = 0
    const steps = new Map<string, Step>()
    let spent = 0
    for (const row of this.#rows.waiting(turn)) {
      const least = Buffer.byteLength(row.body) + FRAME_BYTES
      const isFull = (size: number) => references.length > 0 && bytes + size > maxBytes
      if (references.length === MOST_CHANGES || spent > EXPLAIN_MS || isFull(least)) return { references, bytes }
      const started = performance.now()
      const { change, size } = this.#state(row, steps)
      if (row.kind === 'run') spent += performance.now() - started
      if (isFull(size)) return { references, bytes }
      bytes += size
      references.push(row.id)
      add(change)
    }
    // The runs of these logs are known to the hub by now, or by the changes above.
    for (const log of this.#rows.dueLogs(turn, MOST_CHANGES - references.length)) {
      for (let from = log.log_sent + 1; ; ) {
        const most = Math.min(LINES_BYTES, maxBytes - bytes)
        if (references.length === MOST_CHANGES || most <= 0) return { references, bytes }
        const { to, lines, size } = await this.#lines(log, from, most)
        bytes += size + FRAME_BYTES
        const range = { run: log.id, from, to, ended: to >= log.logged && log.log_ended === 1 }
        references.push(range)
        add(this.#logChange(range, lines, log))
        from = to + 1
        if (to >= log.logged) break
      }
    }
    return { references, bytes }
  }

  /** The content of a change that was chosen before. */
  async #again(reference: Reference, steps: Map<string, Step>): Promise<Omit<NumberedChange, 'seq'>> {
    if (typeof reference === 'number') return this.#state(this.#rows.get(reference)!, steps).change
    const { run: id, from, to } = reference
    const { attempt = 0, logged = to, log_ended = 1 } = this.#store.runs.get(id) ?? {}
    const log: DueLog = { id, attempt, logged, log_ended, log_sent: from - 1 }
    const { lines } = await this.#lines({ ...log, logged: to }, from, LINES_BYTES)
    return this.#logChange(reference, lines, log)
  }

  /** A change of the outbox, and about how many bytes it is. */
  #state({ run_id, attempt, kind, body }: OutboxRow, steps: Map<string, Step>) {
    const content = JSON.parse(body)
    const bytes = Buffer.byteLength(body)
    const more = kind === 'run' ? this.#details.of(run_id, content.run, bytes, steps) : null
    if (more) Object.assign(content.run, more)
    const change: Omit<NumberedChange, 'seq'> = { run_id, attempt, kind, ...content }
    return { change, size: bytes + FRAME_BYTES + (more ? jsonBytes(more) : 0) }
  }

  #logChange({ run, to, ended }: LogRange, lines: unknown[], log: DueLog): Omit<NumberedChange, 'seq'> {
    const { attempt, logged } = log
    return { run_id: run, attempt, kind: 'log', phase: null, to, last: Math.max(logged, to), ended, lines }
  }

  /** Lines from number `from` on, as many as fit into `most` bytes, and the number up to which they reach. */
  async #lines({ id, logged }: DueLog, from: number, most: number) {
    if (from > logged) return { to: Math.max(logged, from - 1), lines: [], size: 0 }
    const limit = Math.min(MOST_LINES, logged - from + 1)
    const { lines, isLast } = await readLines(this.#stateDir(id), {
      afterSeq: from - 1,
      limit,
      maxBytes: 2 * LINES_BYTES,
    })
    const kept: object[] = []
    let size = 0
    // The hub does not store the fields of lines.
    for (const { fields: _, ...line } of lines) {
      if (line.seq > logged) break
      const bytes = Buffer.byteLength(JSON.stringify(line))
      if (kept.length > 0 && size + bytes > most) return { to: line.seq - 1, lines: kept, size }
      size += bytes
      kept.push(line)
    }
    // Lines that cannot be read, because files were removed, are missing from now on.
    const reached = lines.at(-1)?.seq ?? logged
    return { to: isLast ? logged : Math.min(reached, logged), lines: kept, size }
  }
}

/** As many of the first changes of a batch as fit, and one at least. */
function beginOf({ from_seq, changes }: Batch, maxBytes: number): Batch {
  let bytes = 0
  const end = changes.findIndex((change, at) => {
    const size = sizeOf([change])
    if (at > 0 && bytes + size > maxBytes) return true
    bytes += size
    return false
  })
  return { from_seq, changes: end === -1 ? changes : changes.slice(0, end), bytes }
}

function sizeOf(changes: readonly NumberedChange[]): number {
  return changes.reduce((size, change) => size + Buffer.byteLength(JSON.stringify(change)), 0)
}
