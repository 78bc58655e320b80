// The engine, and the only file of lib/run that other folders import. It accepts runs, executes their phases and
// records what happens. The path of a run:
//
//   start → steps/begin → store (one group commit) → effects/launcher → attempt/execute → steps/end → store → …
//
// Steps change rows and memory inside a transaction and touch nothing else. Anything that must happen outside is an
// effect, which is carried out after the commit with its own error handling. Callers get their answer after their
// change is durable. parts.ts connects the folders of lib/run; this file answers callers. The whole design is described
// in docs/architecture.md.

import { CadreError } from '../error.ts'
import { isRunId, newRunId, type RunId, removeRunFolder } from '../files/run-id.ts'
import type { JsonObject } from '../json.ts'
import { bootId } from '../program/process.ts'
import type { Bundle } from '../team/team.ts'
import type { RunLogs } from './attempt/attempt.ts'
import type { RunRow } from './core/core.ts'
import { restoreSmall } from './files/files.ts'
import { assemble, type EngineOptions, type Parts } from './parts.ts'
import {
  continueTree,
  type Decision,
  decide,
  doubtSent,
  endQueued,
  fileAccessOf,
  isAsked,
  keyOf,
  loadTree,
  type NewRun,
  outlasts,
  planResume,
  type ResumeOptions,
  type ResumePlan,
  refuseStop,
  resolveFileInputs,
  resumable,
  resume,
  secretsAgain,
  startTopRun,
  stopRun,
  textOf,
} from './steps/steps.ts'
import type { Commit, Store, Unasked } from './store/store.ts'
import { type Notice, type RunPhases, type RunRecord, runPhases, runRecord, turnOfRun, waitOf } from './views/views.ts'

export type { EngineOptions }

export interface StartRequest {
  bundle: Bundle
  /** The inputs, already checked and complete. */
  inputs: JsonObject
  runName?: string | null
  workspace?: string | null
  fromPath?: boolean
  synced?: boolean
  /** The id that was assigned at dispatch. Starting the same id again has no effect. */
  runId?: RunId
}

/** How long agents may take to stop when the daemon stops. */
const STOP_MS = 6_000

export class Engine {
  readonly store: Store
  readonly logs: RunLogs
  readonly #options: EngineOptions
  readonly #parts: Parts
  /** Top runs that are being deleted, or resumed. */
  readonly #held = new Set<string>()
  readonly #stop = new AbortController()
  #opening: Promise<void> | undefined

  constructor(options: EngineOptions) {
    this.#options = options
    this.#parts = assemble(options, this.#stop.signal, runId => this.#held.has(runId))
    this.store = this.#parts.store
    this.logs = this.#parts.logs
  }

