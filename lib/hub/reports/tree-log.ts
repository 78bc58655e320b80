// The log of a run together with those of all runs below it, in the order of time, as far as their daemon has reported
// them.

import { and, asc, eq, isNotNull } from 'drizzle-orm'
import { type LogStart, linesByTime } from '../../wire/records/lines-by-time.ts'
import type { TreeLines } from '../../wire/records/run-records.ts'
import type { Hub } from '../core/hub.ts'
import { readLinesAfter } from './log-lines.ts'
import type { ReportedRun } from './runs.ts'
import { isBelow } from './tree-order.ts'

/** Lines that are read of one run at once. */
const PAGE = 1_000

/**
 * The lines of `top`, or with `whole` also those of the runs below it, in pieces of one run each. `readable` throws when
 * the reader may no longer read the run, who may take any time.
 */
export async function* treeLog(
  { store }: Hub,
  top: ReportedRun,
  whole: boolean,
  readable: () => Promise<void>,
): AsyncGenerator<TreeLines> {
  const { runs, db } = store
  const inTree = whole ? isBelow(store, top.tree_key, true) : eq(runs.run_id, top.run_id)
  const started = await db
    .select({ run_id: runs.run_id, started_at: runs.started_at })
    .from(runs)
    .where(and(eq(runs.root_run_id, top.root_run_id), inTree, isNotNull(runs.started_at)))
    .orderBy(asc(runs.started_at))
  const starts = started.map(({ run_id, started_at }): LogStart => ({ run_id, started_at: started_at! }))
  yield* linesByTime(starts, async (runId, after) => {
    await readable()
    return readLinesAfter(store, runId, after, PAGE)
  })
}
