// The items of a map: frozen when they are first evaluated. When they are evaluated anew (a resume from a phase before),
// the sub-run of a key stays that key's, under the same run id, wherever its item stands now; a sub-run whose key is
// gone stays as it ended, behind the items that count.

import { CadreError } from '../error.ts'
import type { Json } from '../json.ts'
import type { MapPhase } from '../team/team.ts'
import { childrenOf, insertItems, itemKeys } from './children.ts'
import { dropStale } from './handover.ts'
import type { LiveRun } from './live.ts'
import type { Machine } from './machine.ts'
import { treeKey } from './records.ts'
import { type ChangedRun, openWhole, tell } from './reopening.ts'
import { scopeOf } from './scope.ts'

export function freezeItems(machine: Machine, live: LiveRun, phase: MapPhase): void {
  insertItems(machine.store, live.id, phase.index, evaluate(machine, live, phase))
  keepSubRuns(machine, live, phase)
}

function evaluate(machine: Machine, live: LiveRun, phase: MapPhase): { key: string; value: Json }[] {
  const list = machine.mask(live, phase.items.evaluate(scopeOf(machine, live)))
  if (!Array.isArray(list)) {
    throw new CadreError(
      'invalid_request',
      `${phase.items.place}: items must give a list, got ${JSON.stringify(list).slice(0, 80)}`,
    )
  }
  const seen = new Map<string, number>()
  return list.map((value, index) => {
    const key = phase.key
      ? keyText(machine.mask(live, phase.key.evaluate(scopeOf(machine, live, { value, index }))), phase, index)
      : String(index)
    const first = seen.get(key)
    if (first !== undefined) {
      throw new CadreError(
        'invalid_request',
        `${phase.key?.place ?? phase.place}: items ${first} and ${index} have the same key ${JSON.stringify(key)}; a key names one sub-run`,
      )
    }
    seen.set(key, index)
    return { key, value }
  })
}

function keyText(value: Json, phase: MapPhase, index: number): string {
  if (typeof value === 'string' && value !== '') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw new CadreError(
    'invalid_request',
    `${phase.key!.place}: the key of item ${index} must be a text or a number, got ${JSON.stringify(value)}`,
  )
}

/** Gives the sub-runs of an earlier evaluation their place among the new items, and opens those that have one. */
function keepSubRuns(machine: Machine, live: LiveRun, phase: MapPhase): void {
  const earlier = childrenOf(machine.store, live.id, phase.index)
  if (earlier.length === 0) return
  machine.after(() => dropStale(machine, live, phase))
  const places = new Map(itemKeys(machine.store, live.id, phase.index).map(({ item, key }) => [key, item]))
  let behind = places.size
  const moves: { id: string; item: number }[] = []
  for (const { id, item: before, run_name } of earlier) {
    const item = places.get(run_name!) ?? behind++
    if (item !== before) moves.push({ id, item })
    if (item < places.size) openWhole(machine, id)
  }
  // Out of the way first: where one goes, another may still stand.
  for (const { id, item } of moves) move(machine, live, phase, id, AWAY + item)
  for (const { id, item } of moves) tell(machine, move(machine, live, phase, id, item), [])
}

/** No map has so many items; six base-36 digits reach further. */
const AWAY = 1_000_000_000

/** Moves a sub-run and all below it to another place in the tree. */
function move({ store }: Machine, { row }: LiveRun, phase: MapPhase, id: string, item: number): ChangedRun[] {
  const from = store.run(id)!.tree_key
  store.db.query('UPDATE runs SET item = ? WHERE id = ?').run(item, id)
  return store.db
    .query<ChangedRun, [string, string, string]>(
      `UPDATE runs SET tree_key = ?3 || substr(tree_key, length(?2) + 1)
       WHERE root_id = ?1 AND tree_key >= ?2 AND tree_key < ?2 || '~'
       RETURNING id, root_id, synced, bundle_id, team_key`,
    )
    .all(row.root_id, from, treeKey(row.tree_key, phase.index, item))
}
