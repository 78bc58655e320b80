// A run that has not ended, in memory: its states and counters. Results stay in the rows, and are read when an
// expression names them. A `LiveRun` can be built from the rows again at any time. Pure: it changes only itself.

import type { RunId } from '../../files/run-id.ts'
import type { Json, JsonObject } from '../../json.ts'
import { type Bundle, hasSubRuns, type Phase, type Team } from '../../team/team.ts'
import type { RunError } from '../../wire/records/run-records.ts'
import { type Clock, NO_CLOCK } from './clock.ts'
import type { RunRow } from './rows.ts'
import { blocks, type PhaseState, phaseEnded, type RunState } from './states.ts'

export interface LivePhase {
  state: PhaseState
  reason: string | null
  attempt: number
  failures: number
  /**
   * Its last turn; null without `repeat`, and before the first one. It has `ended` if its condition did not hold, and
   * `since` is the attempt with which it began, 0 if that was in another process.
   */
  turn: { number: number; ended: boolean; since: number } | null
  /** When its next attempt begins; null unless it waits for one. */
  dueAt: number | null
  /** The clock of a team or map phase with a timeout. */
  clock: Clock
  /**
   * How many dependencies are not settled: they have not ended, or depend on a phase that has not. A resume keeps a
   * completed phase although a phase before it runs again, and the phases after it wait for that phase.
   */
  open: number
  /** A dependency ended in a way that keeps this phase from running. */
  blocked: boolean
}

/** A phase that nothing has happened to yet. */
export const untouched = (): LivePhase => ({
  state: 'pending',
  reason: null,
  attempt: 0,
  failures: 0,
  turn: null,
  dueAt: null,
  clock: NO_CLOCK,
  open: 0,
  blocked: false,
})

/**
 * The place of a turn among those that the bound of its phase counts. After the last of them only a person lets the phase
 * go on, and it then has as many turns again.
 */
export const turnOfBound = (turn: number, most: number): number => ((turn - 1) % most) + 1

/** An item to start: it has no sub-run, or its sub-run (`sub_run`) is `queued` for a new attempt. Its value is JSON. */
export interface NextItem {
  item: number
  key: string
  value: string
  sub_run: RunId | null
}

/** How far a map is. Rebuilt from its items and sub-runs after a restart. */
export interface MapProgress {
  total: number
  /** Items before this one have been started. */
  next: number
  failed: number
  /** No more items are started: an item failed and the map stops on failure, or the map itself has a fault. */
  stopped: boolean
  /** Items from `next` on that have already been read. */
  readonly page: NextItem[]
  /** The result of the map is being built. */
  ending: boolean
}

/** The sub-runs of a phase that have not ended, and counts of them. */
export interface Below {
  readonly runs: Set<LiveRun>
  /** How many of them are `awaiting_input`. */
  asked: number
  /** How many of them are idle: everything in progress in them waits. */
  idle: number
  /** How many of them have given up their slot of the map, because they waited for a person. */
  parked: number
  /** By parked run: the runs at or below it that could continue if it had a slot again. */
  readonly wanting: Map<LiveRun, Set<LiveRun>>
}

/** How a run was asked to end, and why. When it is `hard`, `always` phases do not run either. */
export interface Ending {
  state: Extract<RunState, 'cancelled' | 'failed'>
  reason: string
  hard?: boolean
  /** What the run says of its end. */
  error?: RunError
}

