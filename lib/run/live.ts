// A run that has not ended, in memory: its states and counters, never its results (those are read when an expression
// names them). All of it can be read anew from the database at any time.

import type { JsonObject } from '../json.ts'
import type { Bundle, Phase, Team } from '../team/team.ts'
import type { RunRow } from './records.ts'
import { blocks, type PhaseState, phaseEnded, type RunState } from './transitions.ts'

export interface LivePhase {
  state: PhaseState
  reason: string | null
  attempt: number
  failures: number
  dueAt: number | null
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
  open: 0,
  blocked: false,
})

/** How far a map is. Rebuilt from its items and sub-runs after a restart. */
export interface MapProgress {
  total: number
  /** Items before this one have been started. */
  next: number
  failed: number
  stopped: boolean
}

export class LiveRun {
  readonly row: RunRow
  readonly bundle: Bundle
  readonly team: Team
  readonly parent: LiveRun | null
  readonly inputs: JsonObject
  readonly phases: LivePhase[]
  readonly maps = new Map<number, MapProgress>()
  /** Sub-runs that have not ended, by the phase that started them. */
  readonly children = new Map<number, Set<LiveRun>>()
  /** Phases that may start, by position. */
  readonly ready: number[] = []
  /** Phases in `running`: they count against the team's concurrency. */
  running = 0
  awaiting = 0
  ended = 0
  ending: { state: RunState; reason: string } | null
  /** Waits in the queue for a slot of the daemon. */
  queued = false

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

  phase(position: number): Phase {
    return this.team.phases[position]!
  }

  /** Runs below a phase that have not ended. */
  below(position: number): Set<LiveRun> {
    const set = this.children.get(position)
    if (set) return set
    const made = new Set<LiveRun>()
    this.children.set(position, made)
    return made
  }

  /** Puts a phase among those that may start, in file order. Two clocks may say so of the same one. */
  makeReady(position: number): void {
    let at = this.ready.length
    while (at > 0 && this.ready[at - 1]! > position) at--
    if (this.ready[at - 1] !== position) this.ready.splice(at, 0, position)
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
