// What happens in a run and all below it, as the daemon reports it: first how things stand, then every change, until
// the run has ended. Of sub-runs that ended before, only that they did: the rest is for `runs/phases` and `runs/logs`.

import { and, asc, eq, gt } from 'drizzle-orm'
import type { ServerEvent } from '../http/stream.ts'
import { ENDED_RUN_STATES } from '../wire/states.ts'
import type { Hub } from './hub.ts'
import { lastRev, type ReportedRun, runRecord, stateColumn } from './runs.ts'
import { behind, below, treeOrder } from './tree-order.ts'

/** Without a ring (a run whose daemon fell silent, a lost word) the database is asked this often. */
const LOOK_MS = 2_000
const LINES = 1_000
const PAGE = 200

/** `readable` throws once the reader has lost the run: a token that was revoked, a membership that ended. */
export async function* runEvents(
  hub: Hub,
  top: ReportedRun,
  signal: AbortSignal,
  readable: () => Promise<void>,
): AsyncGenerator<ServerEvent> {
  const { store } = hub
  const { phases, logs, db } = store
  /** What was told of runs that have not ended, and the last line of each. */
  const told = new Map<string, Map<string, string>>()
  const lines = new Map<string, number>()
  let id = 0

  function* changed(runId: string, event: 'run' | 'phase', key: string, data: unknown): Generator<ServerEvent> {
    const known = told.get(runId) ?? new Map<string, string>()
    told.set(runId, known)
    const text = JSON.stringify(data)
    if (known.get(key) === text) return
    known.set(key, text)
    yield { id: ++id, event, data }
  }

  async function* details(run_id: string): AsyncGenerator<ServerEvent> {
    const all = await db.select().from(phases).where(eq(phases.run_id, run_id)).orderBy(phases.index)
    for (const { index, data: _, ...phase } of all) {
      yield* changed(run_id, 'phase', String(index), { ...phase, position: index })
    }
    for (let count = LINES; count === LINES; ) {
      const next = await db
        .select({ seq: logs.seq, phase: logs.phase, at: logs.at, stream: logs.stream, text: logs.text })
        .from(logs)
        .where(and(eq(logs.run_id, run_id), gt(logs.seq, lines.get(run_id) ?? 0)))
        .orderBy(asc(logs.seq))
        .limit(LINES)
      count = next.length
      if (count === 0) return
      lines.set(run_id, next.at(-1)!.seq)
      yield { id: ++id, event: 'log', data: { run_id, lines: next } }
    }
  }

  using ear = hub.bell.listen(`run ${top.root_run_id}`)
  for (let seen = -1; !signal.aborted; ) {
    // Before the rows: what changes while they are read is read again.
    const upTo = await lastRev(store, db, top.root_run_id)
    const [now] = await runsBelow(hub, top, { limit: 1 })
    if (!now) return
    yield* changed(top.run_id, 'run', 'run', runRecord(now.row, now.state))
    for (let after: string | undefined; ; ) {
      const rows = await runsBelow(hub, top, { since: seen, after, limit: PAGE })
      for (const { row, state } of rows) {
        const ended = ENDED_RUN_STATES.includes(row.state)
        yield* changed(row.run_id, 'run', 'run', runRecord(row, state))
        if (!ended || seen >= 0 || row.run_id === top.run_id) yield* details(row.run_id)
        if (!ended || row.run_id === top.run_id) continue
        told.delete(row.run_id)
        lines.delete(row.run_id)
      }
      if (rows.length < PAGE) break
      after = rows.at(-1)!.row.tree_key
    }
    if (ENDED_RUN_STATES.includes(now.row.state)) return yield { id: ++id, event: 'end', data: runRecord(now.row) }
    seen = upTo
    await ear.wait(LOOK_MS, signal)
    await readable()
  }
}

/** `top` and the runs below it, depth first; of those that changed after `since`, from behind `after` on. */
function runsBelow(
  hub: Hub,
  top: ReportedRun,
  { since = -1, after, limit }: { since?: number; after?: string | undefined; limit: number },
) {
  const { runs, daemons, db } = hub.store
  return db
    .select({ row: runs, state: stateColumn(hub.store, hub.now()) })
    .from(runs)
    .leftJoin(daemons, eq(daemons.id, runs.daemon_id))
    .where(
      and(
        eq(runs.root_run_id, top.root_run_id),
        gt(runs.rev, since),
        below(hub.store, top.tree_key, true),
        after === undefined ? undefined : behind(hub.store, after),
      ),
    )
    .orderBy(...treeOrder(hub.store))
    .limit(limit)
}
