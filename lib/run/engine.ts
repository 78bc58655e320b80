// The engine, and the door of lib/run. It takes runs, executes their phases and records what happens. The way of a run:
//
//   start → steps/begin → store (one group commit) → effect `launch` → attempt/execute → steps/end → store → …
//
// Steps change rows and memory inside a transaction and touch nothing else. What has to happen outside is an effect,
// done after the commit and guarded by itself. Callers are answered once what they asked for is durable. The whole
// design is described in docs/architecture.md.

import type { Database } from 'bun:sqlite'
import { isDiskError } from '../../db/open.ts'
import type { SmallFile } from '../agent/files.ts'
import { CadreError } from '../error.ts'
import type { JsonObject } from '../json.ts'
import type { Log } from '../log.ts'
import { bootId } from '../process.ts'
import { Recent } from '../recent.ts'
import type { Bundle } from '../team/team.ts'
import {
  Attempts,
  DiskSpace,
  Errands,
  Ledger,
  Messenger,
  Places,
  type RootSecrets,
  RunLogs,
  recordEvent,
} from './attempt/attempt.ts'
import type { EngineHost, LiveRun, LogLine } from './core/core.ts'
import { dropStale, restoreSmall, Settler } from './files/files.ts'
import {
  attemptEnded,
  beginTop,
  type Change,
  type Decision,
  decide,
  dueUnits,
  type Effect,
  type Errand,
  errorOf,
  loadTree,
  Machine,
  type NewRun,
  nextDue,
  type Outcome,
  planResume,
  type ResumeOptions,
  type ResumePlan,
  resumable,
  resume,
  secretsNeeded,
  stopRun,
  textOf,
} from './steps/steps.ts'
import { dropSmallFilesBelow, Journal, putSmallFiles, Seal, Store, type Unit } from './store/store.ts'
import {
  Followers,
  type Notice,
  type Outbox,
  type RunPhases,
  type RunRecord,
  runPhases,
  runRecord,
  waitOf,
} from './views/views.ts'

export interface EngineOptions {
  home: string
  db: Database
  host: EngineHost
  secrets: RootSecrets
  log: Log
  /** How many leaf phases may execute at once, over all runs. */
  slots: number
  /** Milliseconds before the ledger believes that a write which was cut off did not happen; default 2,000. */
  settle?: number
  /** Most milliseconds of one delivery of a listener; default 60,000. */
  deliveryTimeout?: number
  now?: () => number
  /** Adds what changed to the hub's outbox, inside the transaction. */
  outbox?: Outbox
}

export interface StartRequest {
  bundle: Bundle
  /** Checked and complete. */
  inputs: JsonObject
  runName?: string | null
  workspace?: string | null
  fromPath?: boolean
  synced?: boolean
  /** The id that was made at dispatch. Starting the same id again changes nothing. */
  runId?: string
}

/** Most bundles in the cache; runs that have not ended hold their own. */
const MOST_BUNDLES = 100
/** How long agents may take to stop when the daemon stops. */
const STOP_MS = 6_000
/** How often the log of a phase that still runs goes to the hub. */
const LOG_SYNC_MS = 1_000
const DELIVERY_MS = 60_000
/** The longest sleep of the timer, after which a change of the system clock is noticed. */
const LONGEST_SLEEP_MS = 1_000
/** How often small files are made durable. */
const SETTLE_FILES_MS = 10_000

export class Engine {
  readonly store: Store
  readonly logs: RunLogs
  readonly #options: EngineOptions
  readonly #journal: Journal
  readonly #machine: Machine
  readonly #ledger: Ledger
  readonly #messenger: Messenger
  readonly #attempts: Attempts
  readonly #errands: Errands
  readonly #disk: DiskSpace
  readonly #places: Places
  readonly #settler: Settler
  readonly #seal: Seal
  readonly #bundles = new Recent<string, Bundle>(MOST_BUNDLES)
  /** Work on the files of one phase is done in order: the last piece of work by lane. */
  readonly #lanes = new Map<string, Promise<void>>()
  /** Top runs that are being deleted, or resumed. */
  readonly #held = new Set<string>()
  readonly #followers: Followers
  /** Runs whose log has lines that the hub has not been told of. */
  readonly #logsToSync = new Set<string>()
  #timer: Timer | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #ticking = false
  #settling: Timer | undefined
  #opening: Promise<void> | undefined
  #stopping = false

