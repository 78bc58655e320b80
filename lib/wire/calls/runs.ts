// Runs: what starts, continues and ends them on a daemon, and what daemon and hub tell about them in the same records.

import type { RunId } from '../../files/run-id.ts'
import { closed, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { HERE, READ, READER, READER_OF_RUN } from '../access.ts'
import { call } from '../call.ts'
import { listBody, listOf, rowsOf } from '../page.ts'
import { AnyObject, AnyText, Name, Path, Text, WrittenId } from '../parts.ts'
import { AnyTeam } from '../records/plans.ts'
import {
  History,
  LOG_STATE,
  LogLine,
  RunRecord,
  ToldDetail,
  ToldPhases,
  ToldRun,
  ToldTree,
  Why,
  Written,
} from '../records/run-records.ts'
import { RUN_STATES, TOLD_RUN_STATES } from '../states.ts'
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
    // A caller on this machine may choose the id, so that it can repeat the call: the same id is started only once.
    run_id: Type.Optional(Type.Unsafe<RunId>(Type.String({ pattern: UUID, 'x-expected': 'a UUID' }))),
  }),
  data: Type.Object({ run_id: AnyText, state: Type.Enum([...RUN_STATES]) }),
})
export const ListRuns = call('/v1/runs/list', {
  summary: 'Runs, newest first',
  daemon: READER,
  body: listBody({
    // A string for clients, which send what a person wrote: the daemon says which states there are.
    state: Type.Optional(Type.Unsafe<string>(Type.Enum([...TOLD_RUN_STATES]))),
    team: Type.Optional(Name),
    /** Part of the name, the team or the id. */
    search: Type.Optional(Name),
    root_only: Type.Optional(Type.Boolean()),
    /** The beginning of an id. */
    begins: Type.Optional(WrittenId),
    /** Only runs that began then or later. */
    since: Type.Optional(Type.Integer({ minimum: 0 })),
  }),
  data: listOf('runs', ToldRun),
})
export const GetRun = call('/v1/runs/get', {
  summary: 'One run',
  hub: { user: READ },
  daemon: READER_OF_RUN,
  body: OneRun,
  data: ToldDetail,
})
/** `cleanup`: names of `always` phases that continue. */
export const CancelRun = call('/v1/runs/cancel', {
  summary: 'Cancel a run and all below it',
  daemon: { local: 'open', remote: 'cancel', ofRun: true },
  body: OneRun,
  data: Type.Object({
    ...RunRecord.properties,
    state: Type.Enum([...TOLD_RUN_STATES]),
    cleanup: Type.Array(AnyText),
  }),
})
/**
 * Returns what runs again, and what was already written and is not sent again. `continued` means that it was
 * interrupted.
 */
export const ResumeRun = call('/v1/runs/resume', {
  summary: 'Continue an interrupted run, or an ended one as a new attempt',
  daemon: { local: 'open', remote: 'execute', ofRun: true },
  body: closed({
    run_id: WrittenId,
    from_phase: Type.Optional(Name),
    failed: Type.Optional(Type.Boolean()),
    inputs: Type.Optional(AnyObject),
  }),
  data: Type.Object({ repeats: Type.Array(AnyText), written: Type.Array(Written), continued: Type.Boolean() }),
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
  data: ToldTree,
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
  data: ToldPhases,
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
