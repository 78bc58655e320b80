// The engine as its callers see it: they start, cancel and resume runs, answer questions of runs, and read what is
// recorded. A caller gets its answer when the change is durable.

import { CadreError } from '../error.ts'
import { isRunId, type RunId, removeRunFolder } from '../files/run-id.ts'
import type { JsonObject } from '../json.ts'
import type { Bundle } from '../team/team.ts'
import type { ResumePlan } from '../wire/records/resume-plan.ts'
import type { StartedBy } from '../wire/records/started-by.ts'
import type { RunLogs } from './attempt/attempt.ts'
import { cancelRun } from './cancel.ts'
import { phaseEnded, type RunError, type RunRow } from './core/core.ts'
import { assemble, type EngineOptions, type Parts } from './parts.ts'
import { continueTrees, openHome } from './recovery.ts'
import {
  type Decision,
  decide,
  fileAccessOf,
  keyOf,
  type NewRun,
  planResume,
  type ResumeOptions,
  resolveFileInputs,
  resumable,
  resume,
  secretsAgain,
  startTopRun,
} from './steps/steps.ts'
import type { Commit, Store, Unasked } from './store/store.ts'
import { type Notice, type RunPhases, type RunRecord, runPhases, runRecord, turnOfRun, waitOf } from './views/views.ts'

export interface StartRequest {
  bundle: Bundle
  /** The inputs, already checked and complete. */
  inputs: JsonObject
  runName?: string | null
  workspace?: string | null
  environment?: string | null
  /** Who may approve it before anything of it begins; null or absent when nobody is asked. */
  review?: readonly string[] | null
  fromPath?: boolean
  synced?: boolean
  /** The id that was assigned, such as at dispatch. Starting the same id again has no effect. */
  runId?: RunId
  /** The id was made for this start, so that no run has it. */
  isNewId?: boolean
  /** Why the run cannot begin: it is recorded as failed, and its listeners are told. */
  notStarted?: RunError
  startedBy?: StartedBy
  /** The place in a trace of the call that starts it. */
  traceparent?: string
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
  readonly #drain = new AbortController()
  #opening: Promise<void> | undefined

