// What a chore is: work that hubs do by themselves at intervals, in steps, each of which changes little.

import type { Tables } from '../../../db/hub/schema.ts'

/**
 * One run of a chore: all in one step, or a step up to each `yield`, which says that there is more to do. Other calls come
 * between two steps, and a run may be given up there.
 */
export type Steps = Promise<void> | AsyncGenerator<void, void>

/** What came of the last runs of a chore. Times are those of the database's clock. */
export type ChoreOutcome = Pick<
  Tables['chores']['$inferSelect'],
  'last_run_at' | 'last_run_ms' | 'last_error' | 'last_error_at'
>
