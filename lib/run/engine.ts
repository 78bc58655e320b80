// The engine: takes runs, executes their phases, records what happens. Time, files and agents meet the machine here.
// Callers are answered once what they asked for is durable.

import type { Database } from 'bun:sqlite'
import type { AgentContext, NotifyEvent } from '../agent/define.ts'
import { CadreError, messageOf } from '../error.ts'
import type { JsonObject } from '../json.ts'
import type { Log } from '../log.ts'
import { Recent } from '../recent.ts'
import type { Bundle, BundleJson, EventName } from '../team/team.ts'
import { Attempts } from './attempts.ts'
import { DiskSpace } from './disk.ts'
import type { Binding, Surroundings } from './execute.ts'
import { Followers, type Notice } from './followers.ts'
import type { Outcome } from './host.ts'
import { Journal } from './journal.ts'
import { Ledger } from './ledger.ts'
import { Deliveries, recordEvent } from './listeners.ts'
import type { LiveRun } from './live.ts'
import { type LogLine, RunLogs } from './logs.ts'
import { Machine } from './machine.ts'
import type { Change, Outbox } from './outbox.ts'
import { Places, type RunPlace } from './places.ts'
import { type RunPhases, runPhases } from './queries.ts'
import { doubtAllSent } from './receipts.ts'
import { type RunRecord, runRecord } from './records.ts'
import { planResume, type ResumePlan, resume } from './resume.ts'
import { type Decision, decide } from './reviews.ts'
import type { RootSecrets } from './secrets.ts'
import { RunStore } from './store.ts'
import { maskInputs } from './subruns.ts'
import { Timers } from './timers.ts'
import { waitOf } from './waits.ts'

/** What the engine asks of the daemon around it. */
export interface EngineHost {
  agent: Surroundings['agent']
  /** An agent's context within a run. */
  context(run: RunPlace, binding: Binding, event?: NotifyEvent): AgentContext
  /** Replaces secrets: those of the settings and those of this tree's inputs. */
  mask<T>(value: T, secrets: readonly string[]): T
  restoreBundle(id: string, json: BundleJson): Bundle
}

export interface EngineOptions {
  home: string
  db: Database
  host: EngineHost
  secrets: RootSecrets
  log: Log
  /** Leaf phases at once, over all runs. */
  slots: number
  /** Of the ledger. */
  settle?: number
  now?: () => number
  /** Adds what changed to the hub's outbox, inside the transaction. */
  outbox?: Outbox
}

export interface StartRequest {
  bundle: Bundle
  /** Checked and complete (lib/team/inputs). */
  inputs: JsonObject
  runName?: string | null
  workspace?: string | null
  fromPath?: boolean
  synced?: boolean
  /** Made at dispatch; starting the same id again changes nothing. */
  runId?: string
}

/** Bundles kept in memory; runs that have not ended hold their own. */
const MOST_BUNDLES = 100
/** How long agents may take to heed that the daemon stops. */
const STOP_MS = 6_000
/** How often the log of a phase that still runs goes to the hub. */
const LOG_SYNC_MS = 1_000

export class Engine {
  readonly store: RunStore
  readonly logs: RunLogs
  readonly #options: EngineOptions
  readonly #journal: Journal
  readonly #machine: Machine
  readonly #ledger: Ledger
  readonly #deliveries: Deliveries
  readonly #attempts: Attempts
  readonly #timers: Timers
  readonly #disk: DiskSpace
  readonly #places: Places
  readonly #bundles = new Recent<string, Bundle>(MOST_BUNDLES)
  /** Top runs that are being deleted. */
  readonly #deleting = new Set<string>()
  readonly #followers = new Followers()
  readonly #logsQueued = new Set<string>()
  #changes = new Map<string, Change>()
  #stopping = false

