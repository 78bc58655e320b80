// runs/*: start, cancel, resume and delete runs, and read everything that is recorded about them.

import { basename, join } from 'node:path'
import type { Static } from 'typebox'
import { CadreError } from '../../error.ts'
import type { RunId } from '../../files/run-id.ts'
import { resource } from '../../http/resource.ts'
import { jsonStream } from '../../http/stream.ts'
import {
  hasLines,
  listRuns,
  readLines,
  rootOf,
  runDetail,
  runHistory,
  startedBy,
  treeEntries,
  why,
} from '../../run/engine.ts'
import {
  CancelRun,
  DeleteRun,
  GetHistory,
  GetLogs,
  GetPhases,
  GetRun,
  GetRunStats,
  GetTeam,
  GetTree,
  GetWhy,
  ListRuns,
  ListRunTeams,
  ResumeRun,
  StartRun,
} from '../../wire/calls/runs.ts'
import { refuseInPlace } from '../../wire/in-place.ts'
import { onceOf } from '../../wire/once.ts'
import { page } from '../../wire/page.ts'
import { sinceOrDefault } from '../../wire/run-stats.ts'
import { withStarter } from '../../wire/why/explain.ts'
import { withCommandsOfNow } from '../../wire/why/next-commands.ts'
import type { Caller } from '../access/access.ts'
import { answer, answerMessage } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import { cancelRun, planOfResume, resumeRun } from '../runs/cancel-resume.ts'
import type { Daemon } from '../runs/daemon.ts'
import { deleteTree } from '../runs/delete-tree.ts'
import { shown, shownPhases, shownWhy, storedFilter } from '../runs/interrupted.ts'
import { teamAsRead } from '../runs/plan.ts'
import { startRun } from '../runs/start-run.ts'

export function runs(daemon: Daemon, kit: DaemonKit) {
  const { engine } = daemon
  const { store } = engine
  return resource('runs', kit, [
    answer(StartRun, ({ body, caller, headers }) => start(daemon, body, caller, headers.traceparent)),
    answer(ListRuns, async ({ body }) => {
      const filter = { ...body, ...page(body) }
      const { runs, ...counted } = await listRuns(
        store,
        storedFilter(filter, daemon.openRuns.interrupted),
        daemon.reads,
      )
      return { runs: runs.map(run => (daemon.openRuns.isInterrupted(run.root_run_id) ? shown(run) : run)), ...counted }
    }),
    answer(ListRunTeams, ({ body }) => store.runGroups.teams(page(body))),
    answer(GetRunStats, async ({ body: { team, since } }) => {
      refuseInPlace(team)
      const now = Date.now()
      return daemon.reads.stats({ team, since: sinceOrDefault(since, now), now })
    }),
    answer(GetRun, ({ body, caller }) => {
      const runId = target(daemon, caller, body.run_id)
      const folder = placeOf(daemon, runId)
      const run = { ...runDetail(store, runId), ...(folder !== null && { folder }) }
      return daemon.openRuns.isInterrupted(run.root_run_id) ? shown(run) : run
    }),
    answer(CancelRun, ({ body, caller }) => cancelRun(daemon, target(daemon, caller, body.run_id), caller.actor)),
    answer(ResumeRun, ({ body, caller }) => {
      const { run_id, from_phase: from = null, failed = false, outputs = false, plan = false, inputs } = body
      if (inputs && !caller.local) {
        throw new CadreError('forbidden', 'secret inputs are only accepted on the daemon’s own machine')
      }
      const request = { from, failed, outputs, ...(inputs && { inputs }) }
      const runId = target(daemon, caller, run_id)
      if (plan) {
        const recorded = { store, bundle: (id: string) => engine.bundle(id) }
        return planOfResume(recorded, runId, request, id => daemon.openRuns.isInterrupted(id))
      }
      return resumeRun(daemon, runId, { actor: caller.actor, ...request })
    }),
    answer(DeleteRun, async ({ body, caller }) => {
      const record = engine.record(target(daemon, caller, body.run_id))
      const entry = { actor: caller.actor, action: 'runs/delete', target: record.run_id }
      await deleteTree(daemon.engine, record.run_id, {
        first: () => daemon.audit.write(entry),
        between: () => daemon.reads.checkpoint(),
      })
      return record
    }),
    answer(GetWhy, async ({ body, caller }) => {
      const runId = target(daemon, caller, body.run_id)
      const unasked = body.ask ? await askAgain(daemon, caller, runId) : null
      engine.logs.flush()
      const waitsOf = (id: string) => engine.phases(id).phases.map(({ waiting }) => waiting)
      const root = rootOf(daemon.db, runId)
      const found = await withCommandsOfNow(
        why(store, runId, id => engine.bundle(id), { waitsOf, endWaitOf: id => engine.endWait(id), unasked }),
        store.runs.get(root)!.state,
        (id, phase) => hasLines(engine.stateDir(engine.idOf(id)), phase),
      )
      const isLeft = daemon.openRuns.isInterrupted(root)
      return shownWhy(
        withStarter(found, startedBy(store.runs.get(runId)!)),
        isLeft ? root : null,
        isLeft && store.copies.isHeld(root),
      )
    }),
    answer(GetTree, ({ body, caller }) => {
      const root = rootOf(daemon.db, target(daemon, caller, body.run_id))
      const entries = treeEntries(daemon.db, root)
      return jsonStream(
        `{"ok":true,"data":{"root_run_id":${JSON.stringify(root)},"runs":[`,
        daemon.openRuns.isInterrupted(root) ? entries.map(shown) : entries,
        ']}}',
      )
    }),
    answer(GetHistory, ({ body, caller }) =>
      runHistory(store, target(daemon, caller, body.run_id), id => engine.bundle(id)),
    ),
    answer(GetTeam, ({ body, caller }) => {
      const { bundle_id, team_key } = store.runs.get(target(daemon, caller, body.run_id))!
      return teamAsRead(engine.bundle(bundle_id), team_key)
    }),
    answerMessage(
      GetPhases,
      () => daemon.instanceId,
      ({ body, caller }) => {
        const runId = target(daemon, caller, body.payload.run_id)
        const found = engine.phases(runId, body.payload.phase)
        return daemon.openRuns.isInterrupted(rootOf(daemon.db, runId)) ? shownPhases(found) : found
      },
    ),
    answer(GetLogs, async ({ body: { run_id, phase, after_seq: afterSeq, limit = 100, last }, caller }) => {
      const runId = target(daemon, caller, run_id)
      engine.logs.flush()
      const { lines, next } = await readLines(engine.stateDir(runId), {
        limit,
        last,
        ...(phase !== undefined && { phase }),
        ...(afterSeq !== undefined && { afterSeq }),
      })
      return { lines, next }
    }),
  ])
}

