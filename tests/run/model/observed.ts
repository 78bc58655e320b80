// How a tree of runs ended, read from the rows, as the model writes it.

import type { Database } from 'bun:sqlite'
import type { ModelRun, PhaseEnd } from './model.ts'
import type { ModelPhase } from './teams.ts'

interface Row {
  id: string
  parent_id: string | null
  parent_position: number
  run_name: string | null
  state: string
  inputs: string
}

interface Phase {
  run_id: string
  position: number
  state: string
  reason: string | null
  data: string | null
  total: number | null
  renewal: string | null
}

export function observedRun(db: Database, team: ModelPhase[], root: string): ModelRun & { count: number } {
  const runs = db
    .query<Row, [string]>(
      'SELECT id, parent_id, parent_position, run_name, state, inputs FROM runs WHERE root_id = ? ORDER BY tree_key',
    )
    .all(root)
  const tree = 'SELECT id FROM runs WHERE root_id = ?'
  const phases = Map.groupBy(
    db
      .query<Phase, [string]>(
        `SELECT run_id, position, state, reason, data, total, renewal FROM phases WHERE run_id IN (${tree}) ORDER BY position`,
      )
      .all(root),
    ({ run_id }) => run_id,
  )
  const items = Map.groupBy(
    db
      .query<{ run_id: string; position: number; key: string }, [string]>(
        `SELECT run_id, position, key FROM items WHERE run_id IN (${tree}) ORDER BY item`,
      )
      .all(root),
    ({ run_id, position }) => `${run_id} ${position}`,
  )
  const below = Map.groupBy(runs, ({ parent_id, parent_position }) => `${parent_id} ${parent_position}`)

  const read = (row: Row, phasesOf: ModelPhase[]): ModelRun => ({
    state: row.state,
    n: JSON.parse(row.inputs).n,
    phases: phases.get(row.id)!.map((phase, at): PhaseEnd => {
      const { kind, team } = phasesOf[at]!
      const place = `${row.id} ${at}`
      const keys = items.get(place)?.map(({ key }) => key) ?? []
      const value = kind === 'step' && phase.state === 'completed' ? JSON.parse(phase.data!).value : 0
      return {
        state: phase.state,
        reason: phase.reason,
        value: value ?? 0,
        items: kind === 'map' && phase.total !== null ? keys.slice(0, phase.total) : null,
        due:
          kind !== 'map' || phase.total !== null || !below.has(place)
            ? null
            : phase.renewal === null
              ? 'whole'
              : 'renew',
        runs: new Map(
          (below.get(place) ?? []).map(child => [
            child.run_name ?? '',
            kind === 'slow' ? { state: child.state, n: 0, phases: [] } : read(child, team),
          ]),
        ),
      }
    }),
  })
  return { ...read(runs[0]!, team), count: runs.length }
}
