// The changes of synced runs that the hub must receive. A change is queued in the transaction that makes it, so neither
// exists without the other; it is deleted once the hub has acknowledged it. batches.ts chooses what is sent next, and
// lib/daemon/link sends it. Other folders use this file only.

import type { RunId } from '../../../files/run-id.ts'
import type { Log } from '../../../log/log.ts'
import {
  type Change,
  type Commit,
  type Outbox,
  phaseRecord,
  type RunRow,
  reviewRecord,
  runEnded,
  runRecord,
  START,
  type Store,
  startReviewers,
} from '../../../run/engine.ts'
import { type Bundle, type Phase, reviewOf } from '../../../team/team.ts'
import type { ChangeKind, SyncChange } from '../../../wire/records/changes.ts'
import type { PhaseRecord } from '../../../wire/records/run-records.ts'
import { type Batch, Batches, type Sent } from './batches.ts'
import { type Left, OutboxRows } from './outbox-rows.ts'
import { RunDetails } from './run-details.ts'
import { UploadRows } from './upload-rows.ts'

export { OutboxRows } from './outbox-rows.ts'
export { KEEPS_FILES, type UploadRow } from './upload-rows.ts'
export { countsOf, NOTHING_WAITS, type Waiting, waitingIn } from './waiting.ts'
export type { Batch }

/**
 * The fields of a change besides its number and its run, also those that older daemons leave out. run-details.ts adds
 * what else is said of a run when the change is sent.
 */
type Body<K extends ChangeKind> = {
  [Name in Exclude<keyof SyncChange<K>, 'seq' | 'run_id' | 'attempt'>]: Required<
    Omit<SyncChange<K>[Name], 'deliveries' | 'log' | 'why'>
  >
}

/** `status` keeps texts, data, inputs, outputs, logs and what approvals lead to on this machine. */
export type SyncMode = 'full' | 'status'

/**
 * Maximum size of a change. A larger one is sent without its contents, because the hub would refuse it
 * (`MAX_CHANGE_BYTES` of lib/wire).
 */
const MAX_CHANGE = 1_000_000
/** How many runs are queued again at once after the hub lost changes. */
const PAGE = 100
/** Where that stopped, as the last root and tree key. */
const AGAIN = 'sync_again'
/** How often the lines of running phases are recorded, because each commit waits for the disk. */
const LOGS_MS = 1_000

export interface OutboxOptions {
  store: Store
  commit: Commit
  mode: SyncMode
  stateDir: (runId: RunId) => string
  bundle: (id: string) => Bundle
  /** The lived time of the home. */
  lived: () => number
  log: Log
}

export class SyncOutbox implements Outbox {
  readonly rows: OutboxRows
  readonly uploads: UploadRows
  readonly #store: Store
  readonly #commit: Commit
  readonly #mode: SyncMode
  readonly #bundle: OutboxOptions['bundle']
  readonly #lived: () => number
  readonly #batches: Batches
  #wake: (() => void) | null = null
  /** The last lines of logs that are not recorded yet. */
  readonly #grown = new Map<RunId, number>()

  constructor({ store, commit, mode, stateDir, bundle, lived, log }: OutboxOptions) {
    this.rows = new OutboxRows(store.db)
    this.uploads = new UploadRows(store.db)
    this.#store = store
    this.#commit = commit
    this.#mode = mode
    this.#bundle = bundle
    this.#lived = lived
    const details = new RunDetails({ store, rows: this.rows, bundle, isStatusOnly: mode === 'status', log })
    this.#batches = new Batches(store, this.rows, commit, stateDir, details)
  }

  /** `wake` is called after each commit that queued something. */
  onQueued(wake: () => void): void {
    this.#wake = wake
  }

  record(changes: Iterable<Change>, failed: (change: Change, error: unknown) => void): void {
    const rows = new Map<string, RunRow | null>()
    const queued = new Set<string>()
    const others: [Change, RunRow][] = []
    for (const change of changes) {
      const { id, synced } = change.run
      if (synced !== 1) continue
      try {
        const known = rows.get(id)
        const row = known === undefined ? this.#store.runs.get(id) : known
        rows.set(id, row)
        if (!row) continue
        this.#queue(row, change)
        if (change.kind === 'run') queued.add(id)
        else others.push([change, row])
      } catch (error) {
        failed(change, error)
      }
    }
    for (const [change, row] of others) {
      try {
        this.#queueExplained(row, change.kind, queued)
      } catch (error) {
        failed(change, error)
      }
    }
  }

