// The ids of new runs of a home.

import type { Database } from 'bun:sqlite'
import { CHOSEN_FROM, RunIds } from '../../files/run-ids.ts'

/** Makes ids that are greater than those of all runs in the database. */
export function runIdsAfter(db: Database): RunIds {
  const ids = new RunIds()
  const greatest = db
    .query<{ id: string }, [string]>(
      "SELECT id FROM runs WHERE id < ? AND substr(id, 15, 1) = '7' ORDER BY id DESC LIMIT 1",
    )
    .get(CHOSEN_FROM)
  if (greatest) ids.note(greatest.id)
  return ids
}
