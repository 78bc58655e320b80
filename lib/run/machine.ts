// The synchronous core of the engine. Each public method applies one fact (a run begins, an attempt ended, a person
// decided …) to the rows and to memory, and follows its consequences to the end: dependants, sub-runs, parents.
// It runs inside a journal change; what must happen outside is collected in `after` and done once all is durable.

import { CadreError } from '../error.ts'
import type { JsonObject } from '../json.ts'
import type { Bundle, EventName, GatePhase, Phase } from '../team/team.ts'
import { endOf, errorOf } from './ending.ts'
import { LiveRun } from './live.ts'
import { parse, type RunError, type RunRow, treeKey } from './records.ts'
import { loadRun, reopenMaps, reopenReview } from './recovery.ts'
import { closeReview, openReview, type Question } from './reviews.ts'
import { scopeOf } from './scope.ts'
import type { PhaseChange, RunStore } from './store.ts'
import { childEnded, startMap, startTeam } from './subruns.ts'
import { blocks, phaseEnded, type RunState, runMay } from './transitions.ts'

/** Sub-runs nest no deeper than this. */
export const MAX_DEPTH = 32

/** How an attempt of a leaf phase ended. */
export type Outcome =
  | ({ kind: 'completed' } & PhaseChange)
  | { kind: 'failed'; error: RunError; retryable: boolean; change?: PhaseChange }
  | { kind: 'cancelled' }
  /** It may have written outside, and nobody can tell: a person must. */
  | { kind: 'unknown'; error: RunError; entries: string[] }

export interface NewRun {
  id: string
  bundle: Bundle
  teamKey: string
  /** Checked and complete. */
  inputs: JsonObject
  /** The same as it may be stored: secrets masked. */
  recordedInputs: JsonObject
  runName: string | null
  workspace: string | null
  fromPath: boolean
  synced: boolean
}

/** What the machine asks of its owner. Called after the commit, but for `changed` and `event`. */
export interface MachineHost {
  now(): number
  launch(live: LiveRun, position: number, attempt: number): void
  abort(live: LiveRun, position: number, attempt: number): void
  /** Whether this process executes that attempt. */
  executing(runId: string, position: number, attempt: number): boolean
  /** Applies `change` in a journal change at `at` (epoch milliseconds) or soon after. */
  schedule(at: number, change: () => void): void
  /** Rows that this step changed; the run itself when `position` is null. */
  changed(live: LiveRun, position: number | null): void
  /** For listeners. */
  event(live: LiveRun, event: EventName, position: number | null): void
  reviewChanged(live: LiveRun, position: number): void
  receiptChanged(live: LiveRun, position: number, entry: string): void
  runEnded(live: LiveRun): void
  /** An open run that could not be read back. */
  unreadable(row: RunRow, thrown: unknown): void
  /** The state folder of a run; sub-runs' files are linked from one to the other. */
  stateDir(runId: string): string
  bundle(id: string): Bundle
  /** Replaces every secret that a tree knows. What expressions give may hold one, and goes through it before it is recorded. */
  mask<T>(rootId: string, value: T): T
  /** The secret inputs of a top run, which its row holds masked. */
  secretInputs(rootId: string): JsonObject
}

/** Phases that execute something themselves; they take a slot. */
export const isLeaf = (phase: Phase): boolean =>
  phase.type === 'standard' || (phase.type === 'gate' && phase.commands.length > 0)

/** How long a cancelled attempt has before its phase is ended without it. */
const ABORT_GRACE_MS = 4_500

export class Machine {
  readonly lives = new Map<string, LiveRun>()
  readonly store: RunStore
  readonly host: MachineHost
  readonly #slotLimit: number
  #freeSlots: number
  #slotQueue: LiveRun[] = []
  readonly #stepping = new Set<LiveRun>()
  #after: (() => void)[] = []
  #stale = false

  constructor(store: RunStore, host: MachineHost, slots: number) {
    this.store = store
    this.host = host
    this.#slotLimit = slots
    this.#freeSlots = slots
  }

  get slotsInUse(): number {
    return this.#slotLimit - this.#freeSlots
  }

  /** To be called after the commit. */
  runEffects(): void {
    const effects = this.#after
    this.#after = []
    for (const effect of effects) effect()
  }

  after(effect: () => void): void {
    this.#after.push(effect)
  }

  // Facts

  /** Begins a top run. A run id that exists already changes nothing: a second delivery starts nothing twice. */
  begin(run: NewRun): void {
    if (this.store.run(run.id)) return
    this.store.insertBundle(run.bundle.id, JSON.stringify(run.bundle.json()))
    this.create(run, null, 0, null)
    this.drain()
  }

