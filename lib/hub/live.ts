// Runs that are not over: what keeps a realm or an org from being deleted.

import { and, inArray, notInArray, type SQLWrapper } from 'drizzle-orm'
import type { Db } from '../../db/hub/store.ts'
import { CadreError } from '../error.ts'
import { ENDED_RUN_STATES } from '../wire/states.ts'
import type { Hub } from './hub.ts'

export const TERMINAL = ENDED_RUN_STATES

/** `realmIds`: a list of ids, or a query that gives them. */
export async function hasLiveRuns({ store }: Hub, tx: Db, realmIds: string[] | SQLWrapper): Promise<boolean> {
  const { runs } = store
  const live = and(inArray(runs.realm_id, realmIds as string[]), notInArray(runs.state, [...TERMINAL]))
  const rows = await tx.select({ id: runs.run_id }).from(runs).where(live).limit(1)
  return rows.length > 0
}

export function endLiveRuns(what: string): CadreError {
  return new CadreError('conflict', `${what} has runs that are not over; cancel them or wait, then delete it`)
}
