// The changes of synced runs that the hub must receive, numbered without gaps in the order of commits. A change is
// queued in the transaction that makes it, so neither exists without the other; it is deleted once the hub has
// acknowledged it.

import type { Log } from '../../log.ts'
import type { Phase } from '../../team/team.ts'
import type { ChangeKind, SyncChange } from '../../wire/changes.ts'
import type { PhaseRecord } from '../../wire/run-records.ts'
import { readLines } from '../attempt/attempt.ts'
import type { LogLine, RunRow } from '../core/core.ts'
import type { Change } from '../steps/steps.ts'
import type { OutboxRow, Store } from '../store/store.ts'
import { phaseRecord, reviewRecord, runRecord } from './records.ts'

/** What the engine needs of an outbox. */
export interface Outbox {
  record(changes: Iterable<Change>): void
  /** Notes that the log of a run has lines up to `last`. */
  recordLog(runId: string, last: number): void
  committed(): void
}

/** A change as it is sent, put together from its row. */
export interface QueuedChange {
  seq: number
  run_id: string
  attempt: number
  kind: string
  [body: string]: unknown
}

/** The fields of a change besides its number and its run. */
type Body<K extends ChangeKind> = Omit<SyncChange<K>, 'seq' | 'run_id' | 'attempt'>

/** `status` keeps texts, data, inputs, outputs and logs on this machine. */
export type SyncMode = 'full' | 'status'

/**
 * Maximum size of a change. A larger one is sent without its contents, because the hub would refuse it
 * (`MAX_CHANGE_BYTES` of lib/wire).
 */
const MAX_CHANGE = 1_000_000
/** Maximum number of changes in one batch. */
const MOST_CHANGES = 1_000
/** Maximum number of log lines in one change. */
const MAX_LINES = 500

export class SyncOutbox implements Outbox {
  readonly #store: Store
  readonly #mode: SyncMode
  readonly #stateDir: (runId: string) => string
  #wake: (() => void) | null = null

  constructor(store: Store, mode: SyncMode, stateDir: (runId: string) => string) {
    this.#store = store
    this.#mode = mode
    this.#stateDir = stateDir
  }

  /** `wake` is called after each commit that queued something. */
  onQueued(wake: () => void): void {
    this.#wake = wake
  }

  record(changes: Iterable<Change>): void {
    for (const change of changes) {
      const { run, team } = change
      if (run.synced !== 1) continue
      const current = this.#store.runs.get(run.id)
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
    const row = this.#store.runs.get(runId)
    if (this.#mode === 'status' || !row || row.synced !== 1) return
    for (let from = row.logged + 1; from <= last; from += MAX_LINES) {
      const range = { from, to: Math.min(last, from + MAX_LINES - 1) }
      this.#store.outbox.insert(row.id, row.attempt, 'log', JSON.stringify(range))
    }
    this.#store.runs.setLogged(runId, last)
  }

  /** The oldest changes, as many as fit into `maxBytes`, with log ranges replaced by their lines. */
  async take(maxBytes: number): Promise<QueuedChange[]> {
    const changes: QueuedChange[] = []
    let bytes = 0
    for (let after = 0; ; ) {
      const next: OutboxRow | null = this.#store.outbox.next(after)
      if (!next || changes.length === MOST_CHANGES) return changes
      const { seq, run_id, attempt, kind, body } = next
      const content = kind === 'log' ? await this.#lines(run_id, JSON.parse(body)) : JSON.parse(body)
      const change = { seq, run_id, attempt, kind, ...content }
      const size = kind === 'log' ? JSON.stringify(change).length : body.length + 150
      if (changes.length > 0 && bytes + size > maxBytes) return changes
      bytes += size
      after = seq
      changes.push(change)
    }
  }

  /** The hub has applied every change up to number `seq`. */
  acknowledge(seq: number): void {
    this.#store.outbox.dropUpTo(seq)
  }

  /**
   * Starts again after the hub lost changes that it had acknowledged, for instance because it was restored from a
   * backup: every synced run that still exists here is queued again as a whole, from number 1 of a new epoch.
   */
  restart(log: Log, phasesOf: (row: RunRow) => readonly Phase[]): void {
    const queueAll = this.#store.db.transaction(() => {
      this.#store.facts.set('epoch', crypto.randomUUID())
      this.#store.outbox.clear()
      const rows = this.#store.runs.synced()
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
      for (const { entry } of this.#store.receipts.of(row.id, position))
        this.#queueReceipt(row, phases, position, entry)
    }
    this.#store.runs.setLogged(row.id, 0)
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
    const stored = this.#store.phases.get(row.id, position)!
    const { sub_runs: _, waiting: __, ...record } = phaseRecord(stored, phases[position]!, phases, [])
    const full = { ...record, index: position }
    const { seq, cut } = this.#insert(
      row,
      'phase',
      { phase: full },
      { phase: { ...full, text: '', data: null, files: [] } },
    )
    if (this.#mode === 'full') this.#queueFiles(row, record, seq, cut)
  }

  /** Queues the files of a phase to be sent. If they were too many for one change, they are also reported one by one. */
  #queueFiles(
    row: RunRow,
    { name: phase, files }: Pick<PhaseRecord, 'name' | 'files'>,
    seq: number,
    cut: boolean,
  ): void {
    for (const file of files) {
      const { name, path, bytes, sha256 } = file
      const told = cut ? this.#insert(row, 'artifact', { artifact: { phase, name, path, bytes, sha256 } }).seq : seq
      this.#store.uploads.put(row.id, file, told)
    }
  }

  #queueReviews(row: RunRow, phases: readonly Phase[], position: number): void {
    const phase = phases[position]!
    const gate = phase.type === 'gate' ? phase.review : undefined
    for (const review of this.#store.reviews.of(row.id, position)) {
      // A gate says who may answer and with which form; an escalation may be answered by anyone who may decide.
      const { reviewers, inputs } = (review.kind === 'gate' && gate) || { reviewers: [], inputs: [] }
      this.#insert(row, 'review', { review: { ...reviewRecord(review, phase.name, row.run_name), reviewers, inputs } })
    }
  }

  /** Reports an outside write to the hub, so that the hub does not move a run that would repeat it. */
  #queueReceipt(row: RunRow, phases: readonly Phase[], position: number, entry: string): void {
    const phase = phases[position]!.name
    const known = this.#store.receipts.of(row.id, position).find(receipt => receipt.entry === entry)
    const bare = { phase, entry, state: known?.state ?? 'cleared', external_id: null, external_url: null } as const
    const { external_id = null, external_url = null } = known ?? {}
    this.#insert(row, 'receipt', { receipt: { ...bare, external_id, external_url } }, { receipt: bare })
  }

  /** Returns the number of the change, and whether it was too large and is sent without its contents. */
  #insert<K extends ChangeKind>(row: RunRow, kind: K, body: Body<K>, bare: Body<K> = body) {
    const full = this.#mode === 'full' ? JSON.stringify(body) : JSON.stringify(bare)
    const cut = full.length > MAX_CHANGE / 3 && Buffer.byteLength(full) > MAX_CHANGE
    const seq = this.#store.outbox.insert(row.id, row.attempt, kind, cut ? JSON.stringify(bare) : full)
    return { seq, cut }
  }
}