  constructor(options: EngineOptions) {
    this.#options = options
    this.#parts = assemble(options, { stopping: this.#stop.signal, draining: this.#drain.signal }, runId =>
      this.#held.has(runId),
    )
    this.store = this.#parts.store
    this.logs = this.#parts.logs
  }

  /**
   * Continues every tree that has not ended, or only those whose top runs are wanted. It must be called before anything
   * is started, and may be called again for a tree that was left out.
   */
  async recover(isWantedRoot: (rootId: string) => boolean = () => true): Promise<void> {
    this.#opening ??= openHome(this.#parts, this.#options)
    await this.#opening
    await continueTrees(this.#parts, this.#options, isWantedRoot)
  }

  /** `also`, here and below, changes other rows in the transaction of the request, if the request changes anything. */
  async start(request: StartRequest, also?: () => void): Promise<RunRecord> {
    this.#mustNotEnd()
    const { bundle, runName = null, workspace = null, fromPath = false, synced = false, ...more } = request
    const { notStarted, startedBy, traceparent, environment = null, review = null } = more
    const { isNewId = request.runId === undefined } = more
    const id = request.runId ?? this.store.runs.newId()
    const isThere = () => !isNewId && this.store.runs.attempt(id) !== null
    if (isThere()) return this.record(id)
    const { secrets } = this.#options
    const fields = bundle.team(bundle.root).inputs
    const row = { id, root_id: id, workspace, from_path: fromPath ? 1 : 0 }
    const inputs = notStarted
      ? request.inputs
      : resolveFileInputs(fields, request.inputs, fileAccessOf(this.#parts.machine, row))
    const held = notStarted ? null : bundle.team(bundle.root).key
    const key = held && keyOf(held, inputs, environment)
    this.#parts.bundles.keep(bundle)
    const run: NewRun = {
      ...{ id, bundle, teamKey: bundle.root, inputs, runName, workspace, environment, fromPath, synced },
      review: notStarted ? null : review,
      ...(notStarted && { notStarted }),
      ...(startedBy && { startedBy }),
      ...(traceparent && { traceparent }),
    }
    try {
      if (!notStarted) await secrets.keep(id, fields, inputs)
      return await this.#request(id, () => {
        if (isThere()) return this.record(id)
        startTopRun(this.#parts.machine, run, key)
        also?.()
        const live = this.#parts.machine.lives.get(id)
        return live ? runRecord(live.row) : this.record(id)
      })
    } catch (error) {
      // There is no run whose end would remove the secrets.
      if (this.store.runs.attempt(id) === null) await secrets.forget(id).catch(() => {})
      throw error
    }
  }

  /**
   * Asks a run and all runs below it to end. `always` phases still run, unless the run is asked again. Throws
   * `not_found`, and `invalid_state` when the run has ended. While the disk is full it aborts the attempts that execute,
   * and records the cancel later.
   */
  cancel(runId: string, reason = 'cancelled', also?: () => void): Promise<RunRecord> {
    return cancelRun(this.#parts, runId, reason, also)
  }

  /**
   * Opens an ended run again, as a new attempt. Throws `not_found`, `invalid_state`, and `invalid_request` for an
   * unknown phase, or when the run needs the values of secret inputs again.
   */
  async resume(runId: string, options: ResumeOptions = {}, also?: () => void): Promise<RunRecord> {
    this.#mustNotEnd()
    const row = resumable(this.#parts.machine, runId, options)
    this.#mustBeFree(runId)
    const bundle = this.bundle(row.bundle_id)
    const team = bundle.team(bundle.root)
    const given = resolveFileInputs(team.inputs, options.inputs ?? {}, fileAccessOf(this.#parts.machine, row))
    const secrets = secretsAgain(team, row, given)
    this.#held.add(runId)
    try {
      if (secrets) await this.#options.secrets.keep(row.id, team.inputs, secrets)
      return await this.#request(runId, () => {
        resume(this.#parts.machine, runId, options)
        also?.()
        return this.record(runId)
      })
    } catch (error) {
      // The run stays ended: now its end is completed, which the resume held up, and its secrets are removed.
      this.#parts.afterRun.completeEnd(row.id, runId, false)
      throw error
    } finally {
      this.#held.delete(runId)
    }
  }

  /**
   * What a resume would do. Throws the same errors as `resume`, except for secret inputs that it needs again. An
   * `interrupted` run has not ended, and continues where it was.
   */
  planResume(runId: string, options: ResumeOptions = {}, interrupted = false): ResumePlan {
    return planResume(this.#parts.machine, runId, options, interrupted)
  }

  /** Calls `remove`, which deletes the tree of an ended top run. Until it returns, nobody can open the run again. */
  async deleteTree(runId: string, remove: () => Promise<void>): Promise<void> {
    this.#mustBeFree(runId)
    this.#held.add(runId)
    // Files of a tree that was cancelled may still be on their way into its folders.
    const idle = this.#parts.folders.idle(id => this.store.runs.get(id)?.root_id === runId)
    const deleted = idle.then(() => (isRunId(runId) ? this.#parts.behind.forget(runId) : undefined)).then(remove)
    await deleted.finally(() => this.#held.delete(runId))
  }

  #mustNotEnd(): void {
    if (this.#stop.signal.aborted || this.#drain.signal.aborted) throw stopping()
  }

  #mustBeFree(runId: string): void {
    if (!this.#held.has(runId)) return
    throw new CadreError('invalid_state', `run ${runId} is being deleted or resumed: try again in a moment`)
  }

  async decide(reviewId: string, decision: Decision, also?: () => void): Promise<void> {
    const review = this.store.reviews.get(reviewId)
    const root = review && this.store.runs.get(review.run_id)?.root_id
    await this.#request(root ?? null, () => {
      decide(this.#parts.machine, reviewId, decision)
      also?.()
    })
  }

  /** The phases of a run, or the whole of one of them. Each phase that has not ended says what it waits for. */
  phases(runId: string, name?: string): RunPhases {
    const live = this.#parts.machine.lives.get(runId)
    const turn = live ? null : turnOfRun(this.store, runId)
    const { attempts, lived, machine } = this.#parts
    const halted = this.isDraining ? 'the next start, because the daemon drains' : spaceText(this.#shortage)
    const wallTime = (at: number) => machine.world.now() + Math.max(0, at - lived.now())
    const waits = (position: number) => {
      if (turn) return { reason: turn, until: null }
      if (!live) return null
      return waitOf(live, position, attempts.note(runId, position, live.phases[position]!.attempt), halted, wallTime)
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

  /** Resolves when the deliveries that are being sent now have been sent, and their results are recorded. */
  async untilQuiet(): Promise<void> {
    await this.#parts.messenger.settled()
    await this.#parts.afterRun.idle()
    await this.#parts.looks.idle()
  }

  /**
   * Asks other systems about each write of a run, and of the runs below it, that is not certain. Returns the writes that
   * could not be asked about.
   */
  askAgain(runId: string): Promise<Unasked[]> {
    return this.#parts.looks.lookUpTree(this.#row(runId))
  }

  /** Resolves when the deliveries of the runs at and below `treeKey` have been sent; null when none is being sent. */
  untilSent(rootId: string, treeKey: string): Promise<unknown> | null {
    const { messenger } = this.#parts
    const isBelow = (runId: string) => {
      const row = this.store.runs.get(runId)
      return row?.root_id === rootId && row.tree_key.startsWith(treeKey)
    }
    const busy = messenger.busy.filter(isBelow)
    return busy.length === 0 ? null : Promise.all(busy.map(id => messenger.idle(id)))
  }

  /** Calls `listener` for every durable change, until the returned function is called. */
  follow(listener: (notice: Notice) => void): () => void {
    return this.#parts.followers.follow(listener)
  }

  /** How many milliseconds this home was at work, over all processes. */
  get lived(): number {
    return this.#parts.lived.now()
  }

  stateDir(runId: RunId): string {
    return this.#parts.runFolders.stateDir(runId)
  }

  /** Writes the small files of the tree of a run that are to be written later. */
  async writeFiles(runId: string): Promise<void> {
    await this.#parts.behind.flush(this.#row(runId).root_id)
  }

  /** The bytes of a small file of a run that is to be written later; null if it is written. */
  unwrittenFile(runId: string, path: string): Uint8Array | null {
    const { root_id, id } = this.#row(runId)
    return this.#parts.behind.bytesOf(root_id, id, path)
  }

  /** Removes the folder of a run. A row that has no run's id, as older versions could write one, has no folder. */
  async removeStateDir(runId: string): Promise<void> {
    if (isRunId(runId)) await removeRunFolder(this.#options.home, runId)
  }

  bundle(id: string): Bundle {
    return this.#parts.bundles.get(id)
  }

  /** What the disk lacks, so that nothing new starts; null while it lacks nothing. */
  get #shortage(): string | null {
    return this.#parts.behind.stalled ?? this.#parts.disk.low
  }

  /** What the end of a top run waits for while the disk does not take the files of its tree, or null. */
  endWait(runId: string): string | null {
    const live = this.#parts.machine.lives.get(runId)
    if (!live || live.parent || !live.phases.every(({ state }) => phaseEnded(state))) return null
    return this.#parts.behind.waitOf(live.root)
  }

  /** How many runs have not ended, how many slots are used and free, and why nothing can be recorded, if so. */
  get load(): { runs: number; slots: number; free: number; stalled: string | null } {
    const slots = this.#parts.machine.slots.inUse
    const stalled = this.#parts.journal.stalled ?? this.#shortage
    const free = stalled || this.isDraining ? 0 : Math.max(0, this.#options.slots - slots)
    return { runs: this.#parts.machine.lives.size, slots, free, stalled }
  }

  /**
   * From now on no run starts and no phase begins. What is executed goes on, and what waits, such as for a person or for a
   * time, begins with the next start.
   */
  drain(): void {
    this.#drain.abort()
  }

  get isDraining(): boolean {
    return this.#drain.signal.aborted
  }

  /** What a drain waits for: phases that are executed, and runs whose files or messages are under way (phase null). */
  get underWay(): { run_id: string; team: string; phase: string | null }[] {
    const { attempts, folders, machine, messenger } = this.#parts
    const executed = attempts.atWork.flatMap(({ runId, position }) => {
      const live = machine.lives.get(runId)
      return live ? [{ run_id: runId, team: live.team.name, phase: live.phase(position).name }] : []
    })
    const others = new Set([...folders.busy, ...messenger.busy])
    for (const { run_id } of executed) others.delete(run_id)
    const rest = [...others].flatMap(id => this.store.runs.get(id) ?? [])
    return [...executed, ...rest.map(({ id, team }) => ({ run_id: id, team, phase: null }))]
  }

  /** Interrupts the running attempts without recording an outcome. The next start continues them. */
  async stop(): Promise<void> {
    this.#stop.abort()
    this.#parts.dueTimer.stop()
    this.#parts.smallFileSync.stop()
    this.#parts.looks.stop()
    this.#parts.disk.stop()
    this.#parts.attempts.abortAll(new Error('the daemon stops'))
    const deadline = performance.now() + STOP_MS
    const work = Promise.all([this.#parts.messenger.stop(), this.#parts.folders.idle()])
    await Promise.race([work, new Promise(resolve => setTimeout(resolve, STOP_MS).unref())])
    await this.#parts.attempts.idle(deadline)
    await this.#parts.behind.close()
    this.logs.closeAll()
    const { journal, lived } = this.#parts
    journal.write({ root: null, apply: () => lived.keep() }).catch(() => {})
    journal.close()
  }

  /** Other rows of the run database change in the commits that runs have, because each commit waits for the disk. */
  readonly commit: Commit = apply => this.#request(null, apply)

  /** Queues a change that a caller waits for. It is refused while the disk accepts no writes. */
  #request<T>(root: string | null, apply: () => T): Promise<T> {
    return this.#parts.journal.write({ root, apply, request: true })
  }
}

const spaceText = (lacking: string | null): string | null => lacking && `space on the disk: ${lacking}`

const stopping = () => new CadreError('unavailable', 'the daemon is stopping; start the run again afterwards')
