// The failed items of maps that completed without them (`on_item_failure: continue`), at any depth of a tree.
// `resume --failed` repeats them.

import { type Bundle, hasSubRuns, type Phase, type Team } from '../../../team/team.ts'
import type { RunRow } from '../../core/core.ts'
import type { ChildRow, Store } from '../../store/store.ts'

/** The rows, and the teams of runs. */
interface Rows {
  readonly store: Store
  readonly world: { bundle(id: string): Bundle }
}

export const teamOf = ({ world }: Rows, row: Pick<RunRow, 'bundle_id' | 'team_key'>): Team =>
  world.bundle(row.bundle_id).team(row.team_key)

/** These phases and all phases that depend on them. */
export function dependants(team: Team, from: readonly number[]): number[] {
  const found = new Set(from)
  for (const position of found) for (const dependant of team.phases[position]!.dependants) found.add(dependant)
  return [...found]
}

/**
 * The positions of the phases that are repeated for failed items: the maps that contain them, and all phases that
 * depend on these.
 */
export function withFailedItems(rows: Rows, row: Pick<RunRow, 'id' | 'bundle_id' | 'team_key'>): number[] {
  const team = teamOf(rows, row)
  return dependants(team, holdersOfFailed(rows, row, team))
}

/** The maps and team phases of a run that completed and contain failed items. */
export function holdersOfFailed(rows: Rows, row: Pick<RunRow, 'id'>, team: Team): number[] {
  const { store } = rows
  const holds = (phase: Phase): boolean => {
    if (!hasSubRuns(phase)) return false
    if (store.phases.get(row.id, phase.index)!.state !== 'completed') return false
    return countedChildren(rows, row.id, phase).some(
      child => child.state === 'failed' || child.state === 'cancelled' || isHolder(rows, child),
    )
  }
  return team.phases.filter(holds).map(phase => phase.index)
}

export const isHolder = (rows: Rows, child: ChildRow): boolean =>
  child.state === 'completed' && holdersOfFailed(rows, child, teamOf(rows, child)).length > 0

export function countedChildren({ store }: Rows, runId: string, phase: Phase): ChildRow[] {
  // Only a map has a total.
  const total = store.phases.total(runId, phase.index) ?? 1
  return store.runs.children(runId, phase.index).filter(({ item }) => item! < total)
}