  constructor(options: EngineOptions) {
    this.#options = options
    this.store = new RunStore(options.db)
    this.#timers = new Timers(this.#now)
    this.#disk = new DiskSpace(options.home, options.log, () => void this.#journal.write(() => this.#machine.drain()))
    this.#places = new Places(options.home, this.store, (row, phase, line) =>
      this.logs.append(row.id, {
        phase,
        at: this.#now(),
        ...options.host.mask(line, options.secrets.values(row.root_id)),
      }),
    )
    this.logs = new RunLogs(
      runId => this.stateDir(runId),
      (runId, lines) => this.#logged(runId, lines),
    )
    this.#journal = new Journal(
      options.db,
      {
        afterBegin: () => this.#machine.refresh(),
        beforeCommit: () => options.outbox?.record([...this.#changes.values()]),
        afterCommit: () => this.#committed(),
        afterRollback: () => {
          this.#changes.clear()
          this.#machine.distrust()
        },
      },
      options.log,
    )
    this.#ledger = new Ledger({
      journal: this.#journal,
      store: this.store,
      now: this.#now,
      settle: options.settle,
      changed: (run_id, position, entry) => this.#receiptChanged({ run_id, position, entry }),
    })
    this.#attempts = new Attempts({
      store: this.store,
      host: options.host,
      ledger: this.#ledger,
      places: this.#places,
      secrets: rootId => options.secrets.values(rootId),
    })
    this.#deliveries = new Deliveries(this.#journal, this.store, {
      agent: options.host.agent,
      context: (row, binding, event) => {
        const run = this.store.run(row.run_id)!
        const place = this.#places.of({ row: run, bundle: this.bundle(run.bundle_id), inputs: {} }, row.listener, 1)
        return options.host.context(place, binding, event)
      },
      mask: (runId, value) => options.host.mask(value, options.secrets.values(this.store.run(runId)!.root_id)),
    })
    this.#machine = new Machine(
      this.store,
      {
        now: this.#now,
        paused: () => this.#disk.low !== null,
        launch: (live, position, attempt) => {
          if (this.#stopping) return
          void this.#attempts.run(live, position, attempt, outcome => this.#record(live, position, attempt, outcome))
        },
        abort: (live, position, attempt) => this.#attempts.abort(live.id, position, attempt),
        executing: (runId, position, attempt) => this.#attempts.has(runId, position, attempt),
        schedule: (at, change) => this.#schedule(at, change),
        changed: (run, position) => this.#changed({ run, position, kind: position === null ? 'run' : 'phase' }),
        reviewChanged: (live, position) => this.#changed({ run: live, position, kind: 'review' }),
        receiptChanged: (live, position, entry) => this.#changed({ run: live, position, kind: 'receipt', entry }),
        event: (live, event, position) => this.#event(live, event, position),
        runEnded: live => this.#runEnded(live),
        unreadable: (row, thrown) =>
          options.log.error('a run cannot be continued', { run: row.id, team: row.team, error: messageOf(thrown) }),
        stateDir: runId => this.stateDir(runId),
        bundle: id => this.bundle(id),
        mask: (rootId, value) => options.host.mask(value, options.secrets.values(rootId)),
        secretInputs: rootId => options.secrets.read(rootId),
      },
      options.slots,
    )
  }

  /** Continues every run that has not ended. To be called once, before anything is started. */
  async recover(): Promise<void> {
    await this.#disk.look()
    this.#disk.watch()
    await this.#journal.write(() => {
      for (const receipt of doubtAllSent(this.store)) this.#receiptChanged(receipt)
      this.#machine.recover()
    })
    this.#deliveries.recover()
    // What a kill left: secrets of a run that had just ended, or that had not begun. What is still to be told needs them.
    const { secrets } = this.#options
    const old = secrets.kept().filter(id => !this.#machine.lives.has(id))
    void this.#deliveries.settled().then(() => Promise.all(old.map(id => secrets.forget(id))))
  }

  async start(request: StartRequest): Promise<RunRecord> {
    if (this.#stopping) throw new CadreError('unavailable', 'the daemon is stopping; start the run again afterwards')
    const { bundle, inputs, runName = null, workspace = null, fromPath = false, synced = false } = request
    const id = request.runId ?? Bun.randomUUIDv7()
    const fields = bundle.team(bundle.root).inputs
    this.#bundles.set(bundle.id, bundle)
    await this.#options.secrets.keep(id, fields, inputs)
    await this.#journal.write(() =>
      this.#machine.begin({
        id,
        bundle,
        teamKey: bundle.root,
        inputs,
        recordedInputs: maskInputs(fields, inputs),
        runName,
        workspace,
        fromPath,
        synced,
      }),
    )
    return this.record(id)
  }

  /** Asks a run and all below it to end. Throws `not_found`; a run that has ended already is `invalid_state`. */
  async cancel(runId: string, reason = 'cancelled'): Promise<RunRecord> {
    await this.#journal.write(() => {
      const row = this.store.run(runId)
      if (!row) throw new CadreError('not_found', `no run ${runId}`)
      if (row.completed_at !== null) throw new CadreError('invalid_state', `run ${runId} is ${row.state} already`)
      if (row.state === 'queued') {
        throw new CadreError('invalid_state', `run ${runId} waits for its turn: cancel its top run ${row.root_id}`)
      }
      this.#machine.end(runId, { state: 'cancelled', reason })
    })
    return this.record(runId)
  }

  /** Opens an ended run again, as a new attempt: what did not complete, and `from` with all that depends on it. */
  async resume(runId: string, from: string | null = null): Promise<RunRecord> {
    await this.#journal.write(() => {
      if (this.#deleting.has(runId)) throw new CadreError('invalid_state', `run ${runId} is being deleted`)
      resume(this.#machine, runId, from)
    })
    return this.record(runId)
  }

  /** Lets `work` delete the tree of an ended top run, which nobody can open again meanwhile. */
  async deleting(runId: string, work: () => Promise<void>): Promise<void> {
    this.#deleting.add(runId)
    await work().finally(() => this.#deleting.delete(runId))
  }

  planResume(runId: string, from: string | null = null): ResumePlan {
    return planResume(this.#machine, runId, from)
  }

  async decide(reviewId: string, decision: Decision): Promise<void> {
    await this.#journal.write(() => decide(this.#machine, reviewId, decision))
  }

  /** The phases of a run, with what those that have not ended wait for. */
  phases(runId: string): RunPhases {
    const live = this.#machine.lives.get(runId)
    const waits = (position: number) =>
      live ? waitOf(live, position, this.#attempts.note(runId, position), this.#disk.low) : null
    return runPhases(this.store, runId, id => this.bundle(id), waits)
  }

  record(runId: string): RunRecord {
    const row = this.store.run(runId)
    if (!row) throw new CadreError('not_found', `no run ${runId}`)
    return runRecord(row)
  }

  /** The record of a run once it has ended and its listeners have been told. */
  async ended(runId: string): Promise<RunRecord> {
    if (this.record(runId).completed_at === null) {
      await this.#followers.untilEnded(runId)
    }
    await this.#deliveries.idle(runId)
    return this.record(runId)
  }

  /** Resolves when every listener that was to be told by now has been. */
  async told(): Promise<void> {
    await this.#deliveries.settled()
  }

  /** Hears of every durable change until the returned function is called. */
  follow(listener: (notice: Notice) => void): () => void {
    return this.#followers.follow(listener)
  }

  stateDir(runId: string): string {
    return this.#places.stateDir(runId)
  }

  bundle(id: string): Bundle {
    const known = this.#bundles.get(id)
    if (known) return known
    const text = this.store.bundle(id)
    if (text === null) throw new CadreError('internal', `bundle ${id} is missing in the run database`)
    return this.#bundles.set(id, this.#options.host.restoreBundle(id, JSON.parse(text)))
  }

  /** Runs that have not ended, and leaf phases in execution. */
  get load(): { runs: number; slots: number; free: number; stalled: string | null } {
    const slots = this.#machine.slotsInUse
    const stalled = this.#journal.stalled ?? this.#disk.low
    const free = stalled ? 0 : Math.max(0, this.#options.slots - slots)
    return { runs: this.#machine.lives.size, slots, free, stalled }
  }

  /** Interrupts what runs, without recording an end: the next start continues it. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#timers.stop()
    this.#disk.stop()
    this.#attempts.abortAll(new Error('the daemon stops'))
    const deadline = performance.now() + STOP_MS
    await Promise.race([this.#deliveries.stop(), new Promise(resolve => setTimeout(resolve, STOP_MS).unref())])
    await this.#attempts.idle(deadline)
    this.logs.flush()
    this.#journal.close()
  }

  readonly #now = (): number => this.#options.now?.() ?? Date.now()

  /** Records how an attempt ended. One that a stop interrupted has no end: the next start opens a new one. */
  async #record(live: LiveRun, position: number, attempt: number, outcome: Outcome): Promise<void> {
    this.logs.flush()
    if (this.#stopping && outcome.kind !== 'completed') return
    try {
      await this.#journal.write(() => {
        if (live.row.synced) this.#options.outbox?.recordLog(live.id, this.logs.last(live.id))
        this.#machine.attemptEnded(live.id, position, attempt, outcome)
      })
    } catch (error) {
      this.#options.log.error('an attempt could not be recorded', { run: live.id, position, error: messageOf(error) })
    }
  }

  #schedule(at: number, change: () => void): void {
    this.#timers.at(at, () => {
      if (!this.#stopping) void this.#journal.write(change)
    })
  }

  #changed(change: Change): void {
    this.#changes.set(`${change.kind}:${change.run.row.id}:${change.position}:${change.entry ?? ''}`, change)
  }

  /** Also of a run that ended meanwhile: an attempt that did not heed its signal may still write. */
  #receiptChanged({ run_id, position, entry }: { run_id: string; position: number; entry: string }): void {
    const row = this.store.run(run_id)
    if (row?.synced !== 1) return
    this.#changed({
      run: { row, team: this.bundle(row.bundle_id).team(row.team_key) },
      position,
      kind: 'receipt',
      entry,
    })
  }

  #committed(): void {
    const changes = [...this.#changes.values()]
    this.#changes.clear()
    this.#machine.runEffects()
    if (changes.some(change => change.run.row.synced)) this.#options.outbox?.committed()
    if (!this.#followers.any) return
    for (const { run, position, kind } of changes) {
      if (kind !== 'receipt') this.#followers.tell({ rootId: run.row.root_id, runId: run.row.id, kind, position })
    }
  }

  #logged(runId: string, lines: readonly LogLine[]): void {
    const live = this.#machine.lives.get(runId)
    if (!live) return
    if (this.#followers.any) {
      this.#followers.tell({ rootId: live.row.root_id, runId, kind: 'log', position: null, lines })
    }
    if (!live.row.synced || !this.#options.outbox || this.#logsQueued.has(runId)) return
    this.#logsQueued.add(runId)
    this.#schedule(this.#now() + LOG_SYNC_MS, () => {
      this.#logsQueued.delete(runId)
      // What an ended run said is in the outbox since its last attempt ended.
      if (this.#machine.lives.has(runId)) this.#options.outbox?.recordLog(runId, this.logs.last(runId))
    })
  }

  #event(live: LiveRun, event: EventName, position: number | null): void {
    if (live.team.listeners.length === 0) return
    if (recordEvent(this.#machine, live, event, position) > 0) this.#machine.after(() => this.#deliveries.send(live.id))
  }

  #runEnded(live: LiveRun): void {
    this.logs.close(live.id)
    void this.#deliveries.idle(live.id).then(() => this.#farewell(live))
  }

  /** Once its last words are said, what a run needed goes, and those who waited for it hear. */
  #farewell({ id, parent }: LiveRun): void {
    // Resumed meanwhile: what it needs stays, and who waits for its end has to wait on.
    if (this.store.run(id)?.completed_at === null) return
    // A listener may have said something since.
    this.logs.close(id)
    if (!parent) void this.#options.secrets.forget(id)
    if (!parent) this.#places.dropWorkspace(id)
    this.#followers.ended(id)
  }
}