  /** An attempt of a leaf phase ended. Ignored when the attempt is not the live one any more. */
  attemptEnded(runId: string, position: number, attempt: number, outcome: Outcome): void {
    const live = this.lives.get(runId)
    const phase = live?.phases[position]
    if (!live || !phase || phase.attempt !== attempt || phase.state !== 'running') return
    this.#conclude(live, position, outcome)
    this.drain()
  }

  /** Asks a run and all below it to end as `cancelled`, or as `failed` by its time-out. */
  end(runId: string, ending: { state: RunState; reason: string }): void {
    const live = this.lives.get(runId)
    if (live) this.#end(live, ending)
    this.drain()
  }

  /** A rollback took back what memory holds, and what was to happen after it. */
  distrust(): void {
    this.#stale = true
    this.#after = []
  }

  /** Makes memory what the rows say again, where a rollback left it ahead of them. */
  refresh(): void {
    if (this.#stale) this.recover()
  }

  /** Puts everything that has not ended back into memory, as after a restart or a rollback. Goes on with it: it writes. */
  recover(): void {
    this.#stale = false
    this.lives.clear()
    this.#stepping.clear()
    this.#slotQueue = []
    this.#after = []
    this.#freeSlots = this.#slotLimit
    for (const row of this.store.openRuns()) if (row.state !== 'queued') this.#load(row)
    for (const live of this.lives.values()) this.#reopen(live)
    this.drain()
  }

  // Used by the modules of this core

  /** Inserts a run with its phases and lets it begin. */
  create(run: NewRun, parent: { live: LiveRun; position: number } | null, item: number, key: string | null): LiveRun {
    const now = this.host.now()
    const team = run.bundle.team(run.teamKey)
    const above = parent?.live.row
    const row: RunRow = {
      id: run.id,
      root_id: above?.root_id ?? run.id,
      tree_key: above ? treeKey(above.tree_key, parent!.position, item) : '',
      parent_id: above?.id ?? null,
      parent_position: parent?.position ?? null,
      parent_phase: parent ? parent.live.phase(parent.position).name : null,
      item: parent ? item : null,
      run_name: parent ? key : run.runName,
      call_path: JSON.stringify([...(above ? parse<string[]>(above.call_path)! : []), team.name]),
      call_depth: above ? above.call_depth + 1 : 0,
      bundle_id: run.bundle.id,
      team_key: run.teamKey,
      team: team.name,
      version: team.version,
      state: 'running',
      reason: null,
      error: null,
      inputs: JSON.stringify(run.recordedInputs),
      outputs: null,
      workspace: run.workspace,
      from_path: run.fromPath ? 1 : 0,
      synced: run.synced ? 1 : 0,
      attempt: 1,
      ending: null,
      created_at: now,
      started_at: now,
      completed_at: null,
      deadline: team.timeout === undefined ? null : now + team.timeout,
      time_left: null,
      logged: 0,
    }
    this.store.insertRun(row)
    this.store.insertPhases(row.id, team.phases.length)
    const phases = team.phases.map(() => ({
      state: 'pending' as const,
      reason: null,
      attempt: 0,
      failures: 0,
      dueAt: null,
      open: 0,
      blocked: false,
    }))
    const live = new LiveRun(row, run.bundle, parent?.live ?? null, phases, run.inputs)
    this.lives.set(row.id, live)
    parent?.live.below(parent.position).add(live)
    this.host.changed(live, null)
    this.host.event(live, 'on_start', null)
    this.#watchDeadline(live)
    for (const phase of team.phases) if (phase.dependsOn.length === 0) this.#consider(live, phase.index)
    this.#stepping.add(live)
    return live
  }

  /** Begins the new attempt of a sub-run that waits in `queued`: what it completed stays. */
  reopen(row: RunRow): void {
    const now = this.host.now()
    const { timeout } = this.host.bundle(row.bundle_id).team(row.team_key)
    const opened = this.store.reopenRun(row.id, now, timeout === undefined ? null : now + timeout)
    const live = loadRun(this, this.store.run(row.id)!)
    this.host.changed(live, null)
    for (const position of opened) this.host.changed(live, position)
    this.host.event(live, 'on_start', null)
    this.#reopen(live)
  }

  /** Ends a phase and follows what that means for its dependants. */
  endPhase(
    live: LiveRun,
    position: number,
    state: 'completed' | 'failed' | 'skipped' | 'cancelled',
    change: PhaseChange,
  ): void {
    this.#endRow(live, position, state, change)
    this.#settle(live, position)
  }

  /** Sub-runs that a resume put into the queue go with the phase that does not open them any more. */
  cancelQueued({ row }: LiveRun, position: number): void {
    this.store.cancelQueued(row.root_id, row.tree_key, position, this.host.now())
  }

  failPhase(live: LiveRun, position: number, error: RunError, change: PhaseChange = {}): void {
    if (live.phase(position).onFailure === 'escalate' && !live.ending) {
      return this.ask(live, position, {
        kind: 'escalation',
        reason: 'failed',
        entries: [],
        prompt: error.message,
        error,
      })
    }
    this.endPhase(live, position, 'failed', { ...change, error })
  }

  mask<T>({ row }: LiveRun, value: T): T {
    return this.host.mask(row.root_id, value)
  }

  /** Puts a phase before a person. */
  ask(live: LiveRun, position: number, asked: Question): void {
    const question = this.mask(live, asked)
    this.#enter(live, position, 'awaiting_input', question.reason)
    this.awaitingChanged(live)
    openReview(this, live, position, question)
  }

  /** Makes the state of a run, and of the phases above it, follow whether somebody is asked. */
  awaitingChanged(live: LiveRun): void {
    const state = live.awaiting > 0 ? 'awaiting_input' : 'running'
    if (live.row.state === state || !runMay(live.row.state, state)) return
    const now = this.host.now()
    const { deadline, time_left } = live.row
    if (state === 'awaiting_input' && deadline !== null) {
      live.row.time_left = Math.max(0, deadline - now)
      live.row.deadline = null
    } else if (state === 'running' && time_left !== null) {
      live.row.deadline = now + time_left
      live.row.time_left = null
      this.#watchDeadline(live)
    }
    live.row.state = state
    live.row.reason = state === 'running' ? null : reasonOf(live)
    this.store.setRunState(live.id, state, live.row.reason, live.row.deadline, live.row.time_left)
    this.host.changed(live, null)
    const { parent } = live
    if (!parent) return
    const position = live.row.parent_position!
    const asked = [...parent.below(position)].some(child => child.row.state === 'awaiting_input')
    const above = asked ? 'awaiting_input' : 'running'
    if (parent.phases[position]!.state === above || phaseEnded(parent.phases[position]!.state)) return
    this.#enter(parent, position, above, asked ? live.row.reason : null)
    this.awaitingChanged(parent)
  }

  /** Lets a phase that waited for a person go on; `pending` means a new attempt. */
  resumePhase(live: LiveRun, position: number): void {
    this.#enter(live, position, 'pending', null)
    live.makeReady(position)
    this.awaitingChanged(live)
    this.#stepping.add(live)
    this.drain()
  }

  // Steps

  /** Follows what has been applied to its end. */
  drain(): void {
    do {
      for (const live of this.#stepping) {
        this.#stepping.delete(live)
        this.#step(live)
      }
      for (let free = this.#freeSlots; free > 0 && this.#slotQueue.length > 0; free--) {
        const next = this.#slotQueue.shift()!
        next.queued = false
        this.#stepping.add(next)
      }
    } while (this.#stepping.size > 0)
  }

  #step(live: LiveRun): void {
    if (this.lives.get(live.id) !== live) return
    const limit = live.team.concurrency ?? Number.POSITIVE_INFINITY
    for (let at = 0; at < live.ready.length && live.running < limit && !live.ending; ) {
      const position = live.ready[at]!
      if (isLeaf(live.phase(position)) && this.#freeSlots === 0) {
        if (!live.queued) this.#slotQueue.push(live)
        live.queued = true
        at++
        continue
      }
      live.ready.splice(at, 1)
      this.#start(live, position)
    }
    if (live.ended === live.phases.length) this.#finish(live)
  }

  #start(live: LiveRun, position: number): void {
    const phase = live.phase(position)
    const attempt = live.phases[position]!.attempt + 1
    if (!this.store.startPhase(live.id, position, attempt, this.host.now())) {
      throw new CadreError('internal', `run ${live.id}, phase ${phase.name}: attempt ${attempt} could not be opened`)
    }
    live.phases[position]!.attempt = attempt
    live.enter(position, 'running', null)
    this.host.changed(live, position)
    this.host.event(live, 'on_phase_start', position)
    if (isLeaf(phase)) {
      this.#freeSlots--
      this.after(() => this.host.launch(live, position, attempt))
    } else if (phase.type === 'gate') this.#conclude(live, position, { kind: 'completed' })
    else if (phase.type === 'team') startTeam(this, live, phase)
    else if (phase.type === 'map') startMap(this, live, phase)
  }