export class LiveRun {
  readonly row: RunRow
  readonly bundle: Bundle
  readonly team: Team
  readonly parent: LiveRun | null
  readonly inputs: JsonObject
  readonly phases: LivePhase[]
  readonly maps = new Map<number, MapProgress>()
  readonly #below = new Map<number, Below>()
  /** Phases that may start, in file order. */
  readonly ready: number[] = []
  /** Phases whose dependencies have ended and whose `when` is to be evaluated. */
  readonly undecided = new Set<number>()
  /** By position: the keys of the tasks that a team or map phase awaits. `OF_RUN` has the tasks of the run itself. */
  readonly tasks = new Map<number, Set<string>>()
  /** Positions of maps that may start more items, or end. */
  readonly proceeding = new Set<number>()
  /** Leaf phases that are `running` without a slot, because they wait for another system to settle. */
  readonly settling = new Set<number>()
  /** Leaf phases that are `running` without a slot, because a `limit` does not let their next entry begin. */
  readonly paced = new Set<number>()
  /** How many phases are `running`; the team's concurrency limits them. */
  running = 0
  /** How many people are asked: about phases, and whether the run may begin. */
  awaiting = 0
  /** A person is asked whether the run may begin. Until then none of its phases is ready. */
  asksStart = false
  ended = 0
  ending: Ending | null
  /** The run above was asked to end, and so is this run. A step of this run applies it. */
  pendingStop: Ending | null = null
  /** Everything in progress in the run waits for a person or for another system to settle, so its clock is stopped. */
  idle = false
  /** The run has given up its slot of the map above. */
  parked = false
  /** The run is idle and keeps its slot of the map, because something in it waits for another system to settle. */
  keepsMapSlot = false
  /** The outputs that were evaluated so far, in the order of the team. All phases have ended before the first one. */
  readonly evaluated: [name: string, value: Json][] = []
  /** Those that could not be made, and are null. */
  readonly unmade: { name: string; error: RunError }[] = []
  /** The task is done that writes the files of the tree which were to be written later. */
  filesWritten = false
  /** The result of the task that checks its file outputs; null before that. */
  outputs: { handed: string | null; fault: { of: 'run' | 'phase'; error: unknown } | null } | null = null

  constructor(row: RunRow, bundle: Bundle, parent: LiveRun | null, phases: LivePhase[], inputs: JsonObject) {
    this.row = row
    this.bundle = bundle
    this.team = bundle.team(row.team_key)
    this.parent = parent
    this.phases = phases
    this.inputs = inputs
    this.ending = row.ending === null ? null : JSON.parse(row.ending)
    this.#count()
  }

  get id(): RunId {
    return this.row.id
  }

  get root(): RunId {
    return this.row.root_id
  }

  phase(position: number): Phase {
    return this.team.phases[position]!
  }

  /**
   * The request to end that cancels a phase. Null when there is none, or when the phase still runs to clean up.
   */
  cancelRequest(position: number): Ending | null {
    const { ending } = this
    return ending && (ending.hard || !this.phase(position).always) ? ending : null
  }

  /** How the run, or the nearest run above it, was asked to end. Its phases ask no person any more. */
  get nearestEnding(): Ending | null {
    for (let run: LiveRun | null = this; run; run = run.parent) if (run.ending) return run.ending
    return null
  }

  /** Runs below a phase that have not ended. */
  below(position: number): Below {
    const known = this.#below.get(position)
    if (known) return known
    const made: Below = { runs: new Set(), asked: 0, idle: 0, parked: 0, wanting: new Map() }
    this.#below.set(position, made)
    return made
  }

