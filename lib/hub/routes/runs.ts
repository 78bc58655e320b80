// Runs: the route where daemons report them (runs/sync), and the routes where people read them.

import { type AnyColumn, and, eq, inArray, or, type SQL, sql } from 'drizzle-orm'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import { eventStream, jsonStream, lineStream } from '../../http/stream.ts'
import { within } from '../../wire/budget.ts'
import { Sync } from '../../wire/calls/daemon-link.ts'
import { ListHubArtifacts, ListHubRuns, MOST_FILES } from '../../wire/calls/hub-runs.ts'
import { GetLogs, GetPhases, GetRun, GetTree, GetWhy, ReadLog, StreamRun } from '../../wire/calls/runs.ts'
import { refuseInPlace } from '../../wire/in-place.ts'
import { page } from '../../wire/page.ts'
import { ENDED_RUN_STATES } from '../../wire/states.ts'
import { answer } from '../access/answer.ts'
import type { UserCaller } from '../access/callers.ts'
import { callingDaemon, checkProtocol } from '../access/daemons.ts'
import { hubKit } from '../access/kit.ts'
import { countedStream } from '../access/quotas.ts'
import { realmsReached } from '../access/token-reach.ts'
import { reportedFiles, storedOf } from '../artifacts/kept-files.ts'
import type { Hub } from '../core/hub.ts'
import { beginsWith, literal } from '../core/list-total.ts'
import { startedByThis } from '../core/starters.ts'
import { takeReport } from '../queue/reported-runs.ts'
import { whyOf } from '../queue/why.ts'
import { readLinesAfter } from '../reports/log-lines.ts'
import { logStateOf } from '../reports/log-state.ts'
import { runPhases } from '../reports/phases.ts'
import { runEvents } from '../reports/run-events.ts'
import {
  amongNewest,
  inState,
  newestFirst,
  readableRun,
  runRecord,
  stateColumn,
  treeEntries,
  wholeRecord,
} from '../reports/runs.ts'
import { treeLog } from '../reports/tree-log.ts'
import { recallFiring } from '../triggers/recalled.ts'

