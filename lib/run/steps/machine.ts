// The runs that have not ended, and how a fact changes them: an attempt ended, a person decided, a deadline passed. A
// method applies its fact to rows and memory and notes which runs have to be looked at; each of them then takes a step
// of its own, so that a tree of any size is worked through in small pieces. Everything happens inside units of the
// journal and touches only rows and memory; what has to happen outside is an effect, done after the commit.

import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import type { Bundle, EventName, Team } from '../../team/team.ts'
import {
  blocks,
  type Clock,
  isLeaf,
  type LiveRun,
  NO_CLOCK,
  type PhaseState,
  pause,
  phaseEnded,
  type RunError,
  resume,
  Slots,
  startClock,
} from '../core/core.ts'
import type { ChangedRun, PhaseChange, Store, Unit } from '../store/store.ts'
import type { Effect } from './effects.ts'
import { conclude, finish } from './end.ts'
import { errorOf } from './fault.ts'
import { loadTree } from './load.ts'
import { proceed, startMap } from './map.ts'
import { ask } from './review.ts'
import { forgetResults, scopeOf } from './scope.ts'
import { stopRun } from './stop.ts'
import { startTeam } from './team.ts'

/** A row that changed: a row of a phase, or of the run itself when `position` is null. */
export interface Change {
  run: ChangedRun
  team: Team
  position: number | null
  kind: 'run' | 'phase' | 'review' | 'receipt'
  /** The entry of a receipt. */
  entry?: string
}

/** What steps need from outside. Nothing here writes. */
export interface World {
  now(): number
  random(): number
  bundle(id: string): Bundle
  /** Masks the secrets of a tree. Values of expressions may hold them, and are masked before they are recorded. */
  mask<T>(rootId: string, value: T): T
  /** The secret inputs of a top run, which are masked in its row. Throws when they cannot be read. */
  secretInputs(rootId: string): JsonObject
  /** The folder of a run. */
  stateDir(runId: string): string
  /** Whether this process executes that attempt. */
  executing(runId: string, position: number, attempt: number): boolean
  /** Whether leaf phases have to wait even though slots are free. */
  paused(): boolean
  /** Whether anybody on this machine follows changes. */
  followed(): boolean
  /** Says that something is due at `at`. */
  wakeAt(at: number): void
  /** Records what the listeners of a run will send about an event. Returns whether there is anything to send. */
  event(live: LiveRun, event: EventName, position: number | null): boolean
}

type PhaseEnd = 'completed' | 'failed' | 'skipped' | 'cancelled'

/** Most steps of a tree in one unit. Further steps are left to later units, so that other trees get their turn. */
const STEPS_OF_A_UNIT = 32
/** How long an `always` phase without a timeout may take once its run was asked to end. */
export const CLEANUP_MS = 60_000

export class Machine {
  readonly lives = new Map<string, LiveRun>()
  readonly store: Store
  readonly world: World
  readonly slots: Slots<LiveRun>
  /** Runs to look at again, by tree. */
  readonly #steps = new Map<string, Set<LiveRun>>()
  /**
   * Trees whose memory no longer agrees with their rows after a rollback: they are read again before their next unit.
   */
  readonly #stale = new Set<string>()
  /**
   * Trees whose last unit threw: the next one takes all of their steps first, so that it finds the tree as the one before
   * did, and throws again if that or one of these steps does.
   */
  readonly #thrown = new Set<string>()
  /** What the unit that is being applied has noted. */
  #unitEffects: Effect[] = []
  #unitChanges: Change[] = []
  #unitRoot: string | null = null
  #unitTouched = false
  /** What the applied units of the group have noted; dropped when the group is undone. */
  #effects: Effect[] = []
  #changes = new Map<string, Change>()
  readonly #touched = new Set<string>()
  #slotsTurn = false

  constructor(store: Store, world: World, slots: number) {
    this.store = store
    this.world = world
    this.slots = new Slots(slots)
  }

