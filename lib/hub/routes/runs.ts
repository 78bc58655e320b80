// Runs: the route where daemons report them (runs/sync), and the routes where people read them.

import { type AnyColumn, and, eq, inArray, or, type SQL, sql } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { MIB } from '../../http/body.ts'
import { eventStream, jsonStream, lineStream } from '../../http/stream.ts'
import { closed, standard } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { within } from '../../wire/budget.ts'
import { listBody, listOf, page } from '../../wire/page.ts'
import { Text, Uuid } from '../../wire/parts.ts'
import { Sync } from '../../wire/protocol.ts'
import { Artifact, Line, LOG_STATE, Phase, Run, TreeEntry, WholeRun, withMore } from '../../wire/records/hub-records.ts'
import { ENDED_RUN_STATES, HUB_RUN_STATES } from '../../wire/states.ts'
import type { UserCaller } from '../access/callers.ts'
import { callingDaemon, checkProtocol } from '../access/daemons.ts'
import { hubKit } from '../access/kit.ts'
import { countedStream } from '../access/quotas.ts'
import { realmsReached } from '../access/token-reach.ts'
import { reportedFiles, storedOf } from '../artifacts/kept-files.ts'
import type { Hub } from '../core/hub.ts'
import { takeReport } from '../queue/reported-runs.ts'
import { linesAfter } from '../reports/log-lines.ts'
import { logState } from '../reports/log-state.ts'
import { runPhases } from '../reports/phases.ts'
import { runEvents } from '../reports/run-events.ts'
import {
  inState,
  newestFirst,
  READ,
  readableRun,
  runRecord,
  stateColumn,
  treeEntries,
  wholeRecord,
} from '../reports/runs.ts'
import { treeLog } from '../reports/tree-log.ts'

const OneRun = closed({ run_id: Uuid })
/** Few runs have more files, and all of them fit into a reply. */
const MOST_FILES = 10_000