  /**
   * Continues every tree that has not ended, or only those whose top runs are wanted. It must be called before anything
   * is started, and may be called again for a tree that was left out. A tree that cannot be read ends as `failed`; the
   * others continue.
   */
  async recover(isWantedRoot: (rootId: string) => boolean = () => true): Promise<void> {
    this.#opening ??= this.#open()
    await this.#opening
    const roots = this.store.runs
      .openRoots()
      .map(({ id }) => id)
      .filter(isWantedRoot)
    for (const id of roots) if (this.store.runs.get(id)?.state === 'queued') this.#parts.machine.queued.add(id)
    await Promise.all(
      roots.map(root =>
        this.#parts.journal
          .write({ root, apply: () => continueTree(this.#parts.machine, root) })
          .catch(error => this.#options.log.error('a run cannot be continued', { run: root, error: textOf(error) })),
      ),
    )
    const isWanted = (runId: string) => isWantedRoot(this.store.runs.get(runId)!.root_id)
    for (const runId of this.store.deliveries.runsWithPending()) if (isWanted(runId)) this.#parts.messenger.send(runId)
    for (const id of this.store.runs.unsettled()) if (isWanted(id)) this.#parts.afterRun.take(id, id, false)
    for (const { id, root_id } of this.store.runs.withOpenLog()) {
      if (isWanted(id)) this.#parts.afterRun.take(id, root_id, false)
    }
    this.#parts.alarm.wakeAt(this.#parts.machine.world.now())
  }

  /** Runs once, at the first `recover`. */
  async #open(): Promise<void> {
    await this.#parts.disk.look()
    this.#parts.disk.watch()
    await this.#restoreFiles()
    const { bootClock } = this.#parts
    await this.#parts.journal.write({
      root: null,
      apply: () => doubtSent(this.#parts.machine, { boot: bootClock.boot, at: bootClock.now() }),
    })
    // Removes the secrets of runs that were being started or resumed when the process ended.
    const { secrets } = this.#options
    const left = secrets.kept().filter(id => this.store.runs.get(id)?.settled !== 0)
    await Promise.all(left.map(id => secrets.forget(id)))
    this.#parts.settler.start()
    this.#parts.looks.start()
  }

  /**
   * Restores small files that the file system lost. Files can be older than the rows only after a reboot of the
   * machine.
   */
  async #restoreFiles(): Promise<void> {
    const boot = bootId()
    if (this.store.facts.get('boot') === boot) return
    const { log } = this.#options
    const open = (place: string, sealed: Uint8Array) => this.#parts.sealer.open(place, sealed)
    await restoreSmall(this.store.db, { stateDirOf: runId => this.stateDir(runId), open, log })
    await this.#parts.journal.write({ root: null, apply: () => this.store.facts.set('boot', boot) })
  }

  /** `also`, here and below, changes other rows in the transaction of what is asked for, if that changes anything. */
  async start(request: StartRequest, also?: () => void): Promise<RunRecord> {
    if (this.#stop.signal.aborted) throw stopping()
    const { bundle, runName = null, workspace = null, fromPath = false, synced = false } = request
    const id = request.runId ?? newRunId()
    if (request.runId !== undefined && this.store.runs.attempt(id) !== null) return this.record(id)
    const { secrets } = this.#options
    const fields = bundle.team(bundle.root).inputs
    const place = { id, root_id: id, workspace, from_path: fromPath ? 1 : 0 }
    const inputs = resolveFileInputs(fields, request.inputs, fileAccessOf(this.#parts.machine, place))
    const held = bundle.team(bundle.root).key
    const key = held && keyOf(held, inputs)
    this.#parts.bundles.set(bundle.id, bundle)
    const run: NewRun = { id, bundle, teamKey: bundle.root, inputs, runName, workspace, fromPath, synced }
    try {
      await secrets.keep(id, fields, inputs)
      return await this.#ask(id, () => {
        const isNew = request.runId === undefined || this.store.runs.attempt(id) === null
        startTopRun(this.#parts.machine, run, key)
        if (isNew) also?.()
        const live = this.#parts.machine.lives.get(id)
        return live ? runRecord(live.row) : this.record(id)
      })
    } catch (error) {
      // The run never began, so nothing would remove its secrets later.
      if (this.store.runs.attempt(id) === null) await secrets.forget(id).catch(() => {})
      throw error
    }
  }

  /**
   * Asks a run and all runs below it to end. `always` phases still run, unless the run is asked again. Throws
   * `not_found`, and `invalid_state` when the run has ended. While the disk is full it aborts what executes and records
   * the rest later.
   */
  async cancel(runId: string, reason = 'cancelled', also?: () => void): Promise<RunRecord> {
    const row = this.store.runs.get(runId)
    if (!row) throw new CadreError('not_found', `there is no run ${runId}`)
    const apply = () => {
      const now = refuseStop(this.#parts.machine, runId)
      also?.()
      if (now.state === 'queued') {
        endQueued(this.#parts.machine, now, { reason })
        return this.record(runId)
      }
      // A tree that `recover` left out is read and asked to end in the same change, so that it starts nothing again.
      if (!this.#parts.machine.lives.has(runId)) loadTree(this.#parts.machine, row.root_id)
      const live = this.#parts.machine.lives.get(runId)!
      stopRun(this.#parts.machine, live, { state: 'cancelled', reason, ...(isAsked(live) && { hard: true }) })
      this.#parts.machine.takeSteps(row.root_id)
      return this.record(runId)
    }
    if (!this.#parts.journal.stalled) {
      try {
        return await this.#ask(row.root_id, apply)
      } catch (error) {
        if (!this.#parts.journal.stalled) throw error
      }
    }
    return this.#cancelLater(runId, apply)
  }

  /**
   * Used while nothing can be recorded: aborts the running attempts, except those that clean up, and leaves the cancel
   * to the first commit that succeeds.
   */
  #cancelLater(runId: string, apply: () => unknown): RunRecord {
    const { root_id, tree_key } = refuseStop(this.#parts.machine, runId)
    const { lives } = this.#parts.machine
    const top = lives.get(runId)
    const again = top !== undefined && isAsked(top)
    this.#parts.attempts.abortRuns((id, position) => {
      const run = this.store.runs.get(id)
      if (run?.root_id !== root_id || !run.tree_key.startsWith(tree_key)) return false
      const live = lives.get(id)
      return again || !live || !outlasts(live, position, runId)
    })
    // By the time the cancel can be recorded, the run may have ended by itself or by another cancel.
    const later = () => void (this.store.runs.isOpen(runId) && apply())
    void this.#parts.journal.write({ root: root_id, apply: later }).catch(() => {})
    return this.record(runId)
  }

  /**
   * Opens an ended run again, as a new attempt. Throws `not_found`, `invalid_state`, and `invalid_request` for an
   * unknown phase, or when the run needs the values of secret inputs again.
   */
  async resume(runId: string, options: ResumeOptions = {}, also?: () => void): Promise<RunRecord> {
    if (this.#stop.signal.aborted) throw stopping()
    const row = resumable(this.#parts.machine, runId, options)
    if (this.#held.has(runId)) throw new CadreError('invalid_state', `run ${runId} is being deleted or resumed`)
    const bundle = this.bundle(row.bundle_id)
    const team = bundle.team(bundle.root)
    const given = resolveFileInputs(team.inputs, options.inputs ?? {}, fileAccessOf(this.#parts.machine, row))
    const secrets = secretsAgain(team, row, given)
    this.#held.add(runId)
    try {
      if (secrets) await this.#options.secrets.keep(row.id, team.inputs, secrets)
      return await this.#ask(runId, () => {
        resume(this.#parts.machine, runId, options)
        also?.()
        return this.record(runId)
      })
    } catch (error) {
      // It stays ended: the secrets go, and what its end calls for and the resume held up is done.
      this.#parts.afterRun.take(row.id, runId, false)
      throw error
    } finally {
      this.#held.delete(runId)
    }
  }

  planResume(runId: string, options: ResumeOptions = {}): ResumePlan {
    return planResume(this.#parts.machine, runId, options)
  }

  /** Calls `work`, which deletes the tree of an ended top run; until it returns, nobody can open the run again. */
  async deleteTree(runId: string, work: () => Promise<void>): Promise<void> {
    this.#held.add(runId)
    // Files of a tree that was cancelled may still be on their way into its folders.
    const deleted = this.#parts.folders.idle(id => this.store.runs.get(id)?.root_id === runId).then(work)
    await deleted.finally(() => this.#held.delete(runId))
  }

  async decide(reviewId: string, decision: Decision, also?: () => void): Promise<void> {
    const review = this.store.reviews.get(reviewId)
    const root = review && this.store.runs.get(review.run_id)?.root_id
    await this.#ask(root ?? null, () => {
      decide(this.#parts.machine, reviewId, decision)
      also?.()
    })
  }

  /** The phases of a run, or the whole of one of them. Each phase that has not ended says what it waits for. */
  phases(runId: string, name?: string): RunPhases {
    const live = this.#parts.machine.lives.get(runId)
    const turn = live ? null : turnOfRun(this.store, runId)
    const { attempts, disk } = this.#parts
    const waits = (position: number) => {
      if (turn) return { reason: turn, until: null }
      if (!live) return null
      return waitOf(live, position, attempts.note(runId, position, live.phases[position]!.attempt), disk.low)
    }
    return runPhases(this.store, runId, id => this.bundle(id), { name, waitOf: waits })
  }

  record(runId: string): RunRecord {
    return runRecord(this.#row(runId))
  }

  /** The id of a run that is here. Throws `not_found`. */
  idOf(runId: string): RunId {
    return this.#row(runId).id
  }

  #row(runId: string): RunRow {
    const row = this.store.runs.get(runId)
    if (row) return row
    throw new CadreError('not_found', `there is no run ${runId}`)
  }

  /** Resolves with the record of a run after it has ended and its deliveries have been sent. */
  async ended(runId: string): Promise<RunRecord> {
    for (;;) {
      if (this.store.runs.isOpen(runId)) await this.#parts.followers.untilEnded(runId)
      await this.#parts.messenger.idle(runId)
      const record = this.record(runId)
      // The run may have been resumed the moment it ended.
      if (record.completed_at !== null) return record
    }
  }

  /** Resolves when all deliveries that are being sent now have been sent, and what follows from that is recorded. */
  async untilQuiet(): Promise<void> {
    await this.#parts.messenger.settled()
    await this.#parts.afterRun.idle()
    await this.#parts.looks.idle()
  }

  /**
   * Asks other systems about everything that a run and those below it wrote, and that is not certain. Returns what could
   * not be asked.
   */
  askAgain(runId: string): Promise<Unasked[]> {
    return this.#parts.looks.ask(this.#row(runId))
  }

  /** Resolves when nothing is being sent for the runs of a tree at or below a place; null when nothing is. */
  untilSent(rootId: string, place: string): Promise<unknown> | null {
    const { messenger } = this.#parts
    const isBelow = (runId: string) => {
      const row = this.store.runs.get(runId)
      return row?.root_id === rootId && row.tree_key.startsWith(place)
    }
    const busy = messenger.busy.filter(isBelow)
    return busy.length === 0 ? null : Promise.all(busy.map(id => messenger.idle(id)))
  }

  /** Calls `listener` for every durable change, until the returned function is called. */
  follow(listener: (notice: Notice) => void): () => void {
    return this.#parts.followers.follow(listener)
  }

  stateDir(runId: RunId): string {
    return this.#parts.runFolders.stateDir(runId)
  }

  /** Removes the folder of a run. A row that has no run's id, as older versions could write one, has no folder. */
  async removeStateDir(runId: string): Promise<void> {
    if (isRunId(runId)) await removeRunFolder(this.#options.home, runId)
  }

  bundle(id: string): Bundle {
    return this.#parts.bundle(id)
  }

  /** How many runs have not ended, how many slots are used and free, and why nothing can be recorded, if so. */
  get load(): { runs: number; slots: number; free: number; stalled: string | null } {
    const slots = this.#parts.machine.slots.inUse
    const stalled = this.#parts.journal.stalled ?? this.#parts.disk.low
    const free = stalled ? 0 : Math.max(0, this.#options.slots - slots)
    return { runs: this.#parts.machine.lives.size, slots, free, stalled }
  }

  /** Interrupts the running attempts without recording an outcome. The next start continues them. */
  async stop(): Promise<void> {
    this.#stop.abort()
    this.#parts.alarm.stop()
    this.#parts.settler.stop()
    this.#parts.looks.stop()
    this.#parts.disk.stop()
    this.#parts.attempts.abortAll(new Error('the daemon stops'))
    const deadline = performance.now() + STOP_MS
    const work = Promise.all([this.#parts.messenger.stop(), this.#parts.folders.idle()])
    await Promise.race([work, new Promise(resolve => setTimeout(resolve, STOP_MS).unref())])
    await this.#parts.attempts.idle(deadline)
    this.logs.closeAll()
    this.#parts.journal.close()
  }

  /** Other rows of the run database change in the commits that runs have, because each commit waits for the disk. */
  readonly commit: Commit = apply => this.#ask(null, apply)

  /** Queues a change that a caller waits for. It is refused while the disk accepts no writes. */
  #ask<T>(root: string | null, apply: () => T): Promise<T> {
    return this.#parts.journal.write({ root, apply, request: true })
  }
}

const stopping = () => new CadreError('unavailable', 'the daemon is stopping; start the run again afterwards')

// What other folders use of lib/run

export { LOG_LIMIT, RootSecrets, readLines } from './attempt/attempt.ts'
export {
  type EngineHost,
  type LogLine,
  type ReviewRow,
  RUN_STATES,
  type RunEnvironment,
  type RunError,
  type RunRow,
  runEnded,
} from './core/core.ts'
export type { Outbox } from './effects/effects.ts'
export { CHOICES, type Change, type Decision, maskInputs, type ResumeOptions, type ResumePlan } from './steps/steps.ts'
export {
  type Commit,
  HOME_FACTS,
  type ListedReview,
  type RunHead,
  Store,
} from './store/store.ts'
export {
  explain,
  listRuns,
  type Notice,
  type PhaseFacts,
  phaseRecord,
  type ReviewRecord,
  type RunFacts,
  type RunPhases,
  type RunRecord,
  reviewRecord,
  rootOf,
  runDetail,
  runHead,
  runHistory,
  runPhases,
  runRecord,
  treeEntries,
  type Why,
  why,
  withoutSilent,
} from './views/views.ts'
