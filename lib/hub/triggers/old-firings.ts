// Deletes what is old of triggers: firings that are final, and triggers that were removed. The newest firings of a trigger
// stay, and all of which the run is there: from them one reads what started it, and whether it still holds the trigger.

import type { Db } from '../../../db/hub/store.ts'
import { parseDuration } from '../../duration.ts'
import { hookSpec } from '../../firing/hook-kind.ts'
import type { Hook } from '../../triggers/hook/fields.ts'
import { deleteEnds } from '../chains/ends.ts'
import { BatchSize } from '../core/batch-size.ts'
import type { Hub } from '../core/hub.ts'
import { deleteOldOf, newestKept } from './firing-table.ts'
import { deleteRemoved, everyTrigger } from './trigger-table.ts'

const DAY_MS = 86_400_000
/** Firings that each trigger keeps, however old they are. */
const KEPT = 100

/** Deletes those that are older than `ms` by the believed time, a part at a time. */
export async function* deleteOldFirings({ store, clock }: Hub, ms: number): AsyncGenerator<void> {
  const size = new BatchSize()
  for (const { id, kind, removed_at, spec } of await everyTrigger(store)) {
    // What `at_most` counts is no older than it counts, and a hook recognises deliveries for its own time.
    const counted = spec.at_most === null ? 0 : parseDuration(spec.at_most.per)!
    const known = kind === 'hook' && removed_at === null ? hookSpec(spec.own as Hook).keepDays * DAY_MS : 0
    const age = Math.max(ms, counted, known)
    const first = removed_at === null ? await newestKept(store, id, KEPT) : Number.MAX_SAFE_INTEGER
    const seenBefore = clock.believed() - age
    const deleteSome = async (tx: Db, most: number): Promise<number> => {
      const { deleted, ends } = await deleteOldOf(store, tx, id, { seenBefore, first, most })
      if (ends.length > 0) await deleteEnds(store, tx, ends)
      return deleted
    }
    while ((await size.timed(most => store.write(tx => deleteSome(tx, most)))) > 0) yield
  }
  await store.write(tx => deleteRemoved(store, tx))
}
