// Deletes runs that ended long ago, with all that belongs to them. A tree may have very many runs, and a run very many
// lines, so a transaction deletes some rows, from the bottom up: the top run goes last.

import { and, eq, inArray, lt, ne, sql } from 'drizzle-orm'
import { deleteAtMost } from '../../../db/hub/delete-at-most.ts'
import type { Db } from '../../../db/hub/store.ts'
import { ENDED_RUN_STATES } from '../../wire/states.ts'
import { addBytes } from '../access/quotas.ts'
import type { Hub } from '../core/hub.ts'

/** Trees of one transaction. */
const TREES = 100

/** Deletes at most `most` rows of trees that ended before `before`. Returns how many it deleted. */
export async function deleteOldRuns(hub: Hub, before: number, most: number): Promise<number> {
  return hub.store.write(tx => deleteSome(hub, tx, before, most))
}

async function deleteSome(hub: Hub, tx: Db, before: number, most: number): Promise<number> {
  const { store } = hub
  const { runs, logs, events, phases, largeValues, artifacts } = store
  const ids = await someOf(hub, tx, before, Math.min(most, TREES))
  if (ids.length === 0) return 0
  let left = most
  // What a run may have much of. The rest goes with its row.
  for (const table of [logs, events, phases, largeValues, artifacts]) {
    const where = inArray(table.run_id, ids)
    left -= await deleteAtMost(store, tx, table, { where, most: left })
    if (left === 0) return most
  }
  const gone = await tx
    .delete(runs)
    .where(inArray(runs.run_id, ids.slice(0, left)))
    .returning({ realm: runs.realm_id, bytes: runs.log_bytes })
  for (const [realm, those] of Map.groupBy(gone, each => each.realm)) {
    const bytes = those.reduce((sum, each) => sum + each.bytes, 0)
    if (bytes > 0) await addBytes(hub, tx, realm, 'log_bytes', -bytes)
  }
  return most - left + gone.length
}

/** Runs below top runs that ended long ago, or such top runs when nothing is left below them. */
async function someOf({ store: { runs } }: Hub, tx: Db, before: number, trees: number): Promise<string[]> {
  // As the index has it.
  const since = sql`CASE WHEN ${runs.kept_since} IS NULL THEN ${runs.completed_at} ELSE ${runs.kept_since} END`
  const old = await tx
    .select({ id: runs.run_id })
    .from(runs)
    .where(and(eq(runs.run_id, runs.root_run_id), inArray(runs.state, [...ENDED_RUN_STATES]), lt(since, before)))
    .limit(trees)
  const roots = old.map(({ id }) => id)
  if (roots.length === 0) return []
  const below = await tx
    .select({ id: runs.run_id })
    .from(runs)
    .where(and(inArray(runs.root_run_id, roots), ne(runs.run_id, runs.root_run_id)))
    .limit(trees)
  return below.length > 0 ? below.map(({ id }) => id) : roots
}
