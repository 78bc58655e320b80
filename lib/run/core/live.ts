// A run that has not ended, in memory: its states and counters, never its results (those are read when an expression
// names them). All of it can be read anew from the rows at any time. Pure: it changes itself only.

import type { JsonObject } from '../../json.ts'
import type { Bundle, Phase, Team } from '../../team/team.ts'
import { type Clock, NO_CLOCK } from './clock.ts'
import type { RunRow } from './rows.ts'
import { blocks, type PhaseState, phaseEnded, type RunState } from './states.ts'

export interface LivePhase {
  state: PhaseState
  reason: string | null
  attempt: number
  failures: number
  /** When its next attempt begins, while it waits for one. */
  dueAt: number | null
  /** Of a team or map phase with a timeout. */
  clock: Clock
  /** Dependencies that have not ended. */
  open: number
  /** One of them ended in a way that keeps this phase from running. */
  blocked: boolean
}

/** Phases that execute something themselves; they take a slot. */
export const isLeaf = (phase: Phase): boolean =>
  phase.type === 'standard' || (phase.type === 'gate' && phase.commands.length > 0)

/** A phase that nothing has happened to yet. */
export const untouched = (): LivePhase => ({
  state: 'pending',
  reason: null,
  attempt: 0,
  failures: 0,
  dueAt: null,
  clock: NO_CLOCK,
  open: 0,
  blocked: false,
})

/** An item that has no sub-run, or whose sub-run (`sub_run`) waits in the queue; its value as JSON. */
export interface NextItem {
  item: number
  key: string
  value: string
  sub_run: string | null
}

/** How far a map is. Rebuilt from its items and sub-runs after a restart. */
export interface MapProgress {
  total: number
  /** Items before this one have been started. */
  next: number
  failed: number
  /** No more items begin: one failed and the map stops at that, or the map itself is at fault. */
  stopped: boolean
  /** Items from `next` on that were read already. */
  readonly page: NextItem[]
  /** Its result is being put together. */
  ending: boolean
}

/** The sub-runs of a phase that have not ended. */
export interface Below {
  readonly runs: Set<LiveRun>
  /** How many of them ask a person. */
  asked: number
  /** How many of them wait for a person with all that goes on in them. */
  idle: number
  /** How many of them hold no place of the map's concurrency: they waited for a person. */
  parked: number
  /** By parked run: the runs at or below it that could go on if it had a place again. */
  readonly wanting: Map<LiveRun, Set<LiveRun>>
}

/** Why a run was asked to end. A `hard` one leaves no phase to clean up. */
export interface Ending {
  state: Extract<RunState, 'cancelled' | 'failed'>
  reason: string
  hard?: boolean
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
  /** How many errands a team or map phase waits for. */
  readonly errands = new Map<number, number>()
  /** Maps that may start more items, or end. */
  readonly proceeding = new Set<number>()
  /** Phases in `running`: they count against the team's concurrency. */
  running = 0
  awaiting = 0
  ended = 0
  ending: Ending | null
  /** The run above was asked to end, and this one has not heard of it. */
  stop: Ending | null = null
  /** All that goes on in it waits for a person: its clock stands. */
  idle = false
  /** It holds no place of the map above. */
  parked = false
  /** Its file outputs: being looked at, or what came of that. */
  outputs: 'unchecked' | 'checking' | { handed: string | null; fault: { of: 'run' | 'phase'; error: unknown } | null } =
    'unchecked'

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

  get id(): string {
    return this.row.id
  }

  get root(): string {
    return this.row.root_id
  }

  phase(position: number): Phase {
    return this.team.phases[position]!
  }

  /** Runs below a phase that have not ended. */
  below(position: number): Below {
    const known = this.#below.get(position)
    if (known) return known
    const made: Below = { runs: new Set(), asked: 0, idle: 0, parked: 0, wanting: new Map() }
    this.#below.set(position, made)
    return made
  }

  /** Every open run right below. */
  *children(): Generator<LiveRun> {
    for (const { runs } of this.#below.values()) yield* runs
  }

  /** Where it stands among the sub-runs of the phase above; null for a top run. */
  get siblings(): Below | null {
    return this.parent ? this.parent.below(this.row.parent_position!) : null
  }

  /** Puts a phase among those that may start, in file order. */
  makeReady(position: number): void {
    let at = this.ready.length
    while (at > 0 && this.ready[at - 1]! > position) at--
    if (this.ready[at - 1] !== position) this.ready.splice(at, 0, position)
  }

  unready(position: number): void {
    const at = this.ready.indexOf(position)
    if (at >= 0) this.ready.splice(at, 1)
  }

  /** Records a new state in memory and keeps the counters right. */
  enter(position: number, state: PhaseState, reason: string | null): void {
    const phase = this.phases[position]!
    if (phase.state === 'running') this.running--
    if (phase.state === 'awaiting_input') this.awaiting--
    phase.state = state
    phase.reason = reason
    if (state === 'running') this.running++
    if (state === 'awaiting_input') this.awaiting++
    if (phaseEnded(state)) this.ended++
  }

  /** Whether all that goes on in it waits for a person. */
  allWaits(): boolean {
    return (
      this.awaiting > 0 &&
      this.ready.length === 0 &&
      this.phases.every((phase, position) => {
        if (phase.state === 'pending') return phase.open > 0
        return (phase.state !== 'running' && phase.state !== 'awaiting_input') || this.phaseWaits(position)
      })
    )
  }

  /** Whether all that goes on in a phase that has begun and not ended waits for a person. */
  phaseWaits(position: number): boolean {
    const phase = this.phases[position]!
    if (isLeaf(this.phase(position)) || this.phase(position).type === 'gate') return phase.state === 'awaiting_input'
    const { runs, idle } = this.below(position)
    if (runs.size === 0) return phase.state === 'awaiting_input'
    const map = this.maps.get(position)
    const more = map !== undefined && !map.stopped && map.next < map.total
    return idle === runs.size && !more && !this.errands.has(position)
  }

  #count(): void {
    for (const [position, phase] of this.phases.entries()) {
      phase.open = 0
      phase.blocked = false
      for (const dependency of this.phase(position).dependsOn) {
        const { state, reason } = this.phases[dependency]!
        if (!phaseEnded(state)) phase.open++
        else if (blocks(state, reason, this.phase(dependency).onFailure)) phase.blocked = true
      }
      if (phase.state === 'running') this.running++
      if (phase.state === 'awaiting_input') this.awaiting++
      if (phaseEnded(phase.state)) this.ended++
    }
  }
}
