// Runs: the calls that start, continue and end them on a daemon, and what daemon and hub answer with equal records.

import type { RunId } from '../../files/run-id.ts'
import { closed, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { HERE, READ, READER, READER_OF_RUN } from '../access.ts'
import { call, TAKES_TRACE } from '../call.ts'
import { EnvironmentName } from '../names.ts'
import { listBody, listOf, longListOf, rowsOf } from '../page.ts'
import { AnyObject, AnyText, Name, NullableText, OutputsAgain, Path, Text, WrittenId } from '../parts.ts'
import { AnyTeam } from '../records/plans.ts'
import { ResumePlan } from '../records/resume-plan.ts'
import {
  History,
  LOG_STATE,
  LogLine,
  PhasesView,
  RunDetailView,
  RunRecord,
  RunView,
  TreeView,
  Why,
  Written,
} from '../records/run-records.ts'
import { StarterFilter } from '../records/started-by.ts'
import { RunStats, SINCE } from '../run-stats.ts'
import { DAEMON_RUN_STATES, RUN_STATES } from '../states.ts'
import { WHICH } from './teams.ts'

const UUID = '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'
const OneRun = closed({ run_id: WrittenId })

export const StartRun = call('/v1/runs/start', {
  summary: 'Start a run',
  daemon: { local: 'open', remote: 'execute' },
  body: closed({
    ...WHICH,
    inputs: Type.Optional(AnyObject),
    run_name: Type.Optional(nullable(Name)),
    workspace: Type.Optional(nullable(Path)),
    environment: Type.Optional(nullable(EnvironmentName)),
    // A caller on this machine may choose the id, so that it can repeat the call: the same id is started only once.
    run_id: Type.Optional(Type.Unsafe<RunId>(Type.String({ pattern: UUID, 'x-expected': 'a UUID' }))),
    idempotency_key: Type.Optional(Text(200, 1)),
    unattended: Type.Optional(
      Type.Boolean({
        description:
          'Nobody hears the answer: what was read and cannot begin is recorded as a failed run, `not_started`.',
      }),
    ),
  }),
  data: Type.Object({ run_id: AnyText, state: Type.Enum([...RUN_STATES]), reason: Type.Optional(NullableText) }),
  takes: TAKES_TRACE,
})
export const ListRuns = call('/v1/runs/list', {
  summary: 'Runs, newest first',
  daemon: READER,
  body: listBody({
    // A string for clients, which send what a person wrote: the daemon says which states there are.
    state: Type.Optional(Type.Unsafe<string>(Type.Enum([...DAEMON_RUN_STATES]))),
    team: Type.Optional(Name),
    /** Part of the id, the name, the team, the inputs or an error, in any case. */
    search: Type.Optional(Name),
    root_only: Type.Optional(Type.Boolean()),
    started_by: Type.Optional(StarterFilter),
    /** The beginning of an id. */
    begins: Type.Optional(WrittenId),
    /** Only runs that began then or later. */
    since: Type.Optional(Type.Integer({ minimum: 0 })),
    // With the first run of a list these two part it into what was there and what has come since.
    upto: Type.Optional(Type.Unsafe<string>({ ...WrittenId, description: 'The id of the newest run of the list.' })),
    newer_than: Type.Optional(
      Type.Unsafe<string>({ ...WrittenId, description: 'Only runs newer than the one of this id.' }),
    ),
  }),
  data: Type.Object({
    ...longListOf('runs', RunView).properties,
    /** Epoch milliseconds: a search may miss runs that changed later. */
    indexed_until: Type.Optional(Type.Integer()),
  }),
})
export const ListRunTeams = call('/v1/runs/teams', {
  summary: 'The names of all teams that top runs had, in the order of the alphabet',
  daemon: READER,
  body: listBody({}),
  data: listOf('teams', AnyText),
})
/** Only top runs count. A run counts from when somebody or something asked for it, so also before it began. */
export const GetRunStats = call('/v1/runs/stats', {
  summary: 'How many runs of a team completed and failed, day by day, and how long they took',
  daemon: READER,
  body: closed({ team: Name, since: SINCE }),
  data: RunStats,
})
export const GetRun = call('/v1/runs/get', {
  summary: 'One run',
  hub: { user: READ },
  daemon: READER_OF_RUN,
  body: OneRun,
  data: RunDetailView,
})
/** `cleanup`: names of `always` phases that continue. */
export const CancelRun = call('/v1/runs/cancel', {
  summary: 'Cancel a run and all below it',
  daemon: { local: 'open', remote: 'cancel', ofRun: true },
  body: OneRun,
  data: Type.Object({
    ...RunRecord.properties,
    state: Type.Enum([...DAEMON_RUN_STATES]),
    cleanup: Type.Array(AnyText),
  }),
})
/**
 * Returns what runs again, and what was already written and is not sent again. `continued` means that it was
 * interrupted. With `plan` it changes nothing, and returns what it would do.
 */
export const ResumeRun = call('/v1/runs/resume', {
  summary: 'Continue an interrupted run, or an ended one as a new attempt',
  daemon: { local: 'open', remote: 'execute', ofRun: true },
  body: closed({
    run_id: WrittenId,
    from_phase: Type.Optional(Name),
    failed: Type.Optional(Type.Boolean()),
    outputs: Type.Optional(OutputsAgain),
    inputs: Type.Optional(AnyObject),
    plan: Type.Optional(Type.Boolean()),
  }),
  data: Type.Union([
    ResumePlan,
    Type.Object({ repeats: Type.Array(AnyText), written: Type.Array(Written), continued: Type.Boolean() }),
  ]),
})
export const DeleteRun = call('/v1/runs/delete', {
  summary: 'Delete an ended run and all below it',
  daemon: HERE,
  body: OneRun,
  data: RunRecord,
})
/** `ask`: other systems are first asked about what is in doubt or not yet confirmed, which only a daemon can do. */
export const GetWhy = call('/v1/runs/why', {
  summary: 'Why a run ended as it did, or what it waits for',
  hub: { user: READ },
  daemon: READER_OF_RUN,
  body: closed({ run_id: WrittenId, ask: Type.Optional(Type.Boolean()) }),
  data: Why,
})
export const GetTree = call('/v1/runs/tree', {
  summary: 'The whole tree of a run',
  hub: { user: READ },
  daemon: READER_OF_RUN,
  body: OneRun,
  data: TreeView,
})
export const GetHistory = call('/v1/runs/history', {
  summary: 'Earlier attempts of a run, and what it wrote outside',
  daemon: READER_OF_RUN,
  body: OneRun,
  data: History,
})
export const GetTeam = call('/v1/runs/team', {
  summary: 'The team of a run, as it was read when the run began',
  daemon: HERE,
  body: OneRun,
  data: AnyTeam,
})
export const GetPhases = call('/v1/runs/phases', {
  summary: 'The phases of a run, in file order, or one of them whole',
  hub: { user: READ },
  daemon: READER_OF_RUN,
  envelope: 'run_phases',
  body: closed({ run_id: WrittenId, phase: Type.Optional(Text(300, 1)) }),
  data: PhasesView,
})
/** `next` is the `after_seq` of the next call. A hub also says whether it has all lines. */
export const GetLogs = call('/v1/runs/logs', {
  summary: 'Log lines of a run',
  hub: { user: READ },
  daemon: READER_OF_RUN,
  body: closed({
    run_id: WrittenId,
    phase: Type.Optional(Text(300)),
    after_seq: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
    last: Type.Optional(
      Type.Boolean({ description: 'The last lines, as many as `limit` says at most, instead of the first.' }),
    ),
  }),
  data: Type.Object({
    lines: rowsOf(LogLine),
    next: Type.Integer(),
    complete: Type.Optional(LOG_STATE.complete),
    missing: Type.Optional(LOG_STATE.missing),
    to_come: Type.Optional(LOG_STATE.to_come),
    cut: LOG_STATE.cut,
    kept: Type.Optional(LOG_STATE.kept),
  }),
})
/** Lines of JSON, each with log lines of one run. */
export const ReadLog = call('/v1/runs/log', {
  summary: 'All log lines of a run and of the runs below it, in the order of time',
  hub: { user: READ },
  daemon: READER_OF_RUN,
  query: closed({ run_id: WrittenId, below: Type.Optional(Type.Enum(['yes', 'no'])) }),
  media: 'application/x-ndjson',
})
/** Server-sent events: `EVENTS` of the records of runs. */
export const StreamRun = call('/v1/runs/stream', {
  summary: 'Events of a run and of all runs below it: run, phase, log, end',
  hub: { user: READ },
  daemon: READER_OF_RUN,
  query: OneRun,
  media: 'text/event-stream',
})