  #conclude(live: LiveRun, position: number, outcome: Outcome): void {
    const phase = live.phase(position)
    if (outcome.kind === 'cancelled' || (live.ending && outcome.kind !== 'completed')) {
      return this.endPhase(live, position, 'cancelled', { reason: live.ending?.reason ?? 'cancelled' })
    }
    if (outcome.kind === 'completed') {
      if (phase.type === 'gate' && phase.review && !live.ending) return this.#askGate(live, phase.index, phase.review)
      const { kind: _, ...change } = outcome
      return this.endPhase(live, position, 'completed', change)
    }
    if (outcome.kind === 'unknown') {
      const { error, entries } = outcome
      return this.ask(live, position, { kind: 'escalation', reason: 'unknown', entries, prompt: error.message, error })
    }
    const { attempt, failures } = live.phases[position]!
    if (!outcome.retryable || failures + 1 >= phase.retry.attempts) {
      return this.failPhase(live, position, outcome.error, outcome.change)
    }
    const due = this.host.now() + phase.retry.backoff * 2 ** failures
    this.store.postponePhase(live.id, position, attempt, due, outcome.error)
    this.#release(live, position)
    live.enter(position, 'pending', 'retry')
    live.phases[position]!.failures++
    live.phases[position]!.dueAt = due
    this.host.changed(live, position)
    this.#watchRetry(live, position)
    this.#stepping.add(live)
  }

  #askGate(live: LiveRun, position: number, review: NonNullable<GatePhase['review']>): void {
    try {
      const prompt = String(review.prompt.evaluate(scopeOf(this, live)))
      this.ask(live, position, {
        kind: 'gate',
        reason: 'review',
        entries: [],
        prompt,
        ...(review.timeout !== undefined && { timeout: review.timeout }),
      })
    } catch (thrown) {
      this.failPhase(live, position, errorOf(thrown))
    }
  }

  /** Lets those that depend on an ended phase start, or end as it makes them. Long chains of skips are no recursion. */
  #settle(live: LiveRun, position: number): void {
    const queue = [position]
    for (const ended of queue) {
      const { state, reason } = live.phases[ended]!
      const blocked = blocks(state, reason, live.phase(ended).onFailure)
      for (const dependant of live.phase(ended).dependants) {
        const phase = live.phases[dependant]!
        phase.open--
        phase.blocked ||= blocked
        if (phase.open === 0 && phase.state === 'pending' && this.#decide(live, dependant)) queue.push(dependant)
      }
    }
    this.#stepping.add(live)
  }

  #consider(live: LiveRun, position: number): void {
    if (this.#decide(live, position)) this.#settle(live, position)
  }

  /** Whether a phase whose dependencies have all ended may start; true when it ended at once instead. */
  #decide(live: LiveRun, position: number): boolean {
    const phase = live.phase(position)
    if (live.ending) {
      this.#endRow(live, position, 'cancelled', { reason: live.ending.reason })
      return true
    }
    if (live.phases[position]!.blocked && !phase.always) {
      this.#endRow(live, position, 'skipped', { reason: 'upstream' })
      return true
    }
    if (phase.when) {
      try {
        const value = phase.when.evaluate(scopeOf(this, live))
        if (typeof value !== 'boolean') {
          throw new CadreError(
            'invalid_request',
            `${phase.when.place}: when must give a bool, got ${JSON.stringify(value)}`,
          )
        }
        if (!value) {
          this.#endRow(live, position, 'skipped', { reason: 'when' })
          return true
        }
      } catch (thrown) {
        this.#endRow(live, position, 'failed', { error: errorOf(thrown) })
        return true
      }
    }
    live.makeReady(position)
    return false
  }

  #endRow(
    live: LiveRun,
    position: number,
    state: 'completed' | 'failed' | 'skipped' | 'cancelled',
    given: PhaseChange,
  ) {
    const change = given.error ? { ...given, error: this.mask(live, given.error) } : given
    const { attempt } = live.phases[position]!
    if (!isLeaf(live.phase(position))) this.cancelQueued(live, position)
    if (!this.store.endPhase(live.id, position, attempt, state, this.host.now(), change)) {
      throw new CadreError(
        'internal',
        `run ${live.id}, phase ${live.phase(position).name}: may not become ${state} now`,
      )
    }
    this.#release(live, position)
    const asked = live.phases[position]!.state === 'awaiting_input'
    live.enter(position, state, change.reason ?? null)
    this.host.changed(live, position)
    if (state === 'completed') this.host.event(live, 'on_phase_complete', position)
    if (state === 'failed') this.host.event(live, 'on_phase_fail', position)
    if (asked) this.awaitingChanged(live)
    this.#stepping.add(live)
  }

  #enter(
    live: LiveRun,
    position: number,
    state: 'running' | 'awaiting_input' | 'pending',
    reason: string | null,
  ): void {
    this.store.setPhaseState(live.id, position, live.phases[position]!.attempt, state, reason)
    this.#release(live, position)
    live.enter(position, state, reason)
    this.host.changed(live, position)
  }

  /** Gives the slot of a leaf phase back when it leaves `running`. */
  #release(live: LiveRun, position: number): void {
    if (live.phases[position]!.state === 'running' && isLeaf(live.phase(position))) this.#freeSlots++
  }

  #end(live: LiveRun, ending: { state: RunState; reason: string }): void {
    if (live.ending) return
    live.ending = ending
    live.ready.length = 0
    this.store.setEnding(live.id, ending)
    for (const [position, phase] of live.phases.entries()) this.#endNow(live, position, phase.state, phase.attempt)
    this.#stepping.add(live)
  }

  #endNow(live: LiveRun, position: number, state: string, attempt: number): void {
    const reason = live.ending!.reason
    const children = live.children.get(position)
    if (children && children.size > 0) {
      for (const child of [...children]) this.#end(child, { state: 'cancelled', reason: 'parent' })
    } else if (state === 'awaiting_input') {
      closeReview(this, live, position)
      this.#endRow(live, position, 'cancelled', { reason })
    } else if (state === 'pending') {
      this.#endRow(live, position, 'cancelled', { reason })
    } else if (state === 'running') {
      this.after(() => this.host.abort(live, position, attempt))
      const late = () => this.attemptEnded(live.id, position, attempt, { kind: 'cancelled' })
      this.host.schedule(this.host.now() + ABORT_GRACE_MS, late)
    }
  }

  #finish(live: LiveRun): void {
    const end = this.mask(live, endOf(this, live))
    this.store.endRun(live.id, end.state, { ...end, at: this.host.now() })
    live.row.state = end.state
    this.lives.delete(live.id)
    this.host.changed(live, null)
    this.host.event(live, EVENT_OF[end.state]!, null)
    this.after(() => this.host.runEnded(live))
    const { parent } = live
    if (!parent) return
    const position = live.row.parent_position!
    parent.below(position).delete(live)
    childEnded(this, parent, position, live, end)
    this.#stepping.add(parent)
  }

  /** A run that cannot be read back stays as it is, with all below it, and keeps no other from going on. */
  #load(row: RunRow): void {
    if (row.parent_id !== null && !this.lives.has(row.parent_id)) return
    try {
      loadRun(this, row)
    } catch (thrown) {
      this.host.unreadable(row, thrown)
    }
  }

  #reopen(live: LiveRun): void {
    this.#watchDeadline(live)
    reopenMaps(this, live)
    const open: number[] = []
    for (const [position, phase] of live.phases.entries()) {
      if (phase.state === 'running' && isLeaf(live.phase(position))) this.#freeSlots--
      if (phase.state === 'awaiting_input') reopenReview(this, live, position)
      if (phase.state === 'pending' && phase.open === 0) open.push(position)
    }
    for (const position of open) {
      const phase = live.phases[position]!
      if (live.ending) this.#endRow(live, position, 'cancelled', { reason: live.ending.reason })
      else if (phase.dueAt !== null && phase.dueAt > this.host.now()) this.#watchRetry(live, position)
      else if (phase.attempt > 0) live.makeReady(position)
      else this.#consider(live, position)
    }
    this.#stepping.add(live)
  }

  // Clocks

  #watchDeadline(live: LiveRun): void {
    const { id, deadline } = live.row
    if (deadline === null) return
    this.host.schedule(deadline, () => {
      if (this.lives.get(id)?.row.deadline === deadline) this.end(id, { state: 'failed', reason: 'timeout' })
    })
  }

  #watchRetry(live: LiveRun, position: number): void {
    const { id } = live
    const { attempt, dueAt } = live.phases[position]!
    this.host.schedule(dueAt!, () => {
      const current = this.lives.get(id)
      const phase = current?.phases[position]
      if (!current || !phase || phase.state !== 'pending' || phase.attempt !== attempt) return
      current.makeReady(position)
      this.#stepping.add(current)
      this.drain()
    })
  }
}

const EVENT_OF: Partial<Record<RunState, EventName>> = {
  completed: 'on_complete',
  failed: 'on_fail',
  cancelled: 'on_cancel',
}

function reasonOf(live: LiveRun): string | null {
  return live.phases.find(phase => phase.state === 'awaiting_input')?.reason ?? null
}
