// The rows of jobs, and conditions of their states that the indexes of the table serve.

import { and, inArray, isNotNull, lte, type Placeholder, type SQL, sql } from 'drizzle-orm'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Store } from '../../../db/hub/store.ts'

export type JobRow = Tables['jobs']['$inferSelect']

/**
 * The condition that a job is in one of these states. They stand in the text of the statement, because an index of such
 * jobs only is not used for states that are parameters. They have the order in which the index names them.
 */
export function inState({ jobs }: Pick<Store, 'jobs'>, ...states: [JobRow['state'], ...JobRow['state'][]]): SQL {
  const names = sql.raw(states.map(state => `'${state}'`).join(', '))
  return states.length === 1 ? sql`${jobs.state} = ${names}` : sql`${jobs.state} in (${names})`
}

/** The condition that a daemon got a job and has not accepted it in time. */
export const isLapsed = (store: Pick<Store, 'jobs'>, now: Placeholder): SQL =>
  and(inState(store, 'leased'), lte(store.jobs.lease_until, now))!

/** The condition that a job waited in an older copy, and that no daemon is known to have begun its run. */
export const isAdoptable = (store: Store) =>
  and(isNotNull(store.jobs.copy_id), inArray(store.jobs.state, ['held', 'waiting', 'blocked', 'dead', 'cancelled']))