export function runs(hub: Hub) {
  const { store } = hub
  const { runs, daemons, realms } = store

  return resource('runs', hubKit(hub), [
    answer(Sync, async ({ body, caller }) => {
      checkProtocol(body.protocol)
      const daemon = await callingDaemon(hub, caller, body)
      const { touched, fresh, ...reply } = await caller.write(async tx => {
        const { unknown, ...taken } = await takeReport(hub, tx, daemon, body)
        for (const run of unknown) await recallFiring(hub, tx, daemon.realm_id, run)
        return taken
      })
      if (body.reported !== undefined) await hub.lineage.applyConfirmations()
      hub.counts.changes.add(fresh)
      for (const { code } of reply.rejected) hub.counts.rejected.add(1, { code })
      for (const root of touched.keys()) hub.notifier.notify(`run ${root}`)
      return { ...reply, ...hub.lineage.replyTo(daemon) }
    }),
    answer(ListHubRuns, async ({ body, caller }) => {
      if (body.realm_id) await caller.realm(body.realm_id)
      const state = stateColumn(store, hub.lived())
      const reached = realmsReached(store, caller)
      const inRealms = body.realm_id
        ? eq(runs.realm_id, body.realm_id)
        : inArray(runs.realm_id, store.db.select({ id: realms.id }).from(realms).where(reached))
      const given: (SQL | undefined)[] = [
        body.state && inState(store, body.state, hub.lived()),
        body.team && ofTeam(body.team),
        body.root_only ? eq(runs.run_id, runs.root_run_id) : undefined,
        body.started_by && startedByThis(store, body.started_by),
        body.search && named(body.search),
        body.begins ? beginsWith(runs.run_id, body.begins) : undefined,
        body.since === undefined ? undefined : sql`coalesce(${runs.started_at}, ${runs.created_at}) >= ${body.since}`,
      ].filter(filter => filter !== undefined && filter !== '') as SQL[]
      const filters = and(...given)
      const { limit, offset } = page(body)
      const joined = eq(daemons.id, runs.daemon_id)
      const all = store.db.select({ total: sql<number>`count(*)`.mapWith(Number) }).from(runs)
      const needsDaemons = body.state !== undefined && !ENDED_RUN_STATES.includes(body.state)
      const [count] = await (needsDaemons ? all.leftJoin(daemons, joined) : all).where(and(inRealms, filters))
      const total = count!.total
      // When there are fewer, all of them are read whatever is known of the newest.
      const areMany = body.realm_id === undefined && body.state !== 'crashed' && total > limit + offset
      const newest = areMany ? amongNewest(store, { realms: reached, filters, count: limit + offset }) : undefined
      const rows = await store.db
        .select({ row: runs, state })
        .from(runs)
        .leftJoin(daemons, joined)
        .where(and(inRealms, filters, newest))
        .orderBy(newestFirst(store, body.state))
        .limit(limit)
        .offset(offset)
      return { runs: within(rows.map(found => runRecord(found.row, found.state))), total }
    }),
    answer(GetRun, async ({ body, caller }) => {
      const { row, state } = await readableRun(hub, caller, body.run_id)
      return wholeRecord(store, { row, state })
    }),
    answer(GetTree, async ({ body, caller }) => {
      const { row } = await readableRun(hub, caller, body.run_id)
      const head = `{"ok":true,"data":{"root_run_id":${JSON.stringify(row.root_run_id)},"runs":[`
      return jsonStream(head, treeEntries(hub, row.root_run_id), ']}}')
    }),
    answer(GetWhy, async ({ body, caller }) => {
      if (body.ask) throw new CadreError('invalid_request', 'a hub cannot `ask`: the daemon of the run can')
      return whyOf(hub, await readableRun(hub, caller, body.run_id))
    }),
    answer(GetPhases, async ({ body, caller }) => {
      const { row, state } = await readableRun(hub, caller, body.run_id)
      return { run_id: row.run_id, state, phases: await runPhases(hub, row, body.phase) }
    }),
    answer(GetLogs, async ({ body: { run_id, phase, after_seq = 0, limit = 100 }, caller }) => {
      const { row } = await readableRun(hub, caller, run_id)
      const lines = await readLinesAfter(store, run_id, after_seq, limit, phase)
      return { lines, next: lines.at(-1)?.seq ?? after_seq, ...logStateOf(row) }
    }),
    answer(ListHubArtifacts, async ({ body, caller }) => {
      const { row } = await readableRun(hub, caller, body.run_id)
      const { files, total } = await reportedFiles(hub, row.run_id, page({ limit: MOST_FILES, ...body }))
      const stored = await storedOf(hub, row.root_run_id, files)
      return { artifacts: within(files.map(file => ({ ...file, stored: stored.has(file.sha256) }))), total }
    }),
    answer(ReadLog, async ({ query, caller, request, server }) => {
      const { row, realm } = await readableRun(hub, caller, query.run_id)
      server?.timeout(request, 0)
      const lines = treeLog(hub, row, query.below !== 'no', stillReadable(caller, query.run_id))
      return lineStream(await countedStream(hub, realm, lines))
    }),
    answer(StreamRun, async ({ query, caller, request, server, stopping }) => {
      const { row, realm } = await readableRun(hub, caller, query.run_id)
      server?.timeout(request, 0)
      const readable = stillReadable(caller, query.run_id)
      const gone = new AbortController()
      const signal = AbortSignal.any([gone.signal, stopping.signal])
      const events = await countedStream(hub, realm, runEvents(hub, row, signal, readable))
      return eventStream(until => {
        until.addEventListener('abort', () => gone.abort())
        return events
      }, stopping.signal)
    }),
  ])

  /** For replies that take their time: throws when the caller may no longer read the run. */
  function stillReadable(caller: UserCaller, runId: string): () => Promise<void> {
    return async () => void (await readableRun(hub, await caller.again(), runId))
  }

  /** Runs of a team that is given by its whole name, or by the part after the scope. */
  function ofTeam(name: string): SQL {
    refuseInPlace(name)
    if (name.includes('/')) return eq(runs.team, name)
    return sql`${runs.team} LIKE ${`%/${literal(name)}`} ESCAPE '\\' AND ${runs.team} NOT LIKE '%/%/%'`
  }

  /** Runs with `text` in the name, the team or the id. */
  function named(text: string): SQL {
    const pattern = `%${literal(text.toLowerCase())}%`
    const like = (column: AnyColumn) => sql`lower(${column}) LIKE ${pattern} ESCAPE '\\'`
    return or(like(runs.run_name), like(runs.team), like(runs.run_id))!
  }
}