  #queue(row: RunRow, { kind, team: { phases }, position, entry }: Change): void {
    if (kind === 'run') this.#queueRun(row)
    else if (kind === 'phase') this.#queuePhase(row, phases, position!)
    else if (kind === 'review') this.#queueReviews(row, phases, position!)
    else if (kind === 'receipt') this.#queueReceipt(row, phases, position!, entry!)
  }

  /**
   * Queues a run because something of it changed that its explanation names, and the runs above that name it, too. While a
   * run goes on, nothing explains it.
   */
  #queueExplained(row: RunRow, kind: Change['kind'], queued: Set<string>): void {
    const isNamed = kind === 'phase' ? row.state === 'awaiting_input' : kind !== 'review' && row.state !== 'running'
    if (!isNamed && kind !== 'delivery') return
    this.#queueOnce(row, queued)
    for (let run = row; run.parent_id !== null && run.state !== 'running'; ) {
      const above = this.#store.runs.get(run.parent_id)!
      if (above.state === 'running' || !this.#names(above, run, kind)) return
      this.#queueOnce(above, queued)
      run = above
    }
  }

  /** Whether the explanation of a run names what changed in a sub-run: any write, and all of the one that decides it. */
  #names(above: RunRow, run: RunRow, kind: Change['kind']): boolean {
    if (kind === 'receipt' && runEnded(above.state)) return true
    return this.#store.runs.decidingChild(above.id, run.parent_position!)?.id === run.id
  }

  #queueOnce(row: RunRow, queued: Set<string>): void {
    if (queued.has(row.id)) return
    queued.add(row.id)
    this.#queueRun(row)
  }

  committed(): void {
    this.#wake?.()
  }

  logGrew(runId: RunId, last: number): void {
    if (this.#mode !== 'full') return
    if (this.#grown.size === 0) setTimeout(() => this.#recordGrown(), LOGS_MS).unref()
    this.#grown.set(runId, last)
  }

  /** What cannot be recorded now is recorded with the next lines, or with the end of the attempt. */
  #recordGrown(): void {
    const grown = [...this.#grown]
    this.#grown.clear()
    const record = () => {
      for (const [runId, last] of grown) this.recordLog(runId, last)
    }
    void this.#commit(record)
      .then(() => this.committed())
      .catch(() => {})
  }

  recordLog(runId: RunId, last: number): void {
    if (this.#sendsLog(runId)) this.rows.setLogged(runId, last)
  }

  endLog(runId: RunId, last: number): void {
    if (this.#sendsLog(runId)) this.rows.endLog(runId, last)
  }

  #sendsLog(runId: string): boolean {
    return this.#mode === 'full' && this.#store.runs.isSynced(runId)
  }

  /** What has to be sent next; null when nothing waits. */
  take(maxBytes: number): Promise<Batch | null> {
    this.#queueMoreAgain()
    return this.#batches.take(maxBytes)
  }

  /** The hub has applied what was taken. */
  acknowledge(): Promise<void> {
    return this.#batches.acknowledge()
  }

  get sent(): Sent {
    return this.#batches.sent
  }

  /** Whether the hub lacks a change that is no line of a log. */
  get lacksChanges(): boolean {
    return this.#store.facts.get(AGAIN) !== null || this.rows.count() > 0
  }

  /** What the hub has not acknowledged. */
  get left(): Left {
    return this.rows.left()
  }

  /**
   * Starts again after the hub lost changes that it had acknowledged, for instance because it was restored from a
   * backup: every synced run that still exists here is queued again as a whole, from number 1 of a new epoch. That
   * happens page by page, as the hub acknowledges what was queued before.
   */
  restart(log: Log, why: string): void {
    const begin = this.#store.db.transaction(() => {
      this.#store.facts.set('epoch', crypto.randomUUID())
      this.#store.facts.set(AGAIN, JSON.stringify({ root: '', key: '' }))
      this.rows.clear()
      this.uploads.clear()
      this.#batches.restart()
    })
    begin.immediate()
    log.warn('all runs are sent to the hub again', { why })
  }

  /** Queues the next runs again when little waits. */
  #queueMoreAgain(): void {
    const progress = this.#store.facts.get(AGAIN)
    if (progress === null || this.rows.count() >= PAGE) return
    const queue = this.#store.db.transaction(() => {
      const rows = this.rows.synced(JSON.parse(progress), PAGE)
      for (const row of rows) this.#queueAll(row, this.#bundle(row.bundle_id).team(row.team_key).phases)
      const last = rows.at(-1)
      if (!last) this.#store.facts.drop(AGAIN)
      else this.#store.facts.set(AGAIN, JSON.stringify({ root: last.root_id, key: last.tree_key }))
    })
    queue.immediate()
  }

  #queueAll(row: RunRow, phases: readonly Phase[]): void {
    this.#queueRun(row)
    if (row.review !== null) this.#queueReviews(row, phases, START)
    for (const position of phases.keys()) {
      this.#queuePhase(row, phases, position)
      this.#queueReviews(row, phases, position)
      for (const { entry } of this.#store.receipts.of(row.id, position))
        this.#queueReceipt(row, phases, position, entry)
    }
    if (this.#mode === 'full') this.rows.logAgain(row.id)
  }

  #queueRun(row: RunRow): void {
    const inputs = JSON.parse(row.inputs)
    const record = { ...runRecord(row), inputs, tree_key: row.tree_key, created_at: row.created_at }
    const reduced = { ...record, inputs: {}, outputs: null }
    this.#insert(row, 'run', { run: record }, { run: reduced })
  }

  #queuePhase(row: RunRow, phases: readonly Phase[], position: number): void {
    const stored = this.#store.phases.get(row.id, position)!
    const record = phaseRecord(this.#store, stored, phases[position]!, phases)
    const full = { ...record, index: position }
    const reduced = { ...full, text: '', data: null, files: [] }
    const { id, cut } = this.#insert(row, 'phase', { phase: full }, { phase: reduced })
    if (this.#mode === 'full') this.#queueFiles(row, record, id, cut)
  }

  /** Queues the files of a phase to be sent. If they were too many for one change, they are also reported one by one. */
  #queueFiles(
    row: RunRow,
    { name: phase, files }: Pick<PhaseRecord, 'name' | 'files'>,
    change: number,
    cut: boolean,
  ): void {
    for (const file of files) {
      const { name, path, bytes, sha256 } = file
      const named = cut ? this.#insert(row, 'artifact', { artifact: { phase, name, path, bytes, sha256 } }).id : change
      this.uploads.put(row.id, file, named)
    }
  }

  #queueReviews(row: RunRow, phases: readonly Phase[], position: number): void {
    const phase = position === START ? null : phases[position]!
    const gate = phase && reviewOf(phase)
    const start = { reviewers: startReviewers(row), inputs: [] }
    for (const review of this.#store.reviews.of(row.id, position)) {
      // A gate says who may answer and with which form; an escalation may be answered by anyone who may decide.
      const asked = review.kind === 'gate' ? gate : phase ? null : start
      const { reviewers, inputs } = asked ?? { reviewers: [], inputs: [] }
      const { next, shown, ...record } = reviewRecord(review, phase?.name ?? null, row.run_name, this.#lived())
      const reduced = { ...record, reviewers, inputs, next: null, shown: null, keeps_next: true }
      this.#insert(row, 'review', { review: { ...reduced, next, shown, keeps_next: false } }, { review: reduced })
    }
  }

  /** Reports an outside write to the hub, so that the hub does not move a run that would repeat it. */
  #queueReceipt(row: RunRow, phases: readonly Phase[], position: number, entry: string): void {
    const phase = phases[position]!.name
    const known = this.#store.receipts.of(row.id, position).find(receipt => receipt.entry === entry)
    const reduced = { phase, entry, state: known?.state ?? 'cleared', external_id: null, external_url: null } as const
    const { external_id = null, external_url = null } = known ?? {}
    this.#insert(row, 'receipt', { receipt: { ...reduced, external_id, external_url } }, { receipt: reduced })
  }

  /** Returns the id of the change, and whether it was too large and is sent without its contents. */
  #insert<K extends ChangeKind>(row: RunRow, kind: K, body: Body<K>, reduced: Body<K> = body) {
    const full = this.#mode === 'full' ? JSON.stringify(body) : JSON.stringify(reduced)
    const cut = full.length > MAX_CHANGE / 3 && Buffer.byteLength(full) > MAX_CHANGE
    const text = cut ? JSON.stringify(reduced) : full
    return { id: this.rows.insert(row.root_id, row.id, row.attempt, kind, text), cut }
  }
}
