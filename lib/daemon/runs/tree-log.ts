// The log of a run together with those of all runs below it, in the order of time.

import { type Engine, readLines } from '../../run/engine.ts'
import { type LogStart, linesByTime } from '../../wire/records/lines-by-time.ts'
import type { TreeLines } from '../../wire/records/run-records.ts'

/** Lines that are read of one run at once. */
const PAGE = 1_000
const RUNS = 500

/**
 * The lines that have been written so far, in pieces of one run each. Throws `not_found`. `readable` throws when the
 * reader may no longer read them, who may take any time.
 */
export function treeLog(
  engine: Engine,
  runId: string,
  below: boolean,
  readable: () => Promise<void>,
): AsyncGenerator<TreeLines> {
  const starts = startsBelow(engine, engine.record(runId).run_id, below)
  engine.logs.flush()
  return linesByTime(starts, async (id, afterSeq) => {
    await readable()
    return (await readLines(engine.stateDir(engine.idOf(id)), { afterSeq, limit: PAGE })).lines
  })
}

/** The runs that have started, in the order of their start. */
function startsBelow({ store }: Engine, runId: string, below: boolean): LogStart[] {
  const { id, root_id, tree_key, started_at } = store.runs.get(runId)!
  const starts: LogStart[] = started_at === null ? [] : [{ run_id: id, started_at }]
  for (let after = tree_key; below; ) {
    const rows = store.runLists.below(root_id, tree_key, after, RUNS)
    for (const row of rows) if (row.started_at !== null) starts.push({ run_id: row.id, started_at: row.started_at })
    if (rows.length < RUNS) break
    after = rows.at(-1)!.tree_key
  }
  return starts.sort((a, b) => a.started_at - b.started_at)
}
