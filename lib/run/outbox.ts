// What the hub has to hear of synced runs, numbered without gaps in the order of commits. A change is queued in the
// transaction that makes it, so neither exists without the other; it is deleted once the hub has acknowledged it.

import type { Log } from '../log.ts'
import type { Phase } from '../team/team.ts'
import type { ChangedPlace } from './host.ts'
import { type LogLine, readLines } from './logs.ts'
import { receiptsOf } from './receipts.ts'
import { phaseRecord, type RunRow, runRecord } from './records.ts'
import { reviewRecord, reviewsOf } from './reviews.ts'
import type { RunStore } from './store.ts'

/** What the engine asks of it. */
export interface Outbox {
  record(changes: readonly Change[]): void
  /** The log of a run has lines up to `last`. */
  recordLog(runId: string, last: number): void
  committed(): void
}

/** A row that a transaction changed: the run itself when `position` is null. */
export interface Change {
  run: ChangedPlace
  position: number | null
  kind: 'run' | 'phase' | 'review' | 'receipt'
  /** Of a receipt. */
  entry?: string
}

/** A change as `/v1/runs/sync` takes it. */
export interface SyncChange {
  seq: number
  run_id: string
  attempt: number
  kind: string
  [body: string]: unknown
}

/** `status` keeps texts, data, inputs, outputs and logs on this machine. */
export type SyncMode = 'full' | 'status'

/** A change never exceeds 1 MiB on the wire: what is larger goes without its contents. */
const MAX_CHANGE = 1_000_000
/** Log lines of one change. */
const MAX_LINES = 500

export class SyncOutbox implements Outbox {
  readonly #store: RunStore
  readonly #mode: SyncMode
  readonly #stateDir: (runId: string) => string
  #wake: (() => void) | null = null

  constructor(store: RunStore, mode: SyncMode, stateDir: (runId: string) => string) {
    this.#store = store
    this.#mode = mode
    this.#stateDir = stateDir
  }

  /** Called after each commit that queued something. */
  onQueued(wake: () => void): void {
    this.#wake = wake
  }

  record(changes: readonly Change[]): void {
    for (const change of changes) {
      const { row, team } = change.run
      if (row.synced !== 1) continue
      const current = this.#store.run(row.id)
      if (!current) continue
      const { phases } = team
      if (change.kind === 'run') this.#queueRun(current)
      else if (change.kind === 'phase') this.#queuePhase(current, phases, change.position!)
      else if (change.kind === 'review') this.#queueReviews(current, phases, change.position!)
      else this.#queueReceipt(current, phases, change.position!, change.entry!)
    }
  }

  committed(): void {
    this.#wake?.()
  }