async function start(
  daemon: Daemon,
  body: Static<typeof StartRun.body>,
  caller: Caller,
  traceparent: string | undefined,
) {
  if (!caller.local && body.path !== undefined) {
    throw new CadreError('forbidden', 'a call from another machine must name a `team`, not a `path`')
  }
  if (!caller.local && body.run_id !== undefined) {
    throw new CadreError('forbidden', 'a call from another machine must not set the id of the run')
  }
  const { inputs, run_id: runId, unattended = false, idempotency_key: _, ...request } = body
  const given = { ...request, ...(inputs && { inputs }) }
  const origin = {
    local: caller.local,
    actor: caller.actor,
    unattended,
    startedBy: caller.startedBy,
    traceparent,
    ...(runId !== undefined && { runId }),
  }
  const once = onceOf(body)
  const { run_id, state, reason } = await (once === null
    ? startRun(daemon, given, origin)
    : daemon.startKeys.start(
        caller.actor,
        once,
        also => startRun(daemon, given, { ...origin, also }),
        async known => {
          await daemon.openRuns.continueTree(known)
          return daemon.engine.record(known)
        },
      ))
  return { run_id, state, reason }
}

/** The run that a call names. Throws unless it exists and the caller's credential is for it or for any run. */
export function target(daemon: Daemon, caller: Caller, runId: string): RunId {
  if (caller.runId !== null && !sameTree(daemon, caller.runId, runId)) {
    throw new CadreError('forbidden', `the credential is for run ${caller.runId} only`)
  }
  return daemon.engine.idOf(runId)
}

/** The path that a run was started from. The file that teams usually have is not named. */
function placeOf({ engine }: Daemon, runId: RunId): string | null {
  const row = engine.store.runs.get(runId)
  if (!row || row.from_path === 0 || row.parent_id !== null) return null
  const bundle = engine.bundle(row.bundle_id)
  const folder = bundle.folder(bundle.root)
  const file = basename(bundle.file(bundle.root).file)
  return folder === null || file === 'team.yml' ? folder : join(folder, file)
}

function sameTree(daemon: Daemon, one: string, other: string): boolean {
  const root = (id: string) => daemon.engine.store.runs.get(id)?.root_id
  return one === other || (root(one) !== undefined && root(one) === root(other))
}

/** People of a realm who may only read runs send nothing to other systems. */
function askAgain({ engine }: Daemon, caller: Caller, runId: string): ReturnType<typeof engine.askAgain> {
  if (!caller.local) throw new CadreError('forbidden', '`ask` needs a caller on the machine of the run')
  return engine.askAgain(runId)
}
