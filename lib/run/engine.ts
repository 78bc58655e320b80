// The engine, and the only file of lib/run that other folders import. It accepts runs, executes their phases and
// records what happens. The path of a run:
//
//   start → steps/begin → store (one group commit) → effects/launcher → attempt/execute → steps/end → store → …
//
// Steps change rows and memory inside a transaction and touch nothing else. Anything that must happen outside is an
// effect, which is carried out after the commit with its own error handling. Callers get their answer after their
// change is durable. This file connects the folders of lib/run and answers callers. The whole design is described in
// docs/architecture.md.

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
import type { EngineHost } from './core/core.ts'
import { AfterCommit, Alarm, Farewell, Launcher, LogFeed, PhaseFolders } from './effects/effects.ts'
import { restoreSmall, Settler } from './files/files.ts'
import {
  beginTop,
  continueTree,
  type Decision,
  decide,
  doubtSent,
  errorOf,
  loadTree,
  Machine,
  type NewRun,
  planResume,
  type ResumeOptions,
  type ResumePlan,
  receiptChanged,
  refuseStop,
  resumable,
  resume,
  secretsAgain,
  stopRun,
  textOf,
} from './steps/steps.ts'
import { Journal, Seal, Store, type Unit } from './store/store.ts'
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
  /** Maximum number of milliseconds for one delivery of a listener; default 60,000. */
  deliveryTimeout?: number
  now?: () => number
  /** Adds changes to the hub's outbox, inside the transaction. */
  outbox?: Outbox
}

export interface StartRequest {
  bundle: Bundle
  /** The inputs, already checked and complete. */
  inputs: JsonObject
  runName?: string | null
  workspace?: string | null
  fromPath?: boolean
  synced?: boolean
  /** The id that was assigned at dispatch. Starting the same id again has no effect. */
  runId?: string
}

/** Maximum number of bundles in the cache. Runs that have not ended hold their own. */
const MOST_BUNDLES = 100
/** How long agents may take to stop when the daemon stops. */
const STOP_MS = 6_000
const DELIVERY_MS = 60_000

export class Engine {
  readonly store: Store
  readonly logs: RunLogs
  readonly #options: EngineOptions
  readonly #machine: Machine
  readonly #journal: Journal
  readonly #attempts: Attempts
  readonly #messenger: Messenger
  readonly #folders: PhaseFolders
  readonly #farewell: Farewell
  readonly #alarm: Alarm
  readonly #followers: Followers
  readonly #places: Places
  readonly #disk: DiskSpace
  readonly #settler: Settler
  readonly #seal: Seal
  readonly #bundles = new Recent<string, Bundle>(MOST_BUNDLES)
  /** Top runs that are being deleted, or resumed. */
  readonly #held = new Set<string>()
  readonly #stop = new AbortController()
  #opening: Promise<void> | undefined