export function runs(hub: Hub) {
  const { store } = hub
  const { runs, daemons, realms } = store

  return new Elysia({ name: 'runs', prefix: '/v1/runs' })
    .use(hubKit(hub))
    .post(
      '/sync',
      async ({ body, caller }) => {
        checkProtocol(body.protocol)
        const daemon = await callingDaemon(hub, caller, body)
        const { touched, fresh, ...reply } = await caller.write(tx => takeReport(hub, tx, daemon, body))
        if (body.reported !== undefined) await hub.memory.changedWitness()
        hub.counts.changes.add(fresh)
        for (const { code } of reply.rejected) hub.counts.rejected.add(1, { code })
        for (const root of touched.keys()) hub.notifier.notify(`run ${root}`)
        return { ...reply, ...hub.memory.told(daemon) }
      },
      {
        realm: true,
        body: standard(Sync.body),
        data: Sync.data,
        limit: 4 * MIB,
        detail: { summary: 'Report what the runs of a daemon did' },
      },
    )
    .post(
      '/list',
      async ({ body, caller }) => {
        if (body.realm_id) await caller.realm(body.realm_id)
        const state = stateColumn(store, hub.now())
        const filters: (SQL | undefined)[] = [
          body.realm_id
            ? eq(runs.realm_id, body.realm_id)
            : inArray(
                runs.realm_id,
                store.db.select({ id: realms.id }).from(realms).where(realmsReached(store, caller)),
              ),
          body.state && inState(store, body.state, hub.now()),
          body.team && ofTeam(body.team),
          body.root_only ? eq(runs.run_id, runs.root_run_id) : undefined,
          body.search && named(body.search),
        ].filter(filter => filter !== undefined && filter !== '') as SQL[]
        const { limit, offset } = page(body)
        const joined = eq(daemons.id, runs.daemon_id)
        const rows = await store.db
          .select({ row: runs, state })
          .from(runs)
          .leftJoin(daemons, joined)
          .where(and(...filters))
          .orderBy(...newestFirst(store, body.state))
          .limit(limit)
          .offset(offset)
        const all = store.db.select({ total: sql<number>`count(*)`.mapWith(Number) }).from(runs)
        const needsDaemons = body.state !== undefined && !ENDED_RUN_STATES.includes(body.state)
        const [count] = await (needsDaemons ? all.leftJoin(daemons, joined) : all).where(and(...filters))
        return { runs: within(rows.map(found => runRecord(found.row, found.state))), total: count!.total }
      },
      {
        user: READ,
        body: listBody({
          realm_id: Type.Optional(Uuid),
          state: Type.Optional(Type.Enum([...HUB_RUN_STATES])),
          team: Type.Optional(Text(200)),
          root_only: Type.Optional(Type.Boolean()),
          search: Type.Optional(Text(200)),
        }),
        data: listOf('runs', Run),
        detail: { summary: 'List runs, newest first' },
      },
    )
    .post(
      '/get',
      async ({ body, caller }) => {
        const { row, state } = await readableRun(hub, caller, body.run_id)
        return wholeRecord(store, { row, state })
      },
      { user: READ, body: OneRun, data: WholeRun, detail: { summary: 'Get a run' } },
    )
    .post(
      '/tree',
      async ({ body, caller }) => {
        const { row } = await readableRun(hub, caller, body.run_id)
        const head = `{"ok":true,"data":{"root_run_id":${JSON.stringify(row.root_run_id)},"runs":[`
        return jsonStream(head, treeEntries(hub, row.root_run_id), ']}}')
      },
      {
        user: READ,
        body: OneRun,
        data: Type.Object({ root_run_id: Type.String(), runs: Type.Array(TreeEntry) }),
        detail: { summary: 'Get the whole tree of a run' },
      },
    )
    .post(
      '/phases',
      async ({ body, caller }) => {
        const { row, state } = await readableRun(hub, caller, body.run_id)
        return { run_id: row.run_id, state, phases: await runPhases(hub, row, body.phase) }
      },
      {
        user: READ,
        body: closed({ run_id: Uuid, phase: Type.Optional(Text(300, 1)) }),
        data: withMore(Type.Pick(Run, ['run_id', 'state']), { phases: Type.Array(Phase) }),
        detail: { summary: 'List the phases of a run, in the order of its team.yml, or get one of them whole' },
      },
    )
    .post(
      '/logs',
      async ({ body: { run_id, phase, after_seq = 0, limit = 100 }, caller }) => {
        const { row } = await readableRun(hub, caller, run_id)
        const lines = await linesAfter(store, run_id, after_seq, limit, phase)
        return { lines, next: lines.at(-1)?.seq ?? after_seq, ...logState(row) }
      },
      {
        user: READ,
        body: closed({
          run_id: Uuid,
          phase: Type.Optional(Text(300)),
          after_seq: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
        }),
        data: Type.Object({ lines: Type.Array(Line), next: Type.Integer(), ...LOG_STATE }),
        detail: {
          summary: 'Read log lines of a run, and whether they are all; `next` is the `after_seq` of the next call',
        },
      },
    )
    .post(
      '/artifacts',
      async ({ body, caller }) => {
        const { row } = await readableRun(hub, caller, body.run_id)
        const { files, total } = await reportedFiles(hub, row.run_id, page({ limit: MOST_FILES, ...body }))
        const stored = await storedOf(hub, row.root_run_id, files)
        return { artifacts: within(files.map(file => ({ ...file, stored: stored.has(file.sha256) }))), total }
      },
      {
        user: READ,
        body: closed({
          run_id: Uuid,
          offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MOST_FILES })),
        }),
        data: listOf('artifacts', Artifact),
        detail: { summary: 'List the files that a run wrote; those that are stored can be had by artifacts/get' },
      },
    )
    .get(
      '/log',
      async ({ query, caller, request, server }) => {
        const { row, realm } = await readableRun(hub, caller, query.run_id)
        server?.timeout(request, 0)
        const lines = treeLog(hub, row, query.below !== 'no', stillReadable(caller, query.run_id))
        return lineStream(await countedStream(hub, realm, lines))
      },
      {
        user: READ,
        query: closed({ run_id: Uuid, below: Type.Optional(Type.Enum(['yes', 'no'])) }),
        media: 'application/x-ndjson',
        detail: { summary: 'All log lines of a run and of the runs below it, in the order of time' },
      },
    )
    .get(
      '/stream',
      async ({ query, caller, request, server, stopping }) => {
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
      },
      {
        user: READ,
        query: OneRun,
        media: 'text/event-stream',
        detail: { summary: 'Stream the events of a run and all runs below it: run, phase, log, end' },
      },
    )

  /** For replies that take their time: throws when the caller may no longer read the run. */
  function stillReadable(caller: UserCaller, runId: string): () => Promise<void> {
    return async () => void (await readableRun(hub, await caller.again(), runId))
  }

  /** Runs of a team that is given by its whole name, or by the part after the scope. */
  function ofTeam(name: string): SQL {
    if (name.includes('/')) return eq(runs.team, name)
    return sql`${runs.team} LIKE ${`%/${literal(name)}`} ESCAPE '\\'`
  }

  /** Runs with `text` in the name, the team or the id. */
  function named(text: string): SQL {
    const pattern = `%${literal(text.toLowerCase())}%`
    const like = (column: AnyColumn) => sql`lower(${column}) LIKE ${pattern} ESCAPE '\\'`
    return or(like(runs.run_name), like(runs.team), like(runs.run_id))!
  }
}

/** Text as a pattern of LIKE that fits only itself. */
const literal = (text: string): string => text.replaceAll(/[\\%_]/g, '\\$&')
