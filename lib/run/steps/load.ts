// Reads runs that have not ended back into memory, after a restart or a rollback. A leaf phase that is `running` in its
// row but is not executed by this process may start again, as a new attempt. Everything else follows from the rows.

import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import type { Bundle, MapPhase, TeamPhase } from '../../team/team.ts'
import {
  type Clock,
  isLeaf,
  type LivePhase,
  LiveRun,
  NO_CLOCK,
  phaseEnded,
  type RunRow,
  startClock,
} from '../core/core.ts'
import type { PhaseStates } from '../store/store.ts'
import type { Machine } from './machine.ts'
import { takeUpMap } from './map.ts'
import { stopAgain } from './stop.ts'
import { subRunInputs } from './sub-run.ts'
import { takeUpTeam } from './team.ts'

/** Reads a tree into memory and replaces what memory holds of it. Throws when it cannot be read. */
export function loadTree(machine: Machine, root: string): void {
  const isNew = !machine.lives.has(root)
  machine.drop(root)
  const loaded: LiveRun[] = []
  for (const row of machine.store.runs.openOf(root)) {
    if (row.parent_id === null || machine.lives.has(row.parent_id)) loaded.push(loadRun(machine, row))
  }
  for (const live of loaded.toReversed()) countAbove(live)
  for (const live of loaded) {
    if (isNew) clearAgain(machine, live)
    takeUp(machine, live)
  }
}

/** Continues the tree of a top run, unless it has ended. Throws `not_found`, and when it cannot be read. */
export function continueTree(machine: Machine, root: string): void {
  const row = machine.store.runs.get(root)
  if (!row) throw new CadreError('not_found', `there is no run ${root}`)
  if (row.completed_at !== null) return
  loadTree(machine, root)
  machine.follow(root)
}

/**
 * Another process may have ended before it removed the files of earlier attempts. This one has removed them, and may be
 * handing over others at the moment.
 */
function clearAgain(machine: Machine, live: LiveRun): void {
  for (const [position, { state, attempt }] of live.phases.entries()) {
    const { type } = live.phase(position)
    if (attempt === 1 || (type !== 'map' && type !== 'team')) continue
    const hasBegun = state === 'running' || (state === 'awaiting_input' && live.below(position).runs.size > 0)
    if (hasBegun) machine.after({ kind: 'clear', runId: live.id, position })
  }
}

/** Reads one run; its parent must have been read before. */
export function loadRun(machine: Machine, row: RunRow): LiveRun {
  const parent = row.parent_id === null ? null : machine.lives.get(row.parent_id)!
  const bundle = machine.world.bundle(row.bundle_id)
  const team = bundle.team(row.team_key)
  const phases = machine.store.phases.states(row.id).map((phase, position): LivePhase => {
    const isExecuted = machine.world.executing(row.id, position, phase.attempt)
    const isLost = phase.state === 'running' && isLeaf(team.phases[position]!) && !isExecuted
    return { ...livePhase(phase), ...(isLost && { state: 'pending', reason: LOST }) }
  })
  const live = new LiveRun(row, bundle, parent, phases, inputsOf(machine, row, bundle, parent))
  machine.lives.set(row.id, live)
  live.siblings?.runs.add(live)
  for (const [position, { state }] of phases.entries()) {
    if (state === 'running' && isLeaf(live.phase(position))) machine.slots.take()
  }
  return live
}

/** A reason in memory only: the process that executed the attempt is gone. */
const LOST = 'lost'

function livePhase({ state, reason, attempt, failures, due_at, deadline, time_left }: PhaseStates): LivePhase {
  const clock: Clock = deadline === null && time_left === null ? NO_CLOCK : { deadline, left: time_left }
  return { state, reason, attempt, failures, dueAt: due_at, clock, open: 0, blocked: false }
}

/** Adds a run to the counters of the run above. The runs below it must have been counted before. */
function countAbove(live: LiveRun): void {
  for (const phase of live.team.phases) if (phase.type === 'map') parkExcess(live, phase)
  const above = live.siblings
  live.idle = live.ended < live.phases.length && live.allWaits()
  if (!above) return
  if (live.row.state === 'awaiting_input') above.asked++
  if (!live.idle) return
  above.idle++
  park(live)
}

function park(live: LiveRun): void {
  live.parked = true
  live.siblings!.parked++
}

