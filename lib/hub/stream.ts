// What happens in a run, as the daemon reports it: first how things stand, then every change, until the run has ended.
// Of one run only: its sub-runs have streams of their own.

import { and, asc, eq, gt } from 'drizzle-orm'
import type { ServerEvent } from '../http/stream.ts'
import type { Hub } from './hub.ts'
import { TERMINAL } from './live.ts'
import { type RunRow, runRecord, stateColumn } from './runs.ts'

/** Without a ring (another process took the report) the database is asked this often. */
const LOOK_MS = 2_000
const LINES = 1_000

export async function* runEvents(
  hub: Hub,
  run: Pick<RunRow, 'run_id' | 'root_run_id'>,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  const runId = run.run_id
  const { runs, daemons, phases, logs, db } = hub.store
  const told = new Map<string, string>()
  let line = 0
  let id = 0

  function* changed(key: string, event: string, data: unknown): Generator<ServerEvent> {
    const text = JSON.stringify(data)
    if (told.get(key) === text) return
    told.set(key, text)
    yield { id: ++id, event, data }
  }

  using ear = hub.bell.listen(`run ${run.root_run_id}`)
  while (!signal.aborted) {
    const [found] = await db
      .select({ row: runs, state: stateColumn(hub.store, hub.now()) })
      .from(runs)
      .leftJoin(daemons, eq(daemons.id, runs.daemon_id))
      .where(eq(runs.run_id, runId))
    if (!found) return
    yield* changed('run', 'run', runRecord(found.row, found.state))
    const all = await db.select().from(phases).where(eq(phases.run_id, runId)).orderBy(phases.index)
    for (const { index, data: _, ...phase } of all)
      yield* changed(`phase ${index}`, 'phase', { ...phase, position: index })
    for (let lines = LINES; lines === LINES; ) {
      const next = await db
        .select({ seq: logs.seq, phase: logs.phase, at: logs.at, stream: logs.stream, text: logs.text })
        .from(logs)
        .where(and(eq(logs.run_id, runId), gt(logs.seq, line)))
        .orderBy(asc(logs.seq))
        .limit(LINES)
      lines = next.length
      line = next.at(-1)?.seq ?? line
      if (lines > 0) yield { id: ++id, event: 'log', data: { run_id: runId, lines: next } }
    }
    if (TERMINAL.includes(found.row.state)) return yield { id: ++id, event: 'end', data: runRecord(found.row) }
    await ear.wait(LOOK_MS, signal)
  }
}