  // What the journal calls

  readonly next = (): Unit | null => {
    for (const root of this.#stale) return { root, apply: () => this.follow(root) }
    // In turn, so that a tree with thousands of steps does not keep the slots from others.
    this.#slotsTurn = !this.#slotsTurn
    return (this.#slotsTurn ? this.#nextTurn() : null) ?? this.#nextSteps() ?? this.#nextTurn()
  }

  #nextSteps(): Unit | null {
    for (const root of this.#steps.keys()) return { root, apply: () => this.follow(root) }
    return null
  }

  #nextTurn(): Unit | null {
    const live = this.world.paused() ? null : this.slots.next()
    if (!live) return null
    // The run only gets its turn here: the slot is taken when its phase begins.
    this.slots.release()
    return { root: live.root, apply: () => this.#useSlot(live.id) }
  }

  readonly hasNext = (): boolean =>
    this.#stale.size > 0 || this.#steps.size > 0 || (!this.world.paused() && this.slots.hasTurn)

  readonly beforeUnit = ({ root }: Unit): void => {
    this.#unitRoot = root
    this.#unitEffects = []
    this.#unitChanges = []
    this.#unitTouched = false
    if (root === null || !this.#stale.delete(root)) return
    loadTree(this, root)
    if (this.#thrown.has(root)) this.follow(root)
  }

  readonly afterUnit = (): void => {
    this.#effects.push(...this.#unitEffects)
    for (const change of this.#unitChanges) {
      this.#changes.set(`${change.kind}:${change.run.id}:${change.position}:${change.entry ?? ''}`, change)
    }
    if (this.#unitRoot === null) return
    if (this.#unitTouched) this.#touched.add(this.#unitRoot)
    this.#thrown.delete(this.#unitRoot)
  }

  readonly unitUndone = ({ root, request }: Unit): void => {
    forgetResults(this.store)
    // A request that was refused has changed nothing.
    if (root === null || (request && !this.#unitTouched && this.lives.has(root))) return
    this.#stale.add(root)
    this.#thrown.add(root)
  }

  readonly groupUndone = (): void => {
    forgetResults(this.store)
    // A disk that was full may have stopped the last unit halfway.
    if (this.#unitRoot !== null) this.#touched.add(this.#unitRoot)
    for (const root of this.#touched) this.#stale.add(root)
    this.#touched.clear()
    this.#effects = []
    this.#changes.clear()
  }

  /** The changes of the group so far; read before the commit. */
  get changes(): Iterable<Change> {
    return this.#changes.values()
  }

  /** What has to be done now that the group is durable. */
  takeCommitted(): { effects: Effect[]; changes: Change[] } {
    const committed = { effects: this.#effects, changes: [...this.#changes.values()] }
    this.#effects = []
    this.#changes.clear()
    this.#touched.clear()
    return committed
  }

  // What steps note

  after(effect: Effect): void {
    this.#unitEffects.push(effect)
    this.#unitTouched = true
  }

  changed(live: LiveRun, position: number | null = null): void {
    const kind = position === null ? 'run' : 'phase'
    this.note({ run: live.row, team: live.team, position, kind })
  }

  note(change: Change): void {
    this.#unitTouched = true
    if (change.run.synced === 1 || this.world.followed()) this.#unitChanges.push(change)
  }

  /** Runs that are not in memory, or no longer. Runs first: the hub takes no phase of a run that it does not know. */
  noteRows(
    runs: readonly ChangedRun[],
    phases: readonly { run_id: string; position: number }[],
    kind: 'phase' | 'review' = 'phase',
  ): void {
    const known = new Map<string, ChangedRun>(runs.map(run => [run.id, run]))
    const teamOf = (run: ChangedRun) => this.world.bundle(run.bundle_id).team(run.team_key)
    for (const run of runs) this.note({ run, team: teamOf(run), position: null, kind: 'run' })
    for (const { run_id, position } of phases) {
      const run = known.get(run_id) ?? this.store.runs.get(run_id)!
      this.note({ run, team: teamOf(run), position, kind })
    }
  }

  event(live: LiveRun, event: EventName, position: number | null): void {
    if (live.team.listeners.length === 0) return
    if (this.world.event(live, event, position)) this.after({ kind: 'deliver', runId: live.id })
  }

  /** Schedules a step of a run: it will be looked at again. */
  step(live: LiveRun): void {
    const steps = this.#steps.get(live.root)
    if (steps) steps.add(live)
    else this.#steps.set(live.root, new Set([live]))
    this.#unitTouched = true
  }

  mask<T>(live: LiveRun, value: T): T {
    return this.world.mask(live.root, value)
  }

  // Facts and their consequences for one phase

  /** Ends a phase, and starts or ends its dependants as follows from that. */
  endPhase(live: LiveRun, position: number, state: PhaseEnd, change: PhaseChange): void {
    this.#endRow(live, position, state, change)
    this.#settle(live, position)
  }

  /** Fails a phase, or asks a person first when its `on_failure` is `escalate`. */
  failPhase(live: LiveRun, position: number, error: RunError, change: PhaseChange = {}): void {
    if (live.phase(position).onFailure === 'escalate' && !live.ending) {
      const question = { kind: 'escalation', reason: 'failed', entries: [], prompt: error.message } as const
      return ask(this, live, position, { ...question, error, change })
    }
    this.endPhase(live, position, 'failed', { ...change, error })
  }

  /** Moves a phase that has not ended to `awaiting_input`, or back to `running`. */
  enter(live: LiveRun, position: number, state: 'running' | 'awaiting_input', reason: string | null): void {
    const { attempt } = live.phases[position]!
    if (!this.store.phases.setState(live.id, position, attempt, state, reason))
      throw this.#impossible(live, position, state)
    this.#leave(live, position)
    live.enter(position, state, reason)
    this.changed(live, position)
    this.step(live)
  }

  /** Sets a phase back to `pending` for another attempt, at `due` or at once. */
  postpone(live: LiveRun, position: number, due: number, failures: number, error: RunError | null): void {
    const phase = live.phases[position]!
    if (!this.store.phases.postpone(live.id, position, phase.attempt, due, failures, error)) {
      throw this.#impossible(live, position, 'pending')
    }
    this.#leave(live, position)
    live.enter(position, 'pending', 'retry')
    phase.failures = failures
    phase.dueAt = due
    phase.clock = NO_CLOCK
    if (due > this.world.now()) this.world.wakeAt(due)
    else live.makeReady(position)
    this.changed(live, position)
    this.step(live)
  }

  /** Decides whether a phase whose dependencies have all ended may start. */
  consider(live: LiveRun, position: number): void {
    if (this.#decide(live, position)) this.#settle(live, position)
  }

  #endRow(live: LiveRun, position: number, state: PhaseEnd, given: PhaseChange): void {
    const change = given.error ? { ...given, error: this.mask(live, given.error) } : given
    const { attempt } = live.phases[position]!
    const phase = live.phase(position)
    // Sub-runs that are `queued` for a new attempt end with the phase, which will not start them any more.
    if (phase.type === 'map' || phase.type === 'team') this.cancelQueued(live, position)
    if (!this.store.phases.end(live.id, position, attempt, state, this.world.now(), change)) {
      throw this.#impossible(live, position, state)
    }
    this.#leave(live, position)
    live.errands.delete(position)
    live.maps.delete(position)
    live.unready(position)
    live.enter(position, state, change.reason ?? null)
    this.changed(live, position)
    if (state === 'completed') this.event(live, 'on_phase_complete', position)
    if (state === 'failed') this.event(live, 'on_phase_fail', position)
    this.step(live)
  }

  cancelQueued({ row }: LiveRun, position: number): void {
    const place = row.tree_key + position.toString(36).padStart(3, '0')
    const at = this.world.now()
    const phases = this.store.phases.cancelQueued(row.root_id, place, at)
    const runs = this.store.runs.cancelQueued(row.root_id, place, at)
    if (runs.length === 0) return
    this.noteRows(runs, phases)
    for (const { id, root_id } of runs) this.after({ kind: 'ended', runId: id, root: root_id })
  }

  /** Starts or ends the dependants of an ended phase. Uses a queue, because a chain of skips may be long. */
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
    this.step(live)
  }

  /** Makes a phase ready whose dependencies have ended, or skips, cancels or fails it. True when it ended at once. */
  #decide(live: LiveRun, position: number): boolean {
    const phase = live.phase(position)
    if (live.ending && (live.ending.hard || !phase.always)) {
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
          const got = JSON.stringify(value)
          throw new CadreError('invalid_request', `${phase.when.place}: when must give a bool, got ${got}`)
        }
        if (!value) {
          this.#endRow(live, position, 'skipped', { reason: 'when' })
          return true
        }
      } catch (thrown) {
        if (phase.onFailure === 'escalate' && !live.ending) {
          this.failPhase(live, position, errorOf(thrown))
          return false
        }
        this.#endRow(live, position, 'failed', { error: errorOf(thrown) })
        return true
      }
    }
    live.makeReady(position)
    this.step(live)
    return false
  }

  /** Gives the slot of a leaf phase back when it leaves `running`. */
  #leave(live: LiveRun, position: number): void {
    if (live.phases[position]!.state === 'running' && isLeaf(live.phase(position))) this.slots.release()
  }

  #impossible(live: LiveRun, position: number, state: PhaseState): CadreError {
    const { attempt } = live.phases[position]!
    return new CadreError(
      'internal',
      `run ${live.id}, phase ${live.phase(position).name}: attempt ${attempt} cannot become ${state} now`,
    )
  }

  // Steps

  /** Takes the scheduled steps of a tree, as many as fit one unit. */
  follow(root: string): void {
    const steps = this.#steps.get(root)
    if (!steps) return
    let left = this.#thrown.has(root) ? Number.POSITIVE_INFINITY : STEPS_OF_A_UNIT
    for (const live of steps) {
      steps.delete(live)
      this.#step(live)
      if (--left === 0) break
    }
    // The rest goes behind the other trees that wait for a unit.
    this.#steps.delete(root)
    if (steps.size > 0) this.#steps.set(root, steps)
  }

  /** While no other tree waits for a slot, a tree takes its own within the unit that gave one back. */
  useSlots(root: string): void {
    if (this.world.paused()) return
    for (let live = this.slots.nextAlone(root); live; live = this.slots.nextAlone(root)) {
      this.slots.release()
      this.#startLeaf(live)
    }
  }

  /** Does everything that a run can do now. Ignores a run that has ended or was read from the rows again meanwhile. */
  #step(live: LiveRun): void {
    if (this.lives.get(live.id) !== live) return
    if (live.stop) stopRun(this, live, live.stop)
    this.#tellAbove(live)
    if ((live.proceeding.size > 0 || live.ready.length > 0) && (live.ending || this.hasPlace(live))) {
      for (const position of [...live.proceeding]) {
        live.proceeding.delete(position)
        const phase = live.phase(position)
        if (phase.type === 'map') proceed(this, live, phase)
      }
      this.#startReady(live)
    }
    this.#keepTime(live)
    if (live.ended === live.phases.length) finish(this, live)
  }

  /** Starts team, map and gate phases that are ready, and asks for slots for the others. */
  #startReady(live: LiveRun): void {
    const limit = live.team.concurrency ?? Number.POSITIVE_INFINITY
    let leaves = 0
    for (const position of [...live.ready]) {
      if (live.running >= limit) break
      if (isLeaf(live.phase(position))) leaves++
      else this.#start(live, position)
    }
    if (leaves > 0 && live.running < limit) this.slots.want(live.root, live)
    else this.slots.drop(live)
  }

  /**
   * Uses the turn of a run. The run is given by its id, because it may have been read again since it asked for a slot.
   */
  #useSlot(runId: string): void {
    const live = this.lives.get(runId)
    if (live && this.#startLeaf(live)) this.follow(live.root)
  }

  /** Starts the next leaf phase that is ready. False when there is none, or the team's concurrency is used up. */
  #startLeaf(live: LiveRun): boolean {
    const position = live.ready.find(position => isLeaf(live.phase(position)))
    if (position === undefined || live.running >= (live.team.concurrency ?? Number.POSITIVE_INFINITY)) return false
    this.#start(live, position)
    if (live.ready.length > 0) this.#startReady(live)
    return true
  }

  #start(live: LiveRun, position: number): void {
    const phase = live.phase(position)
    const state = live.phases[position]!
    const attempt = state.attempt + 1
    const now = this.world.now()
    const isAbove = phase.type === 'team' || phase.type === 'map'
    const timeout = phase.timeout ?? (live.ending ? CLEANUP_MS : undefined)
    const clock = isAbove ? startClock(timeout, now) : NO_CLOCK
    if (!this.store.phases.start(live.id, position, attempt, now, clock.deadline)) {
      throw this.#impossible(live, position, 'running')
    }
    live.unready(position)
    state.attempt = attempt
    state.dueAt = null
    state.clock = clock
    if (clock.deadline !== null) this.world.wakeAt(clock.deadline)
    live.enter(position, 'running', null)
    if (isLeaf(phase)) this.slots.take()
    this.changed(live, position)
    this.event(live, 'on_phase_start', position)
    if (isLeaf(phase)) this.after({ kind: 'launch', runId: live.id, position, attempt })
    else if (phase.type === 'gate') conclude(this, live, position, { kind: 'completed' })
    else if (phase.type === 'team') startTeam(this, live, phase)
    else if (phase.type === 'map') startMap(this, live, phase)
  }

  // Places of a map's concurrency

  /**
   * Whether a run may start phases: it and every run above it has its place in the concurrency of a map, or gets it
   * back now.
   */
  hasPlace(live: LiveRun): boolean {
    for (let run: LiveRun | null = live; run; run = run.parent) {
      if (!run.parked || this.unpark(run)) continue
      const { wanting } = run.siblings!
      wanting.set(run, (wanting.get(run) ?? new Set()).add(live))
      return false
    }
    return true
  }

  unpark(run: LiveRun): boolean {
    const above = run.siblings!
    const phase = run.parent!.phase(run.row.parent_position!)
    if (phase.type === 'map' && above.runs.size - above.parked >= phase.concurrency) return false
    run.parked = false
    above.parked--
    return true
  }

  // Waiting for a person, and stopped clocks

  /** Makes the state of a run, and of the phase above it, agree with whether a person is asked in the run. */
  #tellAbove(live: LiveRun): void {
    const { row, parent } = live
    const asked = live.awaiting > 0
    if (asked === (row.state === 'awaiting_input')) return
    const reason = asked ? (live.phases.find(phase => phase.state === 'awaiting_input')?.reason ?? null) : null
    const state = asked ? 'awaiting_input' : 'running'
    if (!this.store.runs.setState(live.id, state, reason)) {
      throw new CadreError('internal', `run ${live.id} may not become ${state} now`)
    }
    row.state = state
    row.reason = reason
    this.changed(live)
    const above = live.siblings
    if (above) above.asked += asked ? 1 : -1
    if (parent) this.followBelow(parent, row.parent_position!, reason)
  }