/** Sub-runs beyond the concurrency of their map were waiting for a place when the process ended: they wait again. */
function parkExcess(live: LiveRun, { index, concurrency }: MapPhase): void {
  const { runs } = live.below(index)
  const placed = [...runs].filter(({ parked }) => !parked)
  if (placed.length <= concurrency) return
  // A tree may be read anew while this process executes phases of it: these have their places.
  const { executing = [], waiting = [] } = Object.groupBy(placed, run => (executes(run) ? 'executing' : 'waiting'))
  for (const run of [...executing, ...waiting].slice(concurrency)) park(run)
}

function executes(live: LiveRun): boolean {
  const isExecuted = live.phases.some(({ state }, position) => state === 'running' && isLeaf(live.phase(position)))
  return isExecuted || [...live.children()].some(executes)
}

/** Continues a run that was read: wakes its clocks, sends its errands again, and starts what may start. */
export function takeUp(machine: Machine, live: LiveRun): void {
  machine.keepRunTime(live)
  if (live.row.deadline !== null) machine.world.wakeAt(live.row.deadline)
  const open: number[] = []
  for (const position of live.phases.keys()) {
    startLostClock(machine, live, position)
    const phase = live.phase(position)
    const { state, clock } = live.phases[position]!
    if (clock.deadline !== null) machine.world.wakeAt(clock.deadline)
    if (state === 'pending') open.push(position)
    if (state !== 'running' && state !== 'awaiting_input') continue
    if (state === 'awaiting_input' && live.below(position).runs.size === 0) continue
    stopAgain(machine, live, position)
    if (phase.type === 'map') takeUpMap(machine, live, phase)
    if (phase.type === 'team') takeUpTeam(machine, live, phase)
  }
  for (const position of open) {
    const phase = live.phases[position]!
    if (phase.state !== 'pending' || phase.open > 0 || phaseEnded(phase.state)) continue
    const endsNow = live.ending !== null && (live.ending.hard || !live.phase(position).always)
    const mayGoOn = !endsNow && phase.attempt > 0 && (phase.reason === LOST || phase.reason === 'retry')
    if (!mayGoOn) machine.consider(live, position)
    else if (phase.dueAt !== null && phase.dueAt > machine.world.now()) machine.world.wakeAt(phase.dueAt)
    else live.makeReady(position)
  }
  machine.step(live)
}

/** The first engine kept the clocks of team and map phases in memory only: a home of its time has none in the row. */
function startLostClock(machine: Machine, live: LiveRun, position: number): void {
  const phase = live.phase(position)
  const recorded = live.phases[position]!
  const { state } = recorded
  if (phase.timeout === undefined || (phase.type !== 'team' && phase.type !== 'map')) return
  if (recorded.clock !== NO_CLOCK || (state !== 'running' && state !== 'awaiting_input')) return
  const { started_at, error } = machine.store.phases.get(live.id, position)!
  if (error !== null) return // it took too long already, or has failed and asks a person
  const now = machine.world.now()
  recorded.clock = startClock(phase.timeout, state === 'running' ? (started_at ?? now) : now)
  machine.store.phases.setClock(live.id, position, recorded.clock.deadline, null)
}

/**
 * Rows hold secret inputs masked: those of a top run come from its encrypted file, those of a sub-run from its parent.
 */
function inputsOf(machine: Machine, row: RunRow, bundle: Bundle, parent: LiveRun | null): JsonObject {
  const recorded: JsonObject = JSON.parse(row.inputs)
  const secret = bundle.team(row.team_key).inputs.filter(input => input.secret && input.name in recorded)
  if (secret.length === 0) return recorded
  if (!parent) {
    const kept = machine.world.secretInputs(row.id)
    const gone = secret.filter(({ name }) => !(name in kept)).map(({ name }) => name)
    if (gone.length === 0) return { ...recorded, ...kept }
    throw new CadreError(
      'invalid_state',
      `the values of its secret inputs are lost (${gone.join(', ')}): give them again with \`resume\``,
    )
  }
  const phase = parent.phase(row.parent_position!) as TeamPhase | MapPhase
  const item = phase.type === 'map' ? machine.store.items.get(parent.id, phase.index, row.item!) : null
  return subRunInputs(machine, parent, phase, item ? { value: JSON.parse(item.value), index: item.item } : undefined)
}