  constructor(options: EngineOptions) {
    this.#options = options
    const { db, home, host, log, secrets } = options
    this.store = new Store(db)
    this.#seal = new Seal(home)
    this.#followers = new Followers(log)
    this.#disk = new DiskSpace(home, log, () => this.#journal.wake())
    this.#places = new Places(home, this.store, (row, phase, line) =>
      this.logs.append(row.id, { phase, at: this.#now(), ...host.mask(line, secrets.values(row.root_id)) }),
    )
    this.logs = new RunLogs(
      runId => this.stateDir(runId),
      (runId, lines) => this.#logged(runId, lines),
    )
    this.#machine = new Machine(
      this.store,
      {
        now: this.#now,
        random: Math.random,
        bundle: id => this.bundle(id),
        mask: (rootId, value) => host.mask(value, secrets.values(rootId)),
        secretInputs: rootId => secrets.read(rootId),
        stateDir: runId => this.stateDir(runId),
        executing: (runId, position, attempt) => this.#attempts.has(runId, position, attempt),
        paused: () => this.#stopping || this.#disk.low !== null,
        followed: () => this.#followers.any,
        wakeAt: at => this.#wakeAt(at),
        event: (live, event, position) => recordEvent(this.#machine, live, event, position) > 0,
      },
      options.slots,
    )
    this.#journal = new Journal(
      db,
      {
        next: this.#machine.next,
        hasNext: this.#machine.hasNext,
        beforeUnit: this.#machine.beforeUnit,
        afterUnit: this.#machine.afterUnit,
        unitUndone: this.#machine.unitUndone,
        unitFailed: (unit, error) => this.#unitFailed(unit, error),
        beforeCommit: () => this.#tellOutbox(),
        afterCommit: () => this.#committed(),
        afterRollback: this.#machine.groupUndone,
      },
      log,
    )
    // What agents write may hold secrets, and the database must hold no secret in plain text.
    const seal = (runId: string, { path, bytes }: SmallFile): SmallFile => ({
      path,
      bytes: this.#seal.close(`${runId}/${path}`, bytes),
    })
    const write = <T>(change: () => T): Promise<T> => this.#journal.write({ root: null, apply: change })
    this.#ledger = new Ledger({
      store: this.store,
      write,
      now: this.#now,
      settle: options.settle,
      changed: (runId, position, entry) => this.#receiptChanged(runId, position, entry),
    })
    this.#attempts = new Attempts({
      machine: this.#machine,
      host,
      ledger: this.#ledger,
      places: this.#places,
      secrets: rootId => secrets.values(rootId),
      seal,
    })
    this.#errands = new Errands({
      machine: this.#machine,
      seal,
      write: (root, apply) => this.#journal.write({ root, apply }),
    })
    this.#messenger = new Messenger({
      store: this.store,
      host,
      place: ({ run_id, listener }) => {
        const run = this.store.runs.get(run_id)!
        return this.#places.of({ row: run, bundle: this.bundle(run.bundle_id), inputs: {} }, listener, 1)
      },
      context: (place, binding, event) => host.context(place, binding, { event }),
      mask: (runId, value) => host.mask(value, secrets.values(this.store.runs.get(runId)!.root_id)),
      write,
      timeout: options.deliveryTimeout ?? DELIVERY_MS,
    })
    this.#settler = new Settler({ db, write, stateDirOf: runId => this.stateDir(runId), now: this.#now, log })
  }

  /**
   * Continues every tree that has not ended, or only the trees of the top runs `only`. It must be called before
   * anything is started, and may be called again for a tree that was left out. A tree that cannot be read ends as
   * `failed`; the others continue.
   */
  async recover(only?: readonly string[]): Promise<void> {
    this.#opening ??= this.#open()
    await this.#opening
    const roots = only ?? this.store.runs.openRoots().map(({ id }) => id)
    await Promise.all(
      roots.map(root =>
        this.#journal
          .write({ root, apply: () => this.#takeUp(root) })
          .catch(error => this.#options.log.error('a run cannot be continued', { run: root, error: textOf(error) })),
      ),
    )
    const isWanted = (runId: string) => !only || only.includes(this.store.runs.get(runId)!.root_id)
    for (const runId of this.store.deliveries.runsWithPending()) if (isWanted(runId)) this.#messenger.send(runId)
    for (const id of this.store.runs.unsettled()) if (isWanted(id)) void this.#farewell(id, id)
    this.#wakeAt(this.#now())
  }

  /** What happens once, at the first `recover`. */
  async #open(): Promise<void> {
    await this.#disk.look()
    this.#disk.watch()
    await this.#restoreFiles()
    await this.#journal.write({ root: null, apply: () => this.#doubtSent() })
    // Secrets of a run that was being started, or resumed, when the process ended.
    const { secrets } = this.#options
    await Promise.all(
      secrets
        .kept()
        .filter(id => this.store.runs.get(id)?.settled !== 0)
        .map(id => secrets.forget(id)),
    )
    this.#settling = setInterval(() => void this.#settler.tick(), SETTLE_FILES_MS)
    this.#settling.unref()
  }

  async start(request: StartRequest): Promise<RunRecord> {
    if (this.#stopping) throw stopping()
    const { bundle, inputs, runName = null, workspace = null, fromPath = false, synced = false } = request
    const id = request.runId ?? Bun.randomUUIDv7()
    this.#bundles.set(bundle.id, bundle)
    await this.#keepSecrets(id, bundle, inputs)
    const run: NewRun = { id, bundle, teamKey: bundle.root, inputs, runName, workspace, fromPath, synced }
    return this.#ask(id, () => {
      beginTop(this.#machine, run)
      return this.record(id)
    })
  }

  /**
   * Asks a run and all runs below it to end. `always` phases still run, unless the run is asked again. Throws
   * `not_found`, and `invalid_state` when the run has ended. While the disk is full it aborts what executes and records
   * the rest later.
   */
  async cancel(runId: string, reason = 'cancelled'): Promise<RunRecord> {
    const row = this.store.runs.get(runId)
    if (!row) throw new CadreError('not_found', `there is no run ${runId}`)
    const apply = () => {
      this.#refuseCancel(runId)
      // A tree that `recover` left out is read and asked to end in the same change, so that it starts nothing again.
      if (!this.#machine.lives.has(runId)) loadTree(this.#machine, row.root_id)
      const live = this.#machine.lives.get(runId)!
      stopRun(this.#machine, live, { state: 'cancelled', reason, ...(live.ending && { hard: true }) })
      this.#machine.follow(row.root_id)
      return this.record(runId)
    }
    if (!this.#journal.stalled) {
      try {
        return await this.#ask(row.root_id, apply)
      } catch (error) {
        if (!this.#journal.stalled) throw error
      }
    }
    this.#refuseCancel(runId)
    const place = row.tree_key
    this.#attempts.abortRuns(id => {
      const run = this.store.runs.get(id)
      return run?.root_id === row.root_id && run.tree_key.startsWith(place)
    })
    // By the time it can be recorded the run may have ended by itself, or by another cancel.
    const later = () => void (this.store.runs.isOpen(runId) && apply())
    void this.#journal.write({ root: row.root_id, apply: later }).catch(() => {})
    return this.record(runId)
  }

  /**
   * Opens an ended run again, as a new attempt. Throws `not_found`, `invalid_state`, and `invalid_request` for an
   * unknown phase, or when the run needs the values of secret inputs again.
   */
  async resume(runId: string, options: ResumeOptions = {}): Promise<RunRecord> {
    if (this.#stopping) throw stopping()
    const row = resumable(this.#machine, runId, options)
    if (this.#held.has(runId)) throw new CadreError('invalid_state', `run ${runId} is being deleted or resumed`)
    const bundle = this.bundle(row.bundle_id)
    const secrets = this.#secretsAgain(runId, bundle, options.inputs ?? {})
    this.#held.add(runId)
    try {
      if (secrets) await this.#keepSecrets(runId, bundle, secrets)
      return await this.#ask(runId, () => {
        resume(this.#machine, runId, options)
        return this.record(runId)
      })
    } catch (error) {
      // It stays ended: the secrets go, and what its end calls for and the resume held up is done.
      void this.#farewell(runId, runId)
      throw error
    } finally {
      this.#held.delete(runId)
    }
  }

  planResume(runId: string, options: ResumeOptions = {}): ResumePlan {
    return planResume(this.#machine, runId, options)
  }

  /** Calls `work`, which deletes the tree of an ended top run; until it returns, nobody can open the run again. */
  async deleting(runId: string, work: () => Promise<void>): Promise<void> {
    this.#held.add(runId)
    await work().finally(() => this.#held.delete(runId))
  }

  async decide(reviewId: string, decision: Decision): Promise<void> {
    const review = this.store.reviews.get(reviewId)
    const root = review && this.store.runs.get(review.run_id)?.root_id
    await this.#ask(root ?? null, () => decide(this.#machine, reviewId, decision))
  }

  /** The phases of a run. Each phase that has not ended says what it waits for. */
  phases(runId: string): RunPhases {
    const live = this.#machine.lives.get(runId)
    const waits = (position: number) =>
      live ? waitOf(live, position, this.#attempts.note(runId, position), this.#disk.low) : null
    return runPhases(this.store, runId, id => this.bundle(id), waits)
  }

  record(runId: string): RunRecord {
    const row = this.store.runs.get(runId)
    if (!row) throw new CadreError('not_found', `there is no run ${runId}`)
    return runRecord(row)
  }

  /** The record of a run once it has ended and its listeners have been told. */
  async ended(runId: string): Promise<RunRecord> {
    for (;;) {
      if (this.record(runId).completed_at === null) await this.#followers.untilEnded(runId)
      await this.#messenger.idle(runId)
      const record = this.record(runId)
      // The run may have been resumed the moment it ended.
      if (record.completed_at !== null) return record
    }
  }

  /** Resolves when all deliveries that are being sent now have been sent. */
  async told(): Promise<void> {
    await this.#messenger.settled()
  }

  /** Calls `listener` for every durable change, until the returned function is called. */
  follow(listener: (notice: Notice) => void): () => void {
    return this.#followers.follow(listener)
  }

  stateDir(runId: string): string {
    return this.#places.stateDir(runId)
  }

  bundle(id: string): Bundle {
    const known = this.#bundles.get(id)
    if (known) return known
    const text = this.store.bundles.get(id)
    if (text === null) throw new CadreError('internal', `bundle ${id} is missing in the run database`)
    return this.#bundles.set(id, this.#options.host.restoreBundle(id, JSON.parse(text)))
  }

  /** How many runs have not ended, how many slots are used and free, and why nothing can be recorded, if so. */
  get load(): { runs: number; slots: number; free: number; stalled: string | null } {
    const slots = this.#machine.slots.inUse
    const stalled = this.#journal.stalled ?? this.#disk.low
    const free = stalled ? 0 : Math.max(0, this.#options.slots - slots)
    return { runs: this.#machine.lives.size, slots, free, stalled }
  }

  /** Interrupts what executes without recording an end: the next start continues it. */
  async stop(): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#timer)
    clearInterval(this.#settling)
    this.#disk.stop()
    this.#attempts.abortAll(new Error('the daemon stops'))
    const deadline = performance.now() + STOP_MS
    const work = Promise.all([this.#messenger.stop(), ...this.#lanes.values()])
    await Promise.race([work, new Promise(resolve => setTimeout(resolve, STOP_MS).unref())])
    await this.#attempts.idle(deadline)
    this.logs.flush()
    this.#journal.close()
  }

  readonly #now = (): number => this.#options.now?.() ?? Date.now()

  /** Queues a change that somebody waits for. It is refused while the disk takes no writes. */
  #ask<T>(root: string | null, apply: () => T): Promise<T> {
    return this.#journal.write({ root, apply, request: true })
  }

  #refuseCancel(runId: string): void {
    const row = this.store.runs.get(runId)
    if (!row) throw new CadreError('not_found', `there is no run ${runId}`)
    if (row.completed_at !== null)
      throw new CadreError('invalid_state', `run ${runId} has already ended (${row.state})`)
    if (row.state === 'queued') {
      throw new CadreError(
        'invalid_state',
        `run ${runId} waits for its new attempt and cannot be cancelled alone: cancel its top run ${row.root_id}`,
      )
    }
  }

  // Secrets

  async #keepSecrets(runId: string, bundle: Bundle, inputs: JsonObject): Promise<void> {
    try {
      await this.#options.secrets.keep(runId, bundle.team(bundle.root).inputs, inputs)
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      if (code !== 'ENOSPC' && code !== 'EDQUOT') throw cause
      throw new CadreError('unavailable', `the disk of ${this.#options.home} is full: free space, then try again`, {
        cause,
      })
    }
  }

  /** The values of secret inputs for a new attempt; null when it needs none. */
  #secretsAgain(runId: string, bundle: Bundle, given: JsonObject): JsonObject | null {
    const team = bundle.team(bundle.root)
    const wrong = Object.keys(given).filter(name => !team.inputs.some(input => input.secret && input.name === name))
    if (wrong.length > 0) {
      throw new CadreError(
        'invalid_request',
        `only secret inputs can be given again at a resume: ${wrong.join(', ')} ${wrong.length > 1 ? 'keep their values' : 'keeps its value'} from the start`,
        { details: wrong.map(name => ({ path: `/inputs/${name}`, message: 'must be a secret input of this team' })) },
      )
    }
    const needed = secretsNeeded(team, this.store.runs.get(runId)!)
    if (needed.length === 0) return null
    const missing = needed.filter(name => !(name in given))
    if (missing.length > 0) {
      const options = missing.map(name => `-i ${name}=@-`).join(' ')
      throw new CadreError(
        'invalid_request',
        `the values of secret inputs are kept only until a run ends: give ${missing.join(', ')} again (${options})`,
        { details: missing.map(name => ({ path: `/inputs/${name}`, message: `input ${name}: give it again` })) },
      )
    }
    return given
  }

  // Starting

  /**
   * Makes small files again that the file system lost. Only after a boot of the machine can they be older than the
   * rows.
   */
  async #restoreFiles(): Promise<void> {
    const boot = bootId()
    if (this.store.facts.get('boot') === boot) return
    const { log } = this.#options
    const open = (place: string, sealed: Uint8Array) => this.#seal.open(place, sealed)
    await restoreSmall(this.store.db, { stateDirOf: runId => this.stateDir(runId), open, log })
    await this.#journal.write({ root: null, apply: () => this.store.facts.set('boot', boot) })
  }

  /** Marks as unknown what the previous process may have sent. */
  #doubtSent(): void {
    for (const { run_id, position, entry } of this.store.receipts.doubtAll()) {
      this.#receiptChanged(run_id, position, entry)
    }
    this.store.deliveries.doubtAll()
  }

  #takeUp(root: string): void {
    const row = this.store.runs.get(root)
    if (!row) throw new CadreError('not_found', `there is no run ${root}`)
    if (row.completed_at !== null) return
    loadTree(this.#machine, root)
    this.#machine.follow(root)
  }

  // After a commit

  #committed(): void {
    const { effects, changes } = this.#machine.takeCommitted()
    for (const effect of effects) {
      try {
        this.#do(effect)
      } catch (error) {
        this.#options.log.error('an effect failed', { effect: effect.kind, error: textOf(error) })
      }
    }
    try {
      this.#tell(changes)
    } catch (error) {
      this.#options.log.error('changes could not be told', { error: textOf(error) })
    }
  }

  /** Called inside the transaction. A change that cannot be put into the outbox is logged and delays nothing. */
  #tellOutbox(): void {
    const { outbox, log } = this.#options
    for (const change of outbox ? this.#machine.changes : []) {
      try {
        outbox!.record([change])
      } catch (error) {
        if (isDiskError(error)) throw error
        log.error('a change cannot be told to the hub', { run: change.run.id, kind: change.kind, error: textOf(error) })
      }
    }
  }

  #tell(changes: readonly Change[]): void {
    if (changes.some(({ run }) => run.synced)) this.#options.outbox?.committed()
    if (!this.#followers.any) return
    for (const { run, position, kind } of changes) {
      if (kind !== 'receipt') this.#followers.tell({ rootId: run.root_id, runId: run.id, kind, position })
    }
  }

  #do(effect: Effect): void {
    switch (effect.kind) {
      case 'launch':
        return this.#launch(effect)
      case 'abort':
        return this.#attempts.abort(effect.runId, effect.position, effect.attempt)
      case 'limit':
        return this.#attempts.limit(effect.runId, effect.position, effect.attempt, effect.ms)
      case 'errand':
        return this.#send(effect.errand)
      case 'clear':
        return this.#inLane(folderLane(effect.runId, effect.position), () => this.#clear(effect))
      case 'deliver':
        return this.#messenger.send(effect.runId)
      case 'ended':
        void this.#farewell(effect.runId, effect.root)
    }
  }

  #launch({ runId, position, attempt }: Extract<Effect, { kind: 'launch' }>): void {
    const live = this.#machine.live(runId, position, attempt)
    // A tree that was read anew in the group that began the attempt begins another one.
    if (!live || live.phases[position]!.state !== 'running' || this.#stopping) return
    void this.#attempts
      .run(live, position, attempt, outcome => this.#record(live, position, attempt, outcome))
      .catch(error => {
        this.#options.log.error('an attempt could not be recorded', { run: runId, position, error: textOf(error) })
      })
  }

  /** Records how an attempt ended. An attempt that `stop` interrupted gets no end: the next start opens a new one. */
  async #record(live: LiveRun, position: number, attempt: number, outcome: Outcome): Promise<void> {
    this.logs.flush()
    if (this.#stopping && outcome.kind !== 'completed') return
    await this.#journal.write({
      root: live.root,
      apply: () => {
        if (live.row.synced) this.#options.outbox?.recordLog(live.id, this.logs.last(live.id))
        if (!attemptEnded(this.#machine, live.id, position, attempt, outcome) || outcome.kind !== 'completed') return
        if (attempt > 1) dropSmallFilesBelow(this.store.db, live.id, `files/${live.phase(position).name}`)
        if (outcome.small) putSmallFiles(this.store.db, live.id, outcome.small, this.#now())
      },
    })
  }

  #send(errand: Errand): void {
    // Files are handed over into a folder that may have to be cleared first.
    const row = errand.kind === 'outputs' ? this.store.runs.get(errand.runId) : null
    const folder = row
      ? folderLane(row.parent_id ?? '', row.parent_position ?? -1)
      : folderLane(errand.runId, errand.position)
    this.#inLane(`${errand.runId}:${errand.position}`, async () => {
      await this.#lanes.get(folder)
      if (this.#stopping) return
      try {
        await this.#errands.run(errand)
      } catch (thrown) {
        if (this.#stopping) return
        await this.#errands.fail(errand, thrown)
      }
    })
  }

  /** Removes files that earlier attempts of a phase got from sub-runs that run again or no longer count. */
  async #clear({ runId, position }: Extract<Effect, { kind: 'clear' }>): Promise<void> {
    const live = this.#machine.lives.get(runId)
    const phase = live?.phase(position)
    if (!phase) return
    const keep = new Set<string>()
    if (phase.type === 'map') {
      const total = this.store.phases.total(runId, position) ?? 0
      for (const child of this.store.runs.children(runId, position)) {
        if (child.state !== 'completed' || child.item! >= total) continue
        keep.add(this.store.items.folder(runId, position, child.item!) ?? child.run_name!)
      }
    }
    await dropStale(this.stateDir(runId), phase.name, keep)
  }

  #inLane(lane: string, work: () => Promise<void>): void {
    const before = this.#lanes.get(lane) ?? Promise.resolve()
    const mine = before.then(work).catch(error => {
      this.#options.log.error('work on the files of a phase failed', { phase: lane, error: textOf(error) })
    })
    this.#lanes.set(lane, mine)
    void mine.finally(() => this.#lanes.get(lane) === mine && this.#lanes.delete(lane))
  }

  /** After the end of a run: waits for its listeners, removes what it needed, and tells those who wait for its end. */
  async #farewell(runId: string, root: string): Promise<void> {
    const hasEnded = () => !this.#stopping && !this.store.runs.isOpen(runId)
    this.logs.close(runId)
    await this.#messenger.idle(runId)
    // If the run was resumed meanwhile, it keeps what it needs, and those who wait for its end wait on.
    if (!hasEnded()) return
    // A listener may have written to the log since.
    this.logs.close(runId)
    const isTop = runId === root && !this.#held.has(runId)
    try {
      if (isTop) await this.#options.secrets.forget(runId)
    } catch (error) {
      this.#options.log.warn('the secret inputs of a run could not be removed', { run: runId, error: textOf(error) })
    }
    if (!hasEnded()) return
    this.#followers.ended(runId)
    if (!isTop || this.store.runs.isSettled(runId)) return
    const apply = () => this.store.runs.settle(runId)
    await this.#journal.write({ root: null, apply }).catch(() => {})
  }

  // Faults

  /** A change failed twice: its tree ends, so that nothing waits for it forever. */
  #unitFailed({ root }: Unit, thrown: unknown): void {
    if (root === null) return
    const { code, message } = errorOf(thrown)
    const prefix = code === 'internal' ? 'a fault of the engine ended the run: ' : 'the run cannot be continued: '
    this.#machine.abandon(root, { code: 'internal', message: prefix + message, run_id: root })
  }

  // Time

  /** Makes the timer ask the rows what is due at `at` at the latest. */
  #wakeAt(at: number): void {
    if (at >= this.#timerAt || this.#stopping) return
    this.#timerAt = at
    clearTimeout(this.#timer)
    const wait = Math.min(Math.max(0, at - this.#now()), LONGEST_SLEEP_MS)
    this.#timer = setTimeout(() => void this.#tick(), wait)
  }

  async #tick(): Promise<void> {
    this.#timerAt = Number.POSITIVE_INFINITY
    if (this.#stopping || this.#ticking) return
    this.#ticking = true
    try {
      const now = this.#now()
      if (!this.#journal.stalled) {
        for (const units of dueUnits(this.#machine, now)) {
          await Promise.all(units.map(unit => this.#journal.write(unit).catch(() => {})))
          if (this.#stopping) return
        }
      }
      // A clock that was set back meanwhile has passed over nothing.
      const next = nextDue(this.#machine, Math.min(now, this.#now()))
      if (next !== null) this.#wakeAt(next)
      else if (this.#journal.stalled) this.#wakeAt(now + LONGEST_SLEEP_MS)
    } catch (error) {
      this.#options.log.error('what is due could not be read', { error: textOf(error) })
      this.#wakeAt(this.#now() + LONGEST_SLEEP_MS)
    } finally {
      this.#ticking = false
    }
  }

  // What others are told

  /** Works for an ended run too: an attempt that ignored its signal may still write. */
  #receiptChanged(runId: string, position: number, entry: string): void {
    const row = this.store.runs.get(runId)
    if (row?.synced !== 1) return
    const team = this.bundle(row.bundle_id).team(row.team_key)
    this.#machine.note({ run: row, team, position, kind: 'receipt', entry })
  }

  #logged(runId: string, lines: readonly LogLine[]): void {
    const live = this.#machine.lives.get(runId)
    if (!live) return
    if (this.#followers.any) {
      this.#followers.tell({ rootId: live.root, runId, kind: 'log', position: null, lines })
    }
    const { outbox } = this.#options
    if (!live.row.synced || !outbox || this.#stopping) return
    if (this.#logsToSync.size === 0) setTimeout(() => this.#syncLogs(outbox), LOG_SYNC_MS).unref()
    this.#logsToSync.add(runId)
  }

  #syncLogs(outbox: Outbox): void {
    const runs = [...this.#logsToSync]
    this.#logsToSync.clear()
    if (this.#stopping) return
    const apply = () => {
      // The log of an ended run went into the outbox when its last attempt ended.
      for (const runId of runs) if (this.#machine.lives.has(runId)) outbox.recordLog(runId, this.logs.last(runId))
    }
    void this.#journal
      .write({ root: null, apply })
      .then(() => outbox.committed())
      .catch(() => {})
  }
}

/** The lane in which the folder of a team or map phase is cleared. */
const folderLane = (runId: string, position: number): string => `${runId}:${position}:folder`

const stopping = () => new CadreError('unavailable', 'the daemon is stopping; start the run again afterwards')

// What other rooms use of this one

export { RootSecrets, readLines } from './attempt/attempt.ts'
export {
  type EngineHost,
  type LogLine,
  type ReviewRow,
  RUN_STATES,
  type RunError,
  type RunRow,
  runEnded,
} from './core/core.ts'
export { CHOICES, type Decision, maskInputs, type ResumeOptions, type ResumePlan } from './steps/steps.ts'
export { Store } from './store/store.ts'
export {
  type ListFilter,
  listRuns,
  type Notice,
  type PhaseRecord,
  phaseRecord,
  type ReviewRecord,
  type RunDetail,
  type RunPhases,
  type RunRecord,
  reviewRecord,
  rootOf,
  runDetail,
  runPhases,
  runRecord,
  SyncOutbox,
  type TreeEntry,
  treeEntries,
  type Why,
  why,
} from './views/views.ts'