  /** Makes a team or map phase wait for a person while a run below it does. */
  followBelow(live: LiveRun, position: number, reason: string | null): void {
    const { state } = live.phases[position]!
    const asked = live.below(position).asked > 0
    if (phaseEnded(state) || asked === (state === 'awaiting_input')) return
    if (asked) return this.enter(live, position, 'awaiting_input', reason)
    this.enter(live, position, 'running', null)
    this.#setClock(live, position, resume(live.phases[position]!.clock, this.world.now()))
  }

  /**
   * Stops the clocks of a run and of its team and map phases while everything in progress in them waits for a person.
   */
  #keepTime(live: LiveRun): void {
    if (live.awaiting === 0 && !live.idle) return
    const now = this.world.now()
    for (const [position, phase] of live.phases.entries()) {
      if (phase.clock === NO_CLOCK || phaseEnded(phase.state)) continue
      this.#setClock(live, position, live.phaseWaits(position) ? pause(phase.clock, now) : resume(phase.clock, now))
    }
    this.setIdle(live, live.ended < live.phases.length && live.allWaits())
  }

  #setClock(live: LiveRun, position: number, clock: Clock): void {
    const phase = live.phases[position]!
    if (clock === phase.clock) return
    phase.clock = clock
    this.store.phases.setClock(live.id, position, clock.deadline, clock.left)
    if (clock.deadline !== null) this.world.wakeAt(clock.deadline)
  }

  /** The clock of a run stands while the run is idle. */
  keepRunTime({ id, idle, row }: LiveRun): void {
    const before = { deadline: row.deadline, left: row.time_left }
    const clock = idle ? pause(before, this.world.now()) : resume(before, this.world.now())
    if (clock === before) return
    row.deadline = clock.deadline
    row.time_left = clock.left
    this.store.runs.setClock(id, clock.deadline, clock.left)
    if (clock.deadline !== null) this.world.wakeAt(clock.deadline)
  }

  setIdle(live: LiveRun, idle: boolean): void {
    if (live.idle === idle) return
    live.idle = idle
    this.keepRunTime(live)
    const { row, parent } = live
    const above = live.siblings
    if (!parent || !above) return
    above.idle += idle ? 1 : -1
    const position = row.parent_position!
    if (idle && !live.parked) {
      live.parked = true
      above.parked++
      live.parent!.proceeding.add(position)
    }
    this.step(parent)
  }

  // Trees as a whole

  /** Takes a tree out of memory and releases the slots of its phases. */
  drop(root: string): void {
    this.#unitTouched = true
    this.#touched.add(root)
    this.#steps.delete(root)
    for (const live of this.lives.values()) {
      if (live.root !== root) continue
      this.lives.delete(live.id)
      this.slots.drop(live)
      for (const [position, { state }] of live.phases.entries()) {
        if (state === 'running' && isLeaf(live.phase(position))) this.slots.release()
      }
    }
  }

  /** Ends a tree by its rows alone, after a fault because of which steps cannot end it. */
  abandon(root: string, error: RunError): void {
    this.#stale.delete(root)
    this.#thrown.delete(root)
    const row = this.store.runs.get(root)
    if (!row || row.completed_at !== null) return this.drop(root)
    const at = this.world.now()
    for (const live of this.lives.values()) {
      if (live.root !== root) continue
      for (const [position, { state, attempt }] of live.phases.entries()) {
        if (state === 'running') this.after({ kind: 'abort', runId: live.id, position, attempt })
      }
    }
    this.drop(root)
    const reviews = this.store.reviews.closeTree(root, at)
    const phases = this.store.phases.abandon(root, at)
    const runs = this.store.runs.abandon(root, error, at)
    try {
      this.noteRows(runs, phases)
      this.noteRows([], reviews, 'review')
    } catch {
      // The team cannot be read, so the hub cannot be told of these changes.
    }
    for (const run of runs) this.after({ kind: 'ended', runId: run.id, root })
  }

  /** The run of a fact about an attempt; null when the phase has ended or is in another attempt. */
  live(runId: string, position: number, attempt: number): LiveRun | null {
    const live = this.lives.get(runId)
    const phase = live?.phases[position]
    return live && phase && phase.attempt === attempt && !phaseEnded(phase.state) ? live : null
  }
}
