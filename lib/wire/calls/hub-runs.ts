// Runs, as a hub has them from the reports of daemons.

import type { Static } from 'typebox'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { listBody, listOf, rowsOf } from '../page.ts'
import { AnyText, Text, Uuid } from '../parts.ts'
import { Artifact, Line, LOG_STATE, Phase, Run, TreeEntry, WholeRun, withMore } from '../records/hub-records.ts'
import { HUB_RUN_STATES } from '../states.ts'

/** Who may read runs and what belongs to them. */
export const READ = { grant: { runs: 'read', dispatch: 'read' }, realm: 'member' } as const
/** Few runs have more files, and all of them fit into a reply. */
export const MOST_FILES = 10_000

export type HubRun = Static<typeof Run>
export type HubPhase = Static<typeof Phase>

const OneRun = closed({ run_id: Uuid })

export const ListHubRuns = call('/v1/runs/list', {
  summary: 'List runs, newest first',
  hub: { user: READ },
  body: listBody({
    realm_id: Type.Optional(Uuid),
    // A string for clients, which send what a person wrote: the hub says which states there are.
    state: Type.Optional(Type.Unsafe<string>(Type.Enum([...HUB_RUN_STATES]))),
    team: Type.Optional(Text(200)),
    root_only: Type.Optional(Type.Boolean()),
    search: Type.Optional(Text(200)),
  }),
  data: listOf('runs', Run),
})
export const GetHubRun = call('/v1/runs/get', {
  summary: 'Get a run',
  hub: { user: READ },
  body: OneRun,
  data: WholeRun,
})
export const GetHubTree = call('/v1/runs/tree', {
  summary: 'Get the whole tree of a run',
  hub: { user: READ },
  body: OneRun,
  data: Type.Object({ root_run_id: Type.String(), runs: rowsOf(TreeEntry) }),
})
export const GetHubPhases = call('/v1/runs/phases', {
  summary: 'List the phases of a run, in the order of its team.yml, or get one of them whole',
  hub: { user: READ },
  body: closed({ run_id: Uuid, phase: Type.Optional(Text(300, 1)) }),
  data: withMore(Type.Pick(Run, ['run_id', 'state']), { phases: rowsOf(Phase) }),
})
export const GetHubLogs = call('/v1/runs/logs', {
  summary: 'Read log lines of a run, and whether they are all; `next` is the `after_seq` of the next call',
  hub: { user: READ },
  body: closed({
    run_id: Uuid,
    phase: Type.Optional(Text(300)),
    after_seq: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
  }),
  data: Type.Object({ lines: rowsOf(Line), next: Type.Integer(), ...LOG_STATE }),
})
export const ListHubArtifacts = call('/v1/runs/artifacts', {
  summary: 'List the files that a run wrote; those that are stored can be had by artifacts/get',
  hub: { user: READ },
  body: closed({
    run_id: Uuid,
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MOST_FILES })),
  }),
  data: listOf('artifacts', Artifact),
})
export const ReadHubLog = call('/v1/runs/log', {
  summary: 'All log lines of a run and of the runs below it, in the order of time',
  hub: { user: READ },
  query: closed({ run_id: Uuid, below: Type.Optional(Type.Enum(['yes', 'no'])) }),
  media: 'application/x-ndjson',
})
export const StreamHubRun = call('/v1/runs/stream', {
  summary: 'Stream the events of a run and all runs below it: run, phase, log, end',
  hub: { user: READ },
  query: OneRun,
  media: 'text/event-stream',
})

const { data: _, sub_runs: __, sub_runs_more: ___, ...BARE_PHASE } = Phase.properties
/** The events of `StreamHubRun`, and of each the data that is read. `end` is the last one. */
export const HUB_EVENTS = {
  run: Run,
  phase: Type.Object({ ...BARE_PHASE, text: AnyText, run_id: AnyText, position: Type.Integer() }),
  end: Run,
} as const
