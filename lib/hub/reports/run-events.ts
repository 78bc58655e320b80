// The events of a run and of all runs below it, as its daemon reports them: first the present state, then every change
// until the run has ended and its log is complete, or its daemon is silent. For a sub-run that had already ended, the stream says only that it ended; `runs/phases` and
// `runs/logs` have the rest.

import { and, eq, gt, or } from 'drizzle-orm'
import type { ServerEvent } from '../../http/stream.ts'
import { statusOf } from '../access/daemons.ts'
import type { Hub } from '../core/hub.ts'
import { readLinesAfter } from './log-lines.ts'
import { awaitsLines } from './log-state.ts'
import { phaseHeads } from './phases.ts'
import { lastRev, type ReportedRun, runRecord, stateColumn } from './runs.ts'
import { isAfter, isBelow, treeOrder } from './tree-order.ts'

/**
 * The database is read this often even without a notification, because a daemon may have fallen silent or a notification may be
 * lost.
 */
const LOOK_MS = 2_000
const LINES = 1_000
const PAGE = 200

/** `readable` throws when the reader may no longer read the run, because a token was revoked or a membership ended. */
export async function* runEvents(
  hub: Hub,
  top: ReportedRun,
  signal: AbortSignal,
  readable: () => Promise<void>,
): AsyncGenerator<ServerEvent> {
  const { store } = hub
  const { db } = store
  /** For each run of which more may come, what has been sent, and its last log line. */
  const sent = new Map<string, Map<string, string>>()
  const lines = new Map<string, number>()
  let id = 0

  function* changed(runId: string, event: 'run' | 'phase', key: string, data: unknown): Generator<ServerEvent> {
    const known = sent.get(runId) ?? new Map<string, string>()
    sent.set(runId, known)
    const text = JSON.stringify(data)
    if (known.get(key) === text) return
    known.set(key, text)
    yield { id: ++id, event, data }
  }

  async function* details(run_id: string): AsyncGenerator<ServerEvent> {
    for (const { index, data: _, beside: __, ...phase } of await phaseHeads(store, db, run_id)) {
      yield* changed(run_id, 'phase', String(index), { ...phase, position: index, waiting: null, items: null })
    }
    for (;;) {
      const next = await readLinesAfter(store, run_id, lines.get(run_id) ?? 0, LINES)
      if (next.length === 0) return
      lines.set(run_id, next.at(-1)!.seq)
      yield { id: ++id, event: 'log', data: { run_id, lines: next } }
    }
  }

  using notifications = hub.notifier.subscribe(`run ${top.root_run_id}`)
  for (let seen = -1; !signal.aborted; ) {
    // This is read before the rows, so that whatever changes while they are read is read again.
    const upTo = await lastRev(store, db, top.root_run_id)
    const [now] = await runsBelow(hub, top, { limit: 1 })
    if (!now) return
    yield* changed(top.run_id, 'run', 'run', runRecord(now.row, now.state))
    for (let after: string | undefined; ; ) {
      const rows = await runsBelow(hub, top, { since: seen, after, limit: PAGE })
      for (const { row, state } of rows) {
        const ended = row.completed_at !== null
        yield* changed(row.run_id, 'run', 'run', runRecord(row, state))
        if (!ended || seen >= 0 || row.run_id === top.run_id) yield* details(row.run_id)
        // What changed since `upTo` is read once more, and must be known then.
        const isFinal = ended && !awaitsLines(row) && row.rev <= upTo
        if (!isFinal || row.run_id === top.run_id) continue
        sent.delete(row.run_id)
        lines.delete(row.run_id)
      }
      if (rows.length < PAGE) break
      after = rows.at(-1)!.row.tree_key
    }
    if (now.row.completed_at !== null && !(await moreLinesCome(hub, top))) {
      // What arrived since the lines were read.
      yield* details(top.run_id)
      return yield { id: ++id, event: 'end', data: runRecord(now.row) }
    }
    seen = upTo
    await notifications.wait(LOOK_MS, signal)
    await readable()
  }
}

/** Whether the daemon, which is online, has lines of the log of `top` or of a run below it that the hub has not. */
async function moreLinesCome(hub: Hub, top: ReportedRun): Promise<boolean> {
  const { runs, daemons, db } = hub.store
  const [found] = await db
    .select({ daemon: daemons })
    .from(runs)
    .innerJoin(daemons, eq(daemons.id, runs.daemon_id))
    .where(
      and(
        eq(runs.root_run_id, top.root_run_id),
        isBelow(hub.store, top.tree_key, true),
        eq(runs.log_kept, false),
        or(eq(runs.log_ended, false), gt(runs.log_lines, runs.log_last)),
      ),
    )
    .limit(1)
  return found !== undefined && statusOf(hub, found.daemon) === 'online'
}

/** `top` and the runs below it, depth first, starting behind `after`: only those that changed after `since`. */
function runsBelow(
  hub: Hub,
  top: ReportedRun,
  { since = -1, after, limit }: { since?: number; after?: string | undefined; limit: number },
) {
  const { runs, daemons, db } = hub.store
  return db
    .select({ row: runs, state: stateColumn(hub.store, hub.lived()) })
    .from(runs)
    .leftJoin(daemons, eq(daemons.id, runs.daemon_id))
    .where(
      and(
        eq(runs.root_run_id, top.root_run_id),
        gt(runs.rev, since),
        isBelow(hub.store, top.tree_key, true),
        after === undefined ? undefined : isAfter(hub.store, after),
      ),
    )
    .orderBy(...treeOrder(hub.store))
    .limit(limit)
}