  /** Every open run directly below. */
  *children(): Generator<LiveRun> {
    for (const { runs } of this.#below.values()) yield* runs
  }

  /** The open sub-runs of the phase above, this run included; null for a top run. */
  get siblings(): Below | null {
    return this.parent ? this.parent.below(this.row.parent_position!) : null
  }

  /** Puts a phase among those that may start, in file order. */
  makeReady(position: number): void {
    let at = this.ready.length
    while (at > 0 && this.ready[at - 1]! > position) at--
    if (this.ready[at - 1] !== position) this.ready.splice(at, 0, position)
  }

  dropReady(position: number): void {
    const at = this.ready.indexOf(position)
    if (at >= 0) this.ready.splice(at, 1)
  }

  /** Records a new state in memory and keeps the counters right. */
  setState(position: number, state: PhaseState, reason: string | null): void {
    const phase = this.phases[position]!
    if (phase.state === 'running') this.running--
    this.settling.delete(position)
    this.paced.delete(position)
    if (phase.state === 'awaiting_input') this.awaiting--
    phase.state = state
    phase.reason = reason
    if (state === 'running') this.running++
    if (state === 'awaiting_input') this.awaiting++
    if (!phaseEnded(state)) return
    this.ended++
    // As in its row: a limit that another one has ended is not due in the same look.
    phase.clock = NO_CLOCK
    phase.dueAt = null
  }

  /** Records whether a person is asked whether the run may begin. */
  setAsksStart(asks: boolean): void {
    if (asks !== this.asksStart) this.awaiting += asks ? 1 : -1
    this.asksStart = asks
  }

  /** Whether a phase of it holds a slot. */
  holdsSlot(position: number): boolean {
    const { state } = this.phases[position]!
    if (this.settling.has(position) || this.paced.has(position)) return false
    return state === 'running' && this.phase(position).isLeaf
  }

  /** Whether anything in it, or directly below it, waits for a person or for another system to settle. */
  get mayWait(): boolean {
    if (this.awaiting > 0 || this.settling.size > 0) return true
    for (const { idle } of this.#below.values()) if (idle > 0) return true
    return false
  }

  /** Whether anything in it, or below it, waits for another system to settle. */
  settles(): boolean {
    if (this.settling.size > 0) return true
    for (const child of this.children()) if (child.settles()) return true
    return false
  }

  /** Whether everything in progress in this run waits for a person, or for another system to settle. */
  allWaits(): boolean {
    if (this.asksStart) return true
    return (
      this.mayWait &&
      this.ready.length === 0 &&
      this.phases.every((phase, position) => {
        if (phase.state === 'pending') return phase.open > 0
        return (phase.state !== 'running' && phase.state !== 'awaiting_input') || this.phaseWaits(position)
      })
    )
  }

  /** Whether everything in progress in a phase that has begun and not ended waits as a run does. */
  phaseWaits(position: number): boolean {
    const { state } = this.phases[position]!
    if (this.settling.has(position)) return true
    const isAsked = state === 'awaiting_input'
    if (!isAsked && state !== 'running') return false
    if (!hasSubRuns(this.phase(position))) return isAsked
    const { runs, idle } = this.below(position)
    if (runs.size === 0) return isAsked
    const map = this.maps.get(position)
    const more = map !== undefined && !map.stopped && map.next < map.total
    return idle === runs.size && !more && !this.tasks.has(position)
  }

  /** Whether a phase and all before it have ended. */
  isSettled(position: number): boolean {
    const { state, open } = this.phases[position]!
    return phaseEnded(state) && open === 0
  }

  #count(): void {
    for (const position of orderOf(this.team)) {
      const phase = this.phases[position]!
      phase.open = 0
      phase.blocked = false
      for (const dependency of this.phase(position).dependsOn) {
        const { state, reason } = this.phases[dependency]!
        if (!this.isSettled(dependency)) phase.open++
        if (phaseEnded(state) && blocks(state, reason, this.phase(dependency).onFailure)) phase.blocked = true
      }
      if (phase.state === 'running') this.running++
      if (phase.state === 'awaiting_input') this.awaiting++
      if (phaseEnded(phase.state)) this.ended++
    }
  }
}

const orders = new WeakMap<Team, readonly number[]>()

/** The positions of the phases of a team, each after those that it depends on. */
function orderOf(team: Team): readonly number[] {
  const known = orders.get(team)
  if (known) return known
  const open = team.phases.map(({ dependsOn }) => dependsOn.length)
  const order = [...open.keys()].filter(position => open[position] === 0)
  for (const position of order) {
    for (const dependant of team.phases[position]!.dependants) if (--open[dependant]! === 0) order.push(dependant)
  }
  orders.set(team, order)
  return order
}
