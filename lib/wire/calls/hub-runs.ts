// Runs, as far as a hub has other calls than a daemon. runs.ts has what both answer.

import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { listBody, listOf } from '../page.ts'
import { Text, Uuid, WrittenId } from '../parts.ts'
import { Artifact, Run } from '../records/hub-records.ts'
import { HUB_RUN_STATES } from '../states.ts'

/** Who may read runs and what belongs to them. */
export const READ = { grant: { runs: 'read', dispatch: 'read' }, realm: 'member' } as const
/** Few runs have more files, and all of them fit into a reply. */
export const MOST_FILES = 10_000

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
    /** The beginning of an id. */
    begins: Type.Optional(WrittenId),
    /** Only runs that began then or later. */
    since: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  }),
  data: listOf('runs', Run),
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
