// What a report of a daemon, a batch of runs/sync, makes of the database. The rows that its changes build on are read at
// once. The changes are then applied here, one after the other, and what has come of them is written at the end, with as
// many statements for a thousand changes as for a few. Only what is rare takes a statement each: items that move, phases
// that are done again, receipts that are cleared.

import { and, eq, inArray } from 'drizzle-orm'
import { inParts } from '../../../db/hub/prepared.ts'
import type { Beside } from '../../../db/hub/run-tables.ts'
import type { Tables } from '../../../db/hub/schema.ts'
import { afterCommit, type Db } from '../../../db/hub/store.ts'
import { together } from '../../../db/hub/together.ts'
import { pick } from '../../pick.ts'
import type { endTurn } from '../../turns.ts'
import type { DaemonRow } from '../access/daemons.ts'
import { listedTeams } from '../access/team-list.ts'
import { recordEnds } from '../chains/ends.ts'
import type { Hub } from '../core/hub.ts'
import { queueRunMessages } from '../webhooks/webhooks.ts'
import {
  deleteLargeValue,
  type LargeValue,
  type Limits,
  ownerOf,
  PHASE_LIMITS,
  REVIEW_LIMITS,
  RUN_LIMITS,
  splitLargeValues,
  writeLargeValues,
} from './large-values.ts'
import { LOG_COLUMNS } from './log-state.ts'
import { ReportedLines } from './report-lines.ts'
import {
  jobHolders,
  phaseAttempts,
  putArtifacts,
  putEvents,
  putExplanations,
  putPhases,
  putReceipts,
  putReviews,
  putRuns,
  REPORTED_FACTS,
  type RunFacts,
  type RunReport,
  reviewStates,
  runFacts,
  treeRevisions,
  updateCounted,
} from './report-statements.ts'

type PhaseRow = Omit<Tables['phases']['$inferSelect'], 'beside'>
type ReviewRow = Omit<Tables['reviews']['$inferSelect'], 'beside'>
type ReceiptRow = Tables['receipts']['$inferSelect']
type ArtifactRow = Tables['artifacts']['$inferSelect']
type ExplanationRow = Tables['explanations']['$inferSelect']
type EventRow = Omit<Tables['events']['$inferSelect'], 'id'>

/** The ids that the changes of a batch name. */
export interface NamedRows {
  runs: Iterable<string>
  phases: readonly [runId: string, index: number][]
  reviews: readonly string[]
  /** Whether there are lines of logs. */
  lines: boolean
}

/** What the queue has to do because of a report. */
export interface QueueOutcome {
  /** Runs that waited in an older copy, and that the daemon has executed. */
  adopted: Set<string>
  /** Runs that are in a later attempt. */
  resumed: Set<string>
  /** Top runs that have ended. */
  ended: Set<string>
  /** Runs that release their concurrency key, or hold it again. */
  keys: { run: RunFacts; holds: boolean; waited: boolean }[]
  /** Top runs that the hub did not know, and what started them. */
  unknown: Pick<RunReport, 'run_id' | 'started_by' | 'started_at'>[]
}

type EndTurn = typeof endTurn

const keyOf = (...parts: (string | number)[]): string => JSON.stringify(parts)

export class Report {
  readonly #hub: Hub
  readonly #tx: Db
  readonly #daemon: Pick<DaemonRow, 'id' | 'realm_id'>
  /** The lines of logs among the changes. */
  readonly lines: ReportedLines
  readonly #runs = new Map<string, RunFacts>()
  readonly #holders = new Map<string, string | null>()
  /** The highest revisions of trees, by their root run. */
  readonly #revisions = new Map<string, number>()
  /** Runs that waited in an older copy, of which nobody is known to have begun them. */
  readonly #ownerless = new Set<string>()
  readonly #attempts = new Map<string, number>()
  readonly #reviewed = new Map<string, Pick<ReviewRow, 'run_id' | 'state'>>()
  /** The columns that lay beside phases and reviews, by their keys. */
  readonly #beside = new Map<string, Beside>()
  readonly #teams = new Map<string, Promise<boolean>>()
  readonly #touched = new Set<RunFacts>()
  readonly #reported = new Map<string, RunReport>()
  readonly #states: RunReport[] = []
  /** What the queue has to do because of the changes. */
  readonly outcome: QueueOutcome = { adopted: new Set(), resumed: new Set(), ended: new Set(), keys: [], unknown: [] }
  readonly #moved = new Set<string>()
  readonly #phases = new Map<string, PhaseRow>()
  readonly #explanations = new Map<string, ExplanationRow>()
  /** Runs whose explanation counts no more. */
  readonly #unexplained = new Set<string>()
  readonly #events: EventRow[] = []
  readonly #artifacts = new Map<string, ArtifactRow>()
  readonly #rewritten: Pick<ArtifactRow, 'run_id' | 'phase'>[] = []
  readonly #receipts = new Map<string, ReceiptRow>()
  readonly #cleared = new Map<string, Pick<ReceiptRow, 'run_id' | 'phase' | 'entry'>>()
  readonly #reviews = new Map<string, ReviewRow>()
  readonly #large: LargeValue[] = []
  readonly #dropped: Omit<LargeValue, 'value'>[] = []

