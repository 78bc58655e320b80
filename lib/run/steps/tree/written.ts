// The writes of a run to other systems, in the form that `why` and the plan of a resume show.

import type { Phase } from '../../../team/team.ts'
import type { Written } from '../../../wire/records/run-records.ts'
import { fateOf, nameOfWrite } from '../../../wire/records/words.ts'
import type { ReceiptRow, RunRow } from '../../core/core.ts'
import type { Store } from '../../store/store.ts'

export type { Written }

/** The writes that receipts of one tree record, in their order. `phasesOf` gives the phases of the team of a run. */
export function written(
  store: Store,
  receipts: readonly ReceiptRow[],
  phasesOf: (row: RunRow) => readonly Phase[],
): Written[] {
  const runs = new Map<string, { row: RunRow; path: string[] }>()
  const runOf = (id: string): { row: RunRow; path: string[] } => {
    const known = runs.get(id)
    if (known) return known
    const row = store.runs.get(id)!
    const found = { row, path: row.parent_id === null ? [] : pathBelow(runOf(row.parent_id).path, row) }
    runs.set(id, found)
    return found
  }
  return receipts.map(({ run_id, position, entry, state, external_id, external_url, ...receipt }) => {
    const { row, path } = runOf(run_id)
    const phase = phasesOf(row)[position]!.name
    const { copies, presumed_at, request, sent_first, sent_at } = receipt
    const isOpen = presumed_at !== null && store.looks.isOpen({ runId: run_id, position, entry })
    return {
      ...{ run_id, place: path, phase, entry, state, id: external_id, url: external_url },
      ...(copies !== null && { copies: JSON.parse(copies) }),
      ...(isOpen && { unconfirmed: true }),
      ...(state !== 'done' && request !== null && { request }),
      ...(state !== 'done' && { sent_at: sent_first ?? sent_at }),
    }
  })
}

/** The path of a sub-run: the path of the run above, its phase, and the key of the item of a map. */
function pathBelow(above: readonly string[], { parent_phase, run_name }: RunRow): string[] {
  return [...above, `${parent_phase}`, ...(run_name === null ? [] : [run_name])]
}

/** One line for each write of a run, and of the runs below it, that exists more than once; empty when none does. */
export function copiesText(store: Store, run: RunRow, phasesOf: (row: RunRow) => readonly Phase[]): string {
  return written(store, store.receipts.below(run.root_id, run.tree_key), phasesOf)
    .filter(({ copies = [] }) => copies.length > 0)
    .map(write => `${nameOfWrite(write)} (${write.url ?? write.id ?? 'no link'}) ${fateOf(write)}`)
    .join('\n')
}
