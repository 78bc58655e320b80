// runs/*: start, cancel, resume and delete runs, and read everything that is recorded about them.

import { Elysia } from 'elysia'
import type { Static } from 'typebox'
import { CadreError } from '../../error.ts'
import type { RunId as KnownRunId } from '../../files/run-id.ts'
import { envelopeFrame } from '../../http/reply.ts'
import { jsonStream } from '../../http/stream.ts'
import type { JsonObject } from '../../json.ts'
import {
  listRuns,
  readLines,
  rootOf,
  runDetail,
  runHistory,
  treeEntries,
  why,
  withoutSilent,
} from '../../run/engine.ts'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import {
  CancelRun,
  DeleteRun,
  GetHistory,
  GetLogs,
  GetPhases,
  GetRun,
  GetTeam,
  GetTree,
  GetWhy,
  ListRuns,
  ResumeRun,
  StartRun,
} from '../../wire/calls/daemon-calls.ts'
import { TOLD_RUN_STATES } from '../../wire/states.ts'
import type { Caller } from '../access/access.ts'
import type { DaemonKit } from '../access/kit.ts'
import { cancelRun, resumeRun } from '../runs/cancel-resume.ts'
import type { Daemon } from '../runs/daemon.ts'
import { shown, shownPhases, shownWhy, toldFilter } from '../runs/interrupted.ts'
import { teamAsRead } from '../runs/plan.ts'
import { deleteTree } from '../runs/retention.ts'
import { startRun } from '../runs/start-run.ts'
import { envelope, Name, PAGE, page, RunId } from './bodies.ts'

