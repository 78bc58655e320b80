// The synchronous core of the engine. Each public method applies one fact (a run begins, an attempt ended, a person
// decided …) to the rows and to memory, and follows its consequences to the end: dependants, sub-runs, parents.
// It runs inside a journal change; what must happen outside is collected in `after` and done once all is durable.

import { CadreError } from '../error.ts'
import type { EventName } from '../team/team.ts'
import { ask, askGate, awaitingChanged } from './awaiting.ts'
import { type Above, type NewRun, newRow } from './begin.ts'
import { watchDeadline, watchRetry } from './clocks.ts'
import { endOf, errorOf } from './ending.ts'
import type { MachineHost, Outcome } from './host.ts'
import { isLeaf, LiveRun, untouched } from './live.ts'
import { watchOverrun } from './overrun.ts'
import type { RunError, RunRow } from './records.ts'
import { loadRun, reopenAbove, reopenReview } from './recovery.ts'
import { cancelQueued, reopenRun } from './reopening.ts'
import { scopeOf } from './scope.ts'
import { type Ending, stopRun } from './stopping.ts'
import type { PhaseChange, RunStore } from './store.ts'
import { childEnded, startMap, startTeam } from './subruns.ts'
import { blocks, type RunState } from './transitions.ts'

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

  get #slotsToGive(): number {
    return this.host.paused() ? 0 : this.#freeSlots
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
  end(runId: string, ending: Ending): void {
    const live = this.lives.get(runId)
    if (live) stopRun(this, live, ending)
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
  create(run: NewRun, parent: Above | null, item: number, key: string | null): LiveRun {
    const row = newRow(run, parent, item, key, this.host.now())
    const team = run.bundle.team(run.teamKey)
    this.store.insertRun(row)
    this.store.insertPhases(row.id, team.phases.length)
    const live = new LiveRun(row, run.bundle, parent?.live ?? null, team.phases.map(untouched), run.inputs)
    this.lives.set(row.id, live)
    parent?.live.below(parent.position).add(live)
    this.host.changed(live, null)
    this.host.event(live, 'on_start', null)
    watchDeadline(this, live)
    for (const phase of team.phases) if (phase.dependsOn.length === 0) this.#consider(live, phase.index)
    this.step(live)
    return live
  }

  /** Begins the new attempt of a sub-run that waits in `queued`: what it completed stays. */
  reopen(row: RunRow): void {
    const now = this.host.now()
    const { timeout } = this.host.bundle(row.bundle_id).team(row.team_key)
    const opened = reopenRun(this.store, row.id, now, timeout === undefined ? null : now + timeout)
    const live = loadRun(this, this.store.run(row.id)!)
    this.host.changed(live, null)
    for (const position of opened) this.host.changed(live, position)
    this.host.event(live, 'on_start', null)
    this.#reopen(live)
  }

  /** Ends a phase and follows what that means for its dependants. */
  endPhase(live: LiveRun, position: number, state: PhaseEnd, change: PhaseChange): void {
    this.endRow(live, position, state, change)
    this.#settle(live, position)
  }

  failPhase(live: LiveRun, position: number, error: RunError, change: PhaseChange = {}): void {
    if (live.phase(position).onFailure === 'escalate' && !live.ending) {
      return ask(this, live, position, {
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

  /** Lets a phase that waited for a person go on; `pending` means a new attempt. */
  resumePhase(live: LiveRun, position: number): void {
    this.enter(live, position, 'pending', null)
    live.makeReady(position)
    awaitingChanged(this, live)
    this.step(live)
    this.drain()
  }

  endRow(live: LiveRun, position: number, state: PhaseEnd, given: PhaseChange) {
    const change = given.error ? { ...given, error: this.mask(live, given.error) } : given
    const { attempt } = live.phases[position]!
    // Sub-runs that wait for an attempt go with the phase that does not open them any more.
    if (!isLeaf(live.phase(position))) cancelQueued(this, live.row, position)
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
    if (asked) awaitingChanged(this, live)
    this.step(live)
  }

  enter(live: LiveRun, position: number, state: 'running' | 'awaiting_input' | 'pending', reason: string | null): void {
    this.store.setPhaseState(live.id, position, live.phases[position]!.attempt, state, reason)
    this.#release(live, position)
    live.enter(position, state, reason)
    this.host.changed(live, position)
  }

  /** Looks at a run again before this change is over. */
  step(live: LiveRun): void {
    this.#stepping.add(live)
  }

  // Steps

  /** Follows what has been applied to its end. */
  drain(): void {
    do {
      for (const live of this.#stepping) {
        this.#stepping.delete(live)
        this.#step(live)
      }
      for (let free = this.#slotsToGive; free > 0 && this.#slotQueue.length > 0; free--) {
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
      if (isLeaf(live.phase(position)) && this.#slotsToGive === 0) {
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
    watchOverrun(this, live, position)
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
      if (phase.type === 'gate' && phase.review && !live.ending) return askGate(this, live, phase.index, phase.review)
      const { kind: _, ...change } = outcome
      return this.endPhase(live, position, 'completed', change)
    }
    if (outcome.kind === 'unknown') {
      const { error, entries } = outcome
      return ask(this, live, position, { kind: 'escalation', reason: 'unknown', entries, prompt: error.message, error })
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
    watchRetry(this, live, position)
    this.step(live)
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
    this.step(live)
  }

  #consider(live: LiveRun, position: number): void {
    if (this.#decide(live, position)) this.#settle(live, position)
  }

  /** Whether a phase whose dependencies have all ended may start; true when it ended at once instead. */
  #decide(live: LiveRun, position: number): boolean {
    const phase = live.phase(position)
    if (live.ending) {
      this.endRow(live, position, 'cancelled', { reason: live.ending.reason })
      return true
    }
    if (live.phases[position]!.blocked && !phase.always) {
      this.endRow(live, position, 'skipped', { reason: 'upstream' })
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
          this.endRow(live, position, 'skipped', { reason: 'when' })
          return true
        }
      } catch (thrown) {
        this.endRow(live, position, 'failed', { error: errorOf(thrown) })
        return true
      }
    }
    live.makeReady(position)
    return false
  }

  /** Gives the slot of a leaf phase back when it leaves `running`. */
  #release(live: LiveRun, position: number): void {
    if (live.phases[position]!.state === 'running' && isLeaf(live.phase(position))) this.#freeSlots++
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
    this.step(parent)
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
    watchDeadline(this, live)
    reopenAbove(this, live)
    const open: number[] = []
    for (const [position, phase] of live.phases.entries()) {
      if (phase.state === 'running' && isLeaf(live.phase(position))) this.#freeSlots--
      if (phase.state === 'awaiting_input') reopenReview(this, live, position)
      if (phase.state === 'running' || phase.state === 'awaiting_input') watchOverrun(this, live, position)
      if (phase.state === 'pending' && phase.open === 0) open.push(position)
    }
    for (const position of open) {
      const phase = live.phases[position]!
      if (live.ending) this.endRow(live, position, 'cancelled', { reason: live.ending.reason })
      else if (phase.dueAt !== null && phase.dueAt > this.host.now()) watchRetry(this, live, position)
      else if (phase.attempt > 0) live.makeReady(position)
      else this.#consider(live, position)
    }
    this.step(live)
  }
}

/** The ended states of a phase. */
type PhaseEnd = 'completed' | 'failed' | 'skipped' | 'cancelled'

const EVENT_OF: Partial<Record<RunState, EventName>> = {
  completed: 'on_complete',
  failed: 'on_fail',
  cancelled: 'on_cancel',
}
