// What a run wrote outside, in the form that `why` and the plan of a resume show.

import type { Phase } from '../../team/team.ts'
import type { Written } from '../../wire/run-records.ts'
import type { ReceiptRow, RunRow } from '../core/core.ts'
import type { Store } from '../store/store.ts'

export type { Written }

/** What receipts of one tree say, in their order. `phasesOf` has the phases of the team of a run. */
export function written(
  store: Store,
  receipts: readonly ReceiptRow[],
  phasesOf: (row: RunRow) => readonly Phase[],
): Written[] {
  const runs = new Map<string, { row: RunRow; place: string[] }>()
  const runOf = (id: string): { row: RunRow; place: string[] } => {
    const known = runs.get(id)
    if (known) return known
    const row = store.runs.get(id)!
    const found = { row, place: row.parent_id === null ? [] : below(runOf(row.parent_id).place, row) }
    runs.set(id, found)
    return found
  }
  return receipts.map(({ run_id, position, entry, state, external_id, external_url }) => {
    const { row, place } = runOf(run_id)
    return { run_id, place, phase: phasesOf(row)[position]!.name, entry, state, id: external_id, url: external_url }
  })
}

/** The place of a sub-run: that of the run above, its phase, and the key of the item of a map. */
function below(above: readonly string[], { parent_phase, run_name }: RunRow): string[] {
  return [...above, `${parent_phase}`, ...(run_name === null ? [] : [run_name])]
}