const UUID = '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'
const Start = closed({
  team: Type.Optional(Name),
  path: Type.Optional(Type.String({ minLength: 1, maxLength: 4_096 })),
  inputs: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  run_name: Type.Optional(Type.Union([Name, Type.Null()])),
  workspace: Type.Optional(Type.Union([Type.String({ minLength: 1, maxLength: 4_096 }), Type.Null()])),
  // A caller on this machine may choose the id, so that it can repeat the call: the same id is started only once.
  run_id: Type.Optional(Type.Unsafe<KnownRunId>(Type.String({ pattern: UUID, 'x-expected': 'a UUID' }))),
})
const List = closed({
  ...PAGE,
  state: Type.Optional(Type.Enum([...TOLD_RUN_STATES])),
  team: Type.Optional(Name),
  /** Part of the name, the team or the id. */
  search: Type.Optional(Name),
  root_only: Type.Optional(Type.Boolean()),
  begins: Type.Optional(RunId),
  since: Type.Optional(Type.Integer({ minimum: 0 })),
})
const OneRun = closed({ run_id: RunId })
/** `ask`: other systems are first asked about what is in doubt or not yet confirmed. */
const Why = closed({ run_id: RunId, ask: Type.Optional(Type.Boolean()) })
const Resume = closed({
  run_id: RunId,
  from_phase: Type.Optional(Name),
  failed: Type.Optional(Type.Boolean()),
  inputs: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
})
const Logs = closed({
  run_id: RunId,
  phase: Type.Optional(Name),
  after_seq: Type.Optional(Type.Integer({ minimum: 0 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
})

/** Who may read runs, and so on. A call about a run also calls `target`. */
const READ = { local: 'open', remote: 'access', ofRun: true } as const
const HERE = { local: 'open', remote: null } as const

export function runs(daemon: Daemon, kit: DaemonKit) {
  const { engine } = daemon
  const { store } = engine
  return new Elysia({ name: 'runs', prefix: '/v1/runs' })
    .use(kit)
    .post('/start', ({ body, caller }) => start(daemon, body, caller), {
      access: { local: 'open', remote: 'execute' },
      body: Start,
      data: StartRun.data,
      detail: { summary: 'Start a run' },
    })
    .post(
      '/list',
      ({ body }) => {
        const filter = { ...body, ...page(body) }
        const { runs, total } = listRuns(store, toldFilter(filter, [...daemon.left]))
        return { runs: runs.map(run => (daemon.left.has(run.root_run_id) ? shown(run) : run)), total }
      },
      {
        access: { local: 'open', remote: 'access' },
        body: List,
        data: ListRuns.data,
        detail: { summary: 'Runs, newest first' },
      },
    )
    .post(
      '/get',
      ({ body, caller }) => {
        const run = runDetail(store, target(daemon, caller, body.run_id))
        return daemon.left.has(run.root_run_id) ? shown(run) : run
      },
      { access: READ, body: OneRun, data: GetRun.data, detail: { summary: 'One run' } },
    )
    .post('/cancel', ({ body, caller }) => cancelRun(daemon, target(daemon, caller, body.run_id), caller.actor), {
      access: { local: 'open', remote: 'cancel', ofRun: true },
      body: OneRun,
      data: CancelRun.data,
      detail: { summary: 'Cancel a run and all below it' },
    })
    .post(
      '/resume',
      ({ body, caller }) => {
        const { run_id, from_phase: from = null, failed = false, inputs } = body
        if (inputs && !caller.local) {
          throw new CadreError('forbidden', 'secret inputs are only accepted on the daemon’s own machine')
        }
        const request = { actor: caller.actor, from, failed, ...(inputs && { inputs: inputs as JsonObject }) }
        return resumeRun(daemon, target(daemon, caller, run_id), request)
      },
      {
        access: { local: 'open', remote: 'execute', ofRun: true },
        body: Resume,
        data: ResumeRun.data,
        detail: { summary: 'Continue an interrupted run, or an ended one as a new attempt' },
      },
    )
    .post(
      '/delete',
      async ({ body, caller }) => {
        const record = engine.record(target(daemon, caller, body.run_id))
        const entry = { actor: caller.actor, action: 'runs/delete', target: record.run_id }
        await deleteTree(daemon.engine, record.run_id, () => daemon.audit.write(entry))
        return record
      },
      { access: HERE, body: OneRun, data: DeleteRun.data, detail: { summary: 'Delete an ended run and all below it' } },
    )
    .post(
      '/why',
      async ({ body, caller }) => {
        const runId = target(daemon, caller, body.run_id)
        const unasked = body.ask ? await askAgain(daemon, caller, runId) : null
        engine.logs.flush()
        const waitsOf = (id: string) => engine.phases(id).phases.map(({ waiting }) => waiting)
        const found = await withoutSilent(
          why(store, runId, id => engine.bundle(id), waitsOf, unasked),
          ({ run_id, ...query }) => readLines(engine.stateDir(engine.idOf(run_id)), query),
        )
        const root = rootOf(daemon.db, runId)
        const isLeft = daemon.left.has(root)
        return shownWhy(found, isLeft ? root : null, isLeft && store.copies.isHeld(root))
      },
      { access: READ, body: Why, data: GetWhy.data, detail: { summary: 'Why a run ended as it did' } },
    )
    .post(
      '/tree',
      ({ body, caller }) => {
        const root = rootOf(daemon.db, target(daemon, caller, body.run_id))
        const entries = treeEntries(daemon.db, root)
        return jsonStream(
          `{"ok":true,"data":{"root_run_id":${JSON.stringify(root)},"runs":[`,
          daemon.left.has(root) ? entries.map(shown) : entries,
          ']}}',
        )
      },
      { access: READ, body: OneRun, data: GetTree.data, detail: { summary: 'The whole tree of a run' } },
    )
    .post(
      '/history',
      ({ body, caller }) => runHistory(store, target(daemon, caller, body.run_id), id => engine.bundle(id)),
      {
        access: READ,
        body: OneRun,
        data: GetHistory.data,
        detail: { summary: 'Earlier attempts of a run, and what it wrote outside' },
      },
    )
    .post(
      '/team',
      ({ body, caller }) => {
        const { bundle_id, team_key } = store.runs.get(target(daemon, caller, body.run_id))!
        return teamAsRead(engine.bundle(bundle_id), team_key)
      },
      {
        access: HERE,
        body: OneRun,
        data: GetTeam.data,
        detail: { summary: 'The team of a run, as it was read when the run began' },
      },
    )
    .post(
      '/phases',
      ({ body, caller }) => {
        const runId = target(daemon, caller, body.payload.run_id)
        const found = engine.phases(runId, body.payload.phase)
        return daemon.left.has(rootOf(daemon.db, runId)) ? shownPhases(found) : found
      },
      {
        access: READ,
        body: envelope('run_phases', closed({ run_id: RunId, phase: Type.Optional(Name) })),
        frame: envelopeFrame(() => daemon.instanceId),
        data: GetPhases.data,
        detail: { summary: 'The phases of a run, in file order, or one of them whole' },
      },
    )
    .post(
      '/logs',
      async ({ body: { run_id, phase, after_seq: afterSeq, limit = 100 }, caller }) => {
        const runId = target(daemon, caller, run_id)
        engine.logs.flush()
        const { lines, next } = await readLines(engine.stateDir(runId), {
          limit,
          ...(phase !== undefined && { phase }),
          ...(afterSeq !== undefined && { afterSeq }),
        })
        return { lines, next }
      },
      { access: READ, body: Logs, data: GetLogs.data, detail: { summary: 'Log lines of a run' } },
    )
}

async function start(daemon: Daemon, body: Static<typeof Start>, caller: Caller) {
  if (!caller.local && body.path !== undefined) {
    throw new CadreError('forbidden', 'a call from another machine must name a `team`, not a `path`')
  }
  if (!caller.local && body.run_id !== undefined) {
    throw new CadreError('forbidden', 'a call from another machine must not set the id of the run')
  }
  const { inputs, run_id: runId, ...request } = body
  const given = { ...request, ...(inputs && { inputs: inputs as JsonObject }) }
  const { run_id, state } = await startRun(daemon, given, {
    local: caller.local,
    actor: caller.actor,
    ...(runId !== undefined && { runId }),
  })
  return { run_id, state }
}

/** The run that a call names. Throws unless it exists and the caller's credential is for it or for any run. */
export function target(daemon: Daemon, caller: Caller, runId: string): KnownRunId {
  if (caller.runId !== null && !sameTree(daemon, caller.runId, runId)) {
    throw new CadreError('forbidden', `the credential is for run ${caller.runId} only`)
  }
  return daemon.engine.idOf(runId)
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