  constructor(options: EngineOptions) {
    this.#options = options
    const { db, home, host, log, secrets, outbox } = options
    const stopping = this.#stop.signal
    const now = (): number => options.now?.() ?? Date.now()
    const write = <T>(change: () => T): Promise<T> => this.#journal.write({ root: null, apply: change })
    const stateDirOf = (runId: string) => this.stateDir(runId)
    // Files of agents may contain secrets, and the database must not contain a secret in plain text.
    const seal = (runId: string, { path, bytes }: SmallFile): SmallFile => ({
      path,
      bytes: this.#seal.close(`${runId}/${path}`, bytes),
    })

    this.store = new Store(db)
    this.#seal = new Seal(home)
    this.#followers = new Followers(log)
    this.#disk = new DiskSpace(home, log, () => this.#journal.wake())
    this.#machine = new Machine(
      this.store,
      {
        now,
        random: Math.random,
        bundle: id => this.bundle(id),
        mask: (rootId, value) => host.mask(value, secrets.values(rootId)),
        secretInputs: rootId => secrets.read(rootId),
        stateDir: stateDirOf,
        executing: (runId, position, attempt) => this.#attempts.has(runId, position, attempt),
        paused: () => stopping.aborted || this.#disk.low !== null,
        followed: () => this.#followers.any,
        wakeAt: at => this.#alarm.wakeAt(at),
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
        afterCommit: () => afterCommit.committed(),
        afterRollback: this.#machine.groupUndone,
      },
      log,
    )
    const common = { machine: this.#machine, journal: this.#journal, followers: this.#followers, outbox, stopping, log }

    const feed = new LogFeed({ ...common, last: runId => this.logs.last(runId) })
    this.logs = new RunLogs(stateDirOf, (runId, lines) => feed.tell(runId, lines))
    this.#places = new Places(home, this.store, (row, phase, line) =>
      this.logs.append(row.id, { phase, at: now(), ...host.mask(line, secrets.values(row.root_id)) }),
    )
    const ledger = new Ledger({
      store: this.store,
      write,
      now,
      settle: options.settle,
      changed: (runId, position, entry) => receiptChanged(this.#machine, runId, position, entry),
    })
    this.#attempts = new Attempts({
      machine: this.#machine,
      host,
      ledger,
      places: this.#places,
      secrets: rootId => secrets.values(rootId),
      seal,
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
    const errands = new Errands({
      machine: this.#machine,
      seal,
      write: (root, apply) => this.#journal.write({ root, apply }),
    })
    this.#folders = new PhaseFolders({ ...common, errands, places: this.#places })
    this.#farewell = new Farewell({
      ...common,
      store: this.store,
      logs: this.logs,
      messenger: this.#messenger,
      secrets,
      isHeld: runId => this.#held.has(runId),
    })
    const launcher = new Launcher({ ...common, attempts: this.#attempts, logs: this.logs })
    const afterCommit = new AfterCommit({
      ...common,
      launcher,
      attempts: this.#attempts,
      folders: this.#folders,
      messenger: this.#messenger,
      farewell: this.#farewell,
    })
    this.#alarm = new Alarm(this.#machine, this.#journal, log)
    this.#settler = new Settler({ db, write, stateDirOf, now, log })
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
          .write({ root, apply: () => continueTree(this.#machine, root) })
          .catch(error => this.#options.log.error('a run cannot be continued', { run: root, error: textOf(error) })),
      ),
    )
    const isWanted = (runId: string) => !only || only.includes(this.store.runs.get(runId)!.root_id)
    for (const runId of this.store.deliveries.runsWithPending()) if (isWanted(runId)) this.#messenger.send(runId)
    for (const id of this.store.runs.unsettled()) if (isWanted(id)) this.#farewell.take(id, id, false)
    this.#alarm.wakeAt(this.#machine.world.now())
  }

  /** Runs once, at the first `recover`. */
  async #open(): Promise<void> {
    await this.#disk.look()
    this.#disk.watch()
    await this.#restoreFiles()
    await this.#journal.write({ root: null, apply: () => doubtSent(this.#machine) })
    // Removes the secrets of runs that were being started or resumed when the process ended.
    const { secrets } = this.#options
    const left = secrets.kept().filter(id => this.store.runs.get(id)?.settled !== 0)
    await Promise.all(left.map(id => secrets.forget(id)))
    this.#settler.start()
  }

  /**
   * Restores small files that the file system lost. Files can be older than the rows only after a reboot of the
   * machine.
   */
  async #restoreFiles(): Promise<void> {
    const boot = bootId()
    if (this.store.facts.get('boot') === boot) return
    const { log } = this.#options
    const open = (place: string, sealed: Uint8Array) => this.#seal.open(place, sealed)
    await restoreSmall(this.store.db, { stateDirOf: runId => this.stateDir(runId), open, log })
    await this.#journal.write({ root: null, apply: () => this.store.facts.set('boot', boot) })
  }

  async start(request: StartRequest): Promise<RunRecord> {
    if (this.#stop.signal.aborted) throw stopping()
    const { bundle, inputs, runName = null, workspace = null, fromPath = false, synced = false } = request
    const id = request.runId ?? Bun.randomUUIDv7()
    if (request.runId !== undefined && this.store.runs.get(id)) return this.record(id)
    const { secrets } = this.#options
    this.#bundles.set(bundle.id, bundle)
    const run: NewRun = { id, bundle, teamKey: bundle.root, inputs, runName, workspace, fromPath, synced }
    try {
      await secrets.keep(id, bundle.team(bundle.root).inputs, inputs)
      return await this.#ask(id, () => {
        beginTop(this.#machine, run)
        const live = this.#machine.lives.get(id)
        return live ? runRecord(live.row) : this.record(id)
      })
    } catch (error) {
      // The run never began, so nothing would remove its secrets later.
      if (!this.store.runs.get(id)) await secrets.forget(id).catch(() => {})
      throw error
    }
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
      refuseStop(this.#machine, runId)
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
    return this.#cancelLater(runId, apply)
  }

  /**
   * Used while nothing can be recorded: aborts the running attempts, and leaves the cancel to the first commit that
   * succeeds.
   */
  #cancelLater(runId: string, apply: () => unknown): RunRecord {
    const { root_id, tree_key } = refuseStop(this.#machine, runId)
    this.#attempts.abortRuns(id => {
      const run = this.store.runs.get(id)
      return run?.root_id === root_id && run.tree_key.startsWith(tree_key)
    })
    // By the time the cancel can be recorded, the run may have ended by itself or by another cancel.
    const later = () => void (this.store.runs.isOpen(runId) && apply())
    void this.#journal.write({ root: root_id, apply: later }).catch(() => {})
    return this.record(runId)
  }

  /**
   * Opens an ended run again, as a new attempt. Throws `not_found`, `invalid_state`, and `invalid_request` for an
   * unknown phase, or when the run needs the values of secret inputs again.
   */
  async resume(runId: string, options: ResumeOptions = {}): Promise<RunRecord> {
    if (this.#stop.signal.aborted) throw stopping()
    const row = resumable(this.#machine, runId, options)
    if (this.#held.has(runId)) throw new CadreError('invalid_state', `run ${runId} is being deleted or resumed`)
    const bundle = this.bundle(row.bundle_id)
    const team = bundle.team(bundle.root)
    const secrets = secretsAgain(team, row, options.inputs ?? {})
    this.#held.add(runId)
    try {
      if (secrets) await this.#options.secrets.keep(runId, team.inputs, secrets)
      return await this.#ask(runId, () => {
        resume(this.#machine, runId, options)
        return this.record(runId)
      })
    } catch (error) {
      // It stays ended: the secrets go, and what its end calls for and the resume held up is done.
      this.#farewell.take(runId, runId, false)
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

  /** Resolves with the record of a run after it has ended and its deliveries have been sent. */
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

  /** Interrupts the running attempts without recording an outcome. The next start continues them. */
  async stop(): Promise<void> {
    this.#stop.abort()
    this.#alarm.stop()
    this.#settler.stop()
    this.#disk.stop()
    this.#attempts.abortAll(new Error('the daemon stops'))
    const deadline = performance.now() + STOP_MS
    const work = Promise.all([this.#messenger.stop(), this.#folders.idle()])
    await Promise.race([work, new Promise(resolve => setTimeout(resolve, STOP_MS).unref())])
    await this.#attempts.idle(deadline)
    this.logs.flush()
    this.#journal.close()
  }

  /** Queues a change that a caller waits for. It is refused while the disk accepts no writes. */
  #ask<T>(root: string | null, apply: () => T): Promise<T> {
    return this.#journal.write({ root, apply, request: true })
  }

  /**
   * Called inside the transaction. A change that cannot be put into the outbox is logged and does not delay the others.
   */
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

  /** Called when a change failed twice. Its tree is ended, so that nothing waits for it forever. */
  #unitFailed({ root }: Unit, thrown: unknown): void {
    if (root === null) return
    const { code, message } = errorOf(thrown)
    const prefix = code === 'internal' ? 'a fault of the engine ended the run: ' : 'the run cannot be continued: '
    this.#machine.abandon(root, { code: 'internal', message: prefix + message, run_id: root })
  }
}

const stopping = () => new CadreError('unavailable', 'the daemon is stopping; start the run again afterwards')

// What other folders use of lib/run

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
  listRuns,
  type Notice,
  phaseRecord,
  type ReviewRecord,
  type RunPhases,
  type RunRecord,
  reviewRecord,
  rootOf,
  runDetail,
  runPhases,
  runRecord,
  SyncOutbox,
  treeEntries,
  type Why,
  why,
} from './views/views.ts'
