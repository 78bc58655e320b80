// Runs: the route where daemons report them (runs/sync), and the routes where people read them.

import { together } from '../../../db/hub/together.ts'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import { eventStream, jsonStream, lineStream } from '../../http/stream.ts'
import { readAhead } from '../../stream.ts'
import { within } from '../../wire/budget.ts'
import { Sync } from '../../wire/calls/daemon-link.ts'
import {
  GetHubRunStats,
  ListHubArtifacts,
  ListHubRuns,
  ListHubRunTeams,
  MOST_FILES,
} from '../../wire/calls/hub-runs.ts'
import { GetLogs, GetPhases, GetRun, GetTree, GetWhy, ReadLog, StreamRun } from '../../wire/calls/runs.ts'
import { page } from '../../wire/page.ts'
import { sinceOrDefault } from '../../wire/run-stats.ts'
import { answer } from '../access/answer.ts'
import type { UserCaller } from '../access/callers.ts'
import { callingDaemon, checkProtocol } from '../access/daemons.ts'
import { hubKit } from '../access/kit.ts'
import { countedStream } from '../access/quotas.ts'
import { realmsReached } from '../access/token-reach.ts'
import { reportedFiles, storedOf } from '../artifacts/kept-files.ts'
import type { Hub } from '../core/hub.ts'
import { askedOf } from '../queue/asked.ts'
import { takeReport } from '../queue/reported-runs.ts'
import { whyOf } from '../queue/why.ts'
import { readLastLines, readLinesAfter } from '../reports/log-lines.ts'
import { logStateOf } from '../reports/log-state.ts'
import { runPhases } from '../reports/phases.ts'
import { runEvents } from '../reports/run-events.ts'
import { listRuns } from '../reports/run-lists.ts'
import { teamsOfRuns } from '../reports/run-teams.ts'
import { readableRun, runRecord, treeEntries, wholeRecord } from '../reports/runs.ts'
import { statsOfTeam } from '../reports/team-runs.ts'
import { treeLog } from '../reports/tree-log.ts'
import { recallFiring } from '../triggers/recalled.ts'

export function runs(hub: Hub) {
  const { store } = hub

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
      const { realm_id, ...filter } = body
      const where = realm_id ? { realm: realm_id } : { reached: realmsReached(store, caller) }
      const listing = listRuns(hub, where, filter, page(body))
      const [{ rows, ...totals }] = await together([listing, realm_id && caller.realm(realm_id)])
      return { runs: within(rows.map(found => runRecord(found.row, found.state))), ...totals }
    }),
    answer(ListHubRunTeams, async ({ body, caller }) => {
      const { realm_id } = body
      const where = realm_id ? { realm: realm_id } : { reached: realmsReached(store, caller) }
      const [found] = await together([teamsOfRuns(store, where, page(body)), realm_id && caller.realm(realm_id)])
      return found
    }),
    answer(GetHubRunStats, async ({ body: { realm_id, team, since }, caller }) => {
      const now = hub.now()
      // Before the runs are read, which are many.
      if (realm_id) await caller.realm(realm_id)
      const where = realm_id ? { realm: realm_id } : { reached: realmsReached(store, caller) }
      return statsOfTeam(store, where, { team, since: sinceOrDefault(since, now), now })
    }),
    answer(GetRun, async ({ body, caller }) => {
      const found = await readableRun(hub, caller, body.run_id)
      const [record, asked] = await together([wholeRecord(store, found), askedOf(hub, found)])
      return { ...record, ...asked }
    }),
    answer(GetTree, async ({ body, caller }) => {
      const entries = readAhead(treeEntries(hub, body.run_id))
      const { row } = await readableRun(hub, caller, body.run_id)
      const head = `{"ok":true,"data":{"root_run_id":${JSON.stringify(row.root_run_id)},"runs":[`
      return jsonStream(head, entries, ']}}')
    }),
    answer(GetWhy, async ({ body, caller }) => {
      if (body.ask) throw new CadreError('invalid_request', 'a hub cannot `ask`: the daemon of the run can')
      return whyOf(hub, await readableRun(hub, caller, body.run_id))
    }),
    answer(GetPhases, async ({ body, caller }) => {
      const { row, state } = await readableRun(hub, caller, body.run_id)
      return { run_id: row.run_id, state, phases: await runPhases(hub, row, body.phase) }
    }),
    answer(GetLogs, async ({ body: { run_id, phase, after_seq = 0, limit = 100, last }, caller }) => {
      const { row } = await readableRun(hub, caller, run_id)
      const lines = last
        ? await readLastLines(store, run_id, limit, phase)
        : await readLinesAfter(store, run_id, after_seq, limit, phase)
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
}
