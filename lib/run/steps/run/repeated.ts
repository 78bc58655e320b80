// What a new attempt of an ended run repeats, and of the runs below it, read from the rows (core/repeated.ts decides it).
// The plan of a resume and the resume itself both ask here.

import { type Bundle, hasSubRuns, type Phase, type Team } from '../../../team/team.ts'
import { type EndedPhase, type Repetition, type RunRow, repetitions, wasPassedOver } from '../../core/core.ts'
import type { ChildRow, Store } from '../../store/store.ts'

/** The rows, and the teams of runs. */
export interface Rows {
  readonly store: Store
  readonly world: { bundle(id: string): Bundle }
}

type Run = Pick<RunRow, 'id' | 'bundle_id' | 'team_key'>

export const teamOf = ({ world }: Rows, row: Pick<RunRow, 'bundle_id' | 'team_key'>): Team =>
  world.bundle(row.bundle_id).team(row.team_key)

/** The failures that were passed over in a tree that has ended. A tree may be large, so each run is read once. */
export class PassedOver {
  readonly #rows: Rows
  readonly #known = new Map<string, boolean>()

  constructor(rows: Rows) {
    this.#rows = rows
  }

  /** Whether a failure was passed over in a run, or in a run below it. */
  in(run: Run): boolean {
    const known = this.#known.get(run.id)
    if (known !== undefined) return known
    const { phases } = teamOf(this.#rows, run)
    const ended = this.endedPhases(run)
    const made = repetitions(ended, { from: null, failed: true })
    const found = ended.some(
      (phase, at) =>
        wasPassedOver(phase) ||
        // What completed holds no failures, or it was passed over.
        (phase.state !== 'completed' &&
          made[at] !== 'keep' &&
          this.#children(run, phases[at]!).some(child => this.in(child))),
    )
    this.#known.set(run.id, found)
    return found
  }

  endedPhases(run: Run): EndedPhase[] {
    const { phases } = teamOf(this.#rows, run)
    return endedPhases(this.#rows, run).map((phase, at) => ({
      ...phase,
      holdsFailures:
        phase.state === 'completed' &&
        this.#children(run, phases[at]!).some(child => child.state !== 'completed' || this.in(child)),
    }))
  }

  #children(run: Run, phase: Phase): ChildRow[] {
    if (!hasSubRuns(phase)) return []
    const { phases, runs } = this.#rows.store
    // A map that an attempt ended before it evaluated its items may still have all of them.
    const isUnknown = phase.type === 'map' && phases.total(run.id, phase.index) === null
    return isUnknown ? runs.children(run.id, phase.index) : countedChildren(this.#rows, run.id, phase)
  }
}

function endedPhases(rows: Rows, run: Run): EndedPhase[] {
  const { phases } = teamOf(rows, run)
  return rows.store.phases.states(run.id).map(({ state, reason }, at) => {
    const { dependsOn, onFailure, type } = phases[at]!
    return { dependsOn, onFailure, isMap: type === 'map', state, reason, holdsFailures: false }
  })
}

/**
 * By position: what is repeated of a run. `passedOver` also repeats what failed and was passed over, and `from` the phase
 * at this position.
 */
export function repetitionsOf(
  rows: Rows,
  run: Run,
  passedOver: PassedOver | null = null,
  from: number | null = null,
): Repetition[] {
  const ended = passedOver ? passedOver.endedPhases(run) : endedPhases(rows, run)
  return repetitions(ended, { from, failed: passedOver !== null })
}

/** The same of a sub-run whose phase is repeated, but not as a whole. Null: the sub-run stays as it is. */
export function repetitionsBelow(
  rows: Rows,
  child: Run & Pick<RunRow, 'state'>,
  passedOver: PassedOver | null,
): Repetition[] | null {
  if (passedOver?.in(child)) return repetitionsOf(rows, child, passedOver)
  return child.state === 'completed' ? null : repetitionsOf(rows, child)
}

/** The sub-run of a team phase, with `repeat` that of its last turn. */
function childOfTeam({ runs, turns }: Store, runId: string, position: number): RunRow | null {
  return runs.child(runId, position, (turns.last(runId, position)?.turn ?? 1) - 1)
}

/** The sub-runs of a phase, without those of earlier turns and those whose items are gone. */
export function countedChildren({ store }: Pick<Rows, 'store'>, runId: string, phase: Phase): ChildRow[] {
  if (phase.type === 'team') return [childOfTeam(store, runId, phase.index) ?? []].flat()
  const total = store.phases.total(runId, phase.index) ?? 0
  return store.runs.children(runId, phase.index).filter(({ item }) => item! < total)
}