  constructor(hub: Hub, tx: Db, daemon: Pick<DaemonRow, 'id' | 'realm_id'>) {
    this.#hub = hub
    this.#tx = tx
    this.#daemon = daemon
    this.lines = new ReportedLines(hub, tx, daemon.realm_id)
  }

  /**
   * Reads what changes build on that name these. No statement builds on another one: on PostgreSQL all are sent together, on
   * SQLite `endTurn` is awaited between them.
   */
  async read(named: NamedRows, endTurn: EndTurn): Promise<void> {
    const reads = [...this.#readsOf(named)]
    if (this.#hub.store.dialect === 'postgres') return void (await together(reads.map(read => read())))
    for (const read of reads) {
      await read()
      await endTurn()
    }
  }

  *#readsOf({ runs, phases, reviews, lines }: NamedRows): Generator<() => Promise<void>> {
    const { store } = this.#hub
    const tx = this.#tx
    if (lines) yield () => this.lines.readRoom()
    for (const ids of inParts([...runs])) {
      yield async () => {
        for (const row of await runFacts(store, tx, { ids })) this.#runs.set(row.run_id, row)
      }
      yield async () => {
        for (const { run_id, leased_to, isOwnerless } of await jobHolders(store, tx, { ids })) {
          this.#holders.set(run_id, leased_to)
          if (isOwnerless) this.#ownerless.add(run_id)
        }
      }
      yield async () => {
        for (const { root, rev } of await treeRevisions(store, tx, { ids })) this.#revisions.set(root, Number(rev))
      }
    }
    for (const keys of inParts(phases)) {
      yield async () => {
        for (const { run_id, index, attempt, beside } of await phaseAttempts(store, tx, { keys })) {
          this.#attempts.set(keyOf(run_id, index), attempt)
          if (beside !== null) this.#beside.set(keyOf(run_id, index), beside)
        }
      }
    }
    for (const ids of inParts(reviews)) {
      yield async () => {
        for (const { beside, ...row } of await reviewStates(store, tx, { ids })) {
          this.#reviewed.set(row.id, row)
          if (beside !== null) this.#beside.set(row.id, beside)
        }
      }
    }
  }

  run(id: string | null): RunFacts | undefined {
    return id === null ? undefined : this.#runs.get(id)
  }

  /**
   * Whether the run belongs to the daemon: it is pinned to it, or is not pinned and the daemon holds its job. A run that
   * waited in an older copy belongs to the daemon that has executed it.
   */
  belongsToDaemon({ run_id, realm_id, daemon_id }: RunFacts): boolean {
    if (realm_id !== this.#daemon.realm_id) return false
    if (daemon_id === null && this.#ownerless.has(run_id)) return true
    return (daemon_id ?? this.#holders.get(run_id)) === this.#daemon.id
  }

  /** Gives the daemon a run that waited in an older copy. Returns false for any other. */
  adoptRun(runId: string): boolean {
    if (!this.#ownerless.delete(runId)) return false
    this.outcome.adopted.add(runId)
    return true
  }

  /** The run is in a later attempt, so what asked for that has been done. */
  noteResumed(runId: string): void {
    this.outcome.resumed.add(runId)
  }

  /** Whether a team is on the list of the realm, and may be run. */
  mayRunTeam(team: string): Promise<boolean> {
    const { store } = this.#hub
    const find = async () => (await listedTeams(store, this.#tx, this.#daemon.realm_id, team))[0]?.lent === true
    const known = this.#teams.get(team) ?? find()
    this.#teams.set(team, known)
    return known
  }

  /** The runs that changed, by their root run. */
  get changedRuns(): Map<string, Set<string>> {
    const roots = new Map<string, Set<string>>()
    for (const { root_run_id, run_id } of this.#touched) {
      roots.set(root_run_id, (roots.get(root_run_id) ?? new Set()).add(run_id))
    }
    return roots
  }

  noteChange(run: RunFacts): void {
    this.#touched.add(run)
  }

  /** Sets what a run has become, or adds a run. */
  putRun(run: RunReport, log: Partial<Pick<RunFacts, 'log_lines' | 'log_ended' | 'log_kept'>>): void {
    const known = this.#runs.get(run.run_id)
    if (known && known.tree_key !== run.tree_key) this.#moved.add(run.run_id)
    const facts = Object.assign(known ?? { ...NEW_RUN }, pick(run, REPORTED_FACTS), log)
    this.#runs.set(run.run_id, facts)
    this.noteChange(facts)
    // A report without deliveries leaves those of an earlier one.
    const deliveries = run.deliveries ?? this.#reported.get(run.run_id)?.deliveries ?? null
    this.#reported.set(run.run_id, { ...run, deliveries })
  }

  putExplanation(row: ExplanationRow): void {
    this.#explanations.set(row.run_id, row)
    this.#unexplained.delete(row.run_id)
  }

  dropExplanation(runId: string): void {
    this.#explanations.delete(runId)
    this.#unexplained.add(runId)
  }

  /** Notes that a top run is in another state, for the webhooks of the realm. */
  changeState(run: RunReport): void {
    this.#states.push(run)
  }

  noteUnknown({ run_id, started_by, started_at }: RunReport): void {
    this.outcome.unknown.push({ run_id, started_by, started_at })
  }

  /** The run has ended, and so has its job. */
  noteEnd(runId: string): void {
    this.outcome.ended.add(runId)
  }

  /** The run releases its key, for which it may have `waited`, or holds it again. */
  changeKey(run: RunFacts, holds: boolean, waited = false): void {
    this.outcome.keys.push({ run, holds, waited })
  }

  attemptOf(runId: string, index: number): number | undefined {
    return this.#attempts.get(keyOf(runId, index))
  }

  putPhase(row: PhaseRow): void {
    this.#attempts.set(keyOf(row.run_id, row.index), row.attempt)
    this.#phases.set(keyOf(row.run_id, row.index), row)
  }

  addEvent(row: EventRow): void {
    this.#events.push(row)
  }

  putArtifact(row: ArtifactRow): void {
    this.#artifacts.set(keyOf(row.run_id, row.path), row)
  }

  /** A new attempt of a phase writes its files again. */
  forgetArtifacts(run_id: string, phase: string): void {
    for (const [key, row] of this.#artifacts) {
      if (row.run_id === run_id && row.phase === phase) this.#artifacts.delete(key)
    }
    this.#rewritten.push({ run_id, phase })
  }

  putReceipt(row: ReceiptRow): void {
    const key = keyOf(row.run_id, row.phase, row.entry)
    this.#cleared.delete(key)
    this.#receipts.set(key, row)
  }

  clearReceipt(row: Pick<ReceiptRow, 'run_id' | 'phase' | 'entry'>): void {
    const key = keyOf(row.run_id, row.phase, row.entry)
    this.#receipts.delete(key)
    this.#cleared.set(key, row)
  }

  reviewOf(id: string): Pick<ReviewRow, 'run_id' | 'state'> | undefined {
    return this.#reviewed.get(id)
  }

  putReview(review: Omit<ReviewRow, 'placed_at'>): void {
    const { clock, lived } = this.#hub
    const row = { ...review, placed_at: lived() - Math.max(0, clock.believed() - review.created_at) }
    this.#reviewed.set(row.id, row)
    this.#reviews.set(row.id, row)
  }

  /** A row without what is large of it, which is noted to be written beside it. `known` is what lay there. */
  #withoutLarge<Row extends { run_id: string }>(
    given: Row,
    owner: string,
    limits: Limits,
    known: Beside | null | undefined,
    stays: Beside | false = false,
  ): Row & { beside: Beside | null } {
    const { row, large } = splitLargeValues(given, owner, limits)
    this.#large.push(...large)
    const beside = stays ? { ...stays, ...row.beside } : row.beside
    for (const name of Object.keys(known ?? {})) {
      if (beside?.[name] === undefined) this.#dropped.push({ run_id: row.run_id, owner, name })
    }
    return { ...row, beside }
  }

  /** Writes what has come of the changes. `endTurn` is awaited between the statements. */
  async write(endTurn: EndTurn): Promise<void> {
    const { store } = this.#hub
    const tx = this.#tx
    const { runs, artifacts, receipts, explanations } = store
    const counted = this.#countAll()
    const reported = [...this.#reported.values()].map(run => {
      const known = this.#runs.get(run.run_id)!.beside
      // A report without deliveries leaves those of an earlier one.
      const stays = run.deliveries === null && known?.deliveries !== undefined && { deliveries: known.deliveries }
      return { ...this.#withoutLarge(run, ownerOf.run, RUN_LIMITS, known, stays), ...counted.get(run.run_id)! }
    })
    const phases = [...this.#phases.values()].map(row =>
      this.#withoutLarge(row, ownerOf.phase(row.index), PHASE_LIMITS, this.#beside.get(keyOf(row.run_id, row.index))),
    )
    const reviews = [...this.#reviews.values()].map(row =>
      this.#withoutLarge(row, ownerOf.review(row.id), REVIEW_LIMITS, this.#beside.get(row.id)),
    )
    await putRuns(store, tx, reported, endTurn)
    for (const run_id of this.#moved) {
      const { tree_key } = this.#reported.get(run_id)!
      await tx.update(runs).set({ tree_key }).where(eq(runs.run_id, run_id))
    }
    await putPhases(store, tx, phases, endTurn)
    if (this.#unexplained.size > 0) {
      await tx.delete(explanations).where(inArray(explanations.run_id, [...this.#unexplained]))
    }
    await putExplanations(store, tx, [...this.#explanations.values()], endTurn)
    await this.lines.write(endTurn)
    await putEvents(store, tx, this.#events, endTurn)
    for (const { run_id, phase } of this.#rewritten) {
      await tx.delete(artifacts).where(and(eq(artifacts.run_id, run_id), eq(artifacts.phase, phase)))
    }
    await putArtifacts(store, tx, [...this.#artifacts.values()], endTurn)
    for (const { run_id, phase, entry } of this.#cleared.values()) {
      const cleared = and(eq(receipts.run_id, run_id), eq(receipts.phase, phase), eq(receipts.entry, entry))
      await tx.delete(receipts).where(cleared)
    }
    await putReceipts(store, tx, [...this.#receipts.values()], endTurn)
    await putReviews(store, tx, reviews, endTurn)
    for (const gone of this.#dropped) await deleteLargeValue(store, tx, gone)
    // A statement with many of these would be too large.
    for (const value of this.#large) await writeLargeValues(store, tx, [value], endTurn)
    const others = [...counted.values()].filter(({ run_id }) => !this.#reported.has(run_id))
    await updateCounted(store, tx, others, endTurn)
    const { realm_id } = this.#daemon
    await together([
      queueRunMessages(this.#hub, tx, realm_id, this.#states),
      recordEnds(this.#hub, tx, realm_id, this.#states),
    ])
    const ended = this.#states.filter(({ completed_at }) => completed_at !== null)
    if (ended.length > 0) afterCommit(tx, () => this.#countEnds(ended))
  }

  #countEnds(ended: readonly RunReport[]): void {
    for (const run of ended) this.#hub.counts.runs.ended(run)
  }

  /**
   * What only the hub fills of the runs that changed. Everything that changed in a tree has one new revision, by which a
   * stream that follows the tree finds these runs.
   */
  #countAll() {
    return new Map(
      [...this.#touched].map(run => {
        const { run_id, root_run_id } = run
        return [run_id, { run_id, rev: (this.#revisions.get(root_run_id) ?? 0) + 1, ...pick(run, LOG_COLUMNS) }]
      }),
    )
  }
}

/** What the hub knows of a run that is reported for the first time. */
const NEW_RUN = {
  ...{ concurrency_key: null, beside: null, log_lines: null, log_last: 0, log_missing: null, log_ended: null },
  ...{ log_kept: false, log_bytes: 0, log_cut: false },
}