  /** Queues the log lines up to `last`, in ranges that fit a change. Inside a journal change. */
  recordLog(runId: string, last: number): void {
    const row = this.#store.run(runId)
    if (this.#mode === 'status' || !row || row.synced !== 1) return
    for (let from = row.logged + 1; from <= last; from += MAX_LINES) {
      this.#insert(row, 'log', { from, to: Math.min(last, from + MAX_LINES - 1) })
    }
    setLogged(this.#store, runId, last)
  }

  /** The oldest changes, as many as fit `maxBytes`, with log ranges replaced by their lines. */
  async take(maxBytes: number): Promise<SyncChange[]> {
    const changes: SyncChange[] = []
    let bytes = 0
    for (const { seq, run_id, attempt, kind, body } of queued(this.#store, 1_000)) {
      const content = kind === 'log' ? await this.#lines(run_id, JSON.parse(body)) : JSON.parse(body)
      const change = { seq, run_id, attempt, kind, ...content }
      const size = kind === 'log' ? JSON.stringify(change).length : body.length + 150
      if (changes.length > 0 && bytes + size > maxBytes) break
      bytes += size
      changes.push(change)
    }
    return changes
  }

  /** The hub has applied what was numbered up to `seq`. */
  acknowledge(seq: number): void {
    dropUpTo(this.#store, seq)
  }

  /**
   * Starts anew after the hub lost what it had acknowledged (it was restored from a backup, say): everything of each
   * synced run that is still here is queued again, from number 1 of a new epoch.
   */
  restart(log: Log, phasesOf: (row: RunRow) => readonly Phase[]): void {
    const queueAll = this.#store.db.transaction(() => {
      this.#store.setFact('epoch', crypto.randomUUID())
      clear(this.#store)
      const rows = syncedRuns(this.#store)
      for (const row of rows) this.#queueAll(row, phasesOf(row))
      return rows.length
    })
    log.warn('the hub lost acknowledged changes; queued again', { runs: queueAll.immediate() })
  }

  #queueAll(row: RunRow, phases: readonly Phase[]): void {
    this.#queueRun(row)
    for (const position of phases.keys()) {
      this.#queuePhase(row, phases, position)
      this.#queueReviews(row, phases, position)
      for (const { entry } of receiptsOf(this.#store, row.id, position))
        this.#queueReceipt(row, phases, position, entry)
    }
    setLogged(this.#store, row.id, 0)
    this.recordLog(row.id, row.logged)
  }

  async #lines(runId: string, { from, to }: { from: number; to: number }): Promise<{ phase: null; lines: LogLine[] }> {
    const { lines } = await readLines(this.#stateDir(runId), { afterSeq: from - 1, limit: to - from + 1 })
    const kept: LogLine[] = []
    let bytes = 0
    for (const line of lines) {
      bytes += JSON.stringify(line).length
      if (bytes < MAX_CHANGE) kept.push(line)
    }
    return { phase: null, lines: kept }
  }

  #queueRun(row: RunRow): void {
    const record = { ...runRecord(row), tree_key: row.tree_key, created_at: row.created_at }
    const bare = { ...record, inputs: {}, outputs: null }
    this.#insert(row, 'run', { run: record }, { run: bare })
  }

  #queuePhase(row: RunRow, phases: readonly Phase[], position: number): void {
    const stored = this.#store.phase(row.id, position)!
    const { sub_runs: _, waiting: __, ...record } = phaseRecord(stored, phases[position]!, phases, [])
    const full = { ...record, index: position }
    this.#insert(row, 'phase', { phase: full }, { phase: { ...full, text: '', data: null, files: [] } })
  }

  #queueReviews(row: RunRow, phases: readonly Phase[], position: number): void {
    const phase = phases[position]!
    const gate = phase.type === 'gate' ? phase.review : undefined
    for (const review of reviewsOf(this.#store, row.id, position)) {
      // Who may answer, and with which form, is the gate's to say; an escalation is for whoever may decide.
      const { reviewers, inputs } = (review.kind === 'gate' && gate) || { reviewers: [], inputs: [] }
      this.#insert(row, 'review', { review: { ...reviewRecord(review, phase.name, row.run_name), reviewers, inputs } })
    }
  }

  /** So that the hub knows what was written outside: it moves no run that would write again. */
  #queueReceipt(row: RunRow, phases: readonly Phase[], position: number, entry: string): void {
    const phase = phases[position]!.name
    const known = receiptsOf(this.#store, row.id, position).find(receipt => receipt.entry === entry)
    const bare = { phase, entry, state: known?.state ?? 'cleared', external_id: null, external_url: null }
    const { external_id = null, external_url = null } = known ?? {}
    this.#insert(row, 'receipt', { receipt: { ...bare, external_id, external_url } }, { receipt: bare })
  }

  #insert(row: RunRow, kind: string, body: object, bare: object = body): void {
    const full = this.#mode === 'full' ? JSON.stringify(body) : JSON.stringify(bare)
    const text = full.length > MAX_CHANGE / 3 && Buffer.byteLength(full) > MAX_CHANGE ? JSON.stringify(bare) : full
    insert(this.#store, row.id, row.attempt, kind, text)
  }
}

function insert({ db }: RunStore, runId: string, attempt: number, kind: string, body: string): void {
  db.query('INSERT INTO outbox (run_id, attempt, kind, body) VALUES (?, ?, ?, ?)').run(runId, attempt, kind, body)
}

function queued(
  { db }: RunStore,
  limit: number,
): { seq: number; run_id: string; attempt: number; kind: string; body: string }[] {
  return db
    .query<{ seq: number; run_id: string; attempt: number; kind: string; body: string }, [number]>(
      'SELECT seq, run_id, attempt, kind, body FROM outbox ORDER BY seq LIMIT ?',
    )
    .all(limit)
}

function dropUpTo({ db }: RunStore, seq: number): void {
  db.query('DELETE FROM outbox WHERE seq <= ?').run(seq)
}

/** Empties the outbox and numbers from 1 again. */
function clear({ db }: RunStore): void {
  db.query('DELETE FROM outbox').run()
  db.query("DELETE FROM sqlite_sequence WHERE name = 'outbox'").run()
}

function syncedRuns({ db }: RunStore): RunRow[] {
  return db.query<RunRow, []>('SELECT * FROM runs WHERE synced = 1 ORDER BY root_id, tree_key').all()
}

function setLogged({ db }: RunStore, runId: string, last: number): void {
  db.query('UPDATE runs SET logged = ? WHERE id = ?').run(last, runId)
}
