// Runs and their reviews, as far as a hub has other calls than a daemon. runs.ts has what both answer.

import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { READ, READ_RUNS, WRITE } from '../access.ts'
import { atHub, call } from '../call.ts'
import { listOf, longListOf } from '../page.ts'
import { Text, Uuid } from '../parts.ts'
import { Artifact, ORDER_FATE, Review, Run, withMore } from '../records/hub-records.ts'
import { HUB_RUN_STATES } from '../states.ts'
import { CHANGED } from '../team-history.ts'
import { DecideReview, ListReviews } from './reviews.ts'
import { GetRunStats, ListRuns, ListRunTeams } from './runs.ts'
import { GetTeamHistory } from './teams.ts'

/** Few runs have more files, and all of them fit into a reply. */
export const MOST_FILES = 10_000

export const ListHubRuns = atHub(ListRuns, {
  hub: { user: READ },
  body: closed({
    ...ListRuns.body.properties,
    realm_id: Type.Optional(Uuid),
    team: Type.Optional(Text(200)),
    search: Type.Optional(Text(200)),
    state: Type.Optional(Type.Unsafe<string>(Type.Enum([...HUB_RUN_STATES]))),
  }),
  data: longListOf('runs', Run),
})
export const ListHubRunTeams = atHub(ListRunTeams, {
  hub: { user: READ },
  body: closed({ ...ListRunTeams.body.properties, realm_id: Type.Optional(Uuid) }),
  data: ListRunTeams.data,
})
export const GetHubRunStats = atHub(GetRunStats, {
  hub: { user: READ_RUNS },
  body: closed({ ...GetRunStats.body.properties, realm_id: Type.Optional(Uuid), team: Text(200, 1) }),
  data: GetRunStats.data,
})
export const GetHubTeamHistory = atHub(GetTeamHistory, {
  hub: { user: READ_RUNS },
  body: closed({
    ...GetTeamHistory.body.properties,
    realm_id: Type.Optional(Uuid),
    team: Text(200, 1),
  }),
  data: longListOf('runs', withMore(Run, CHANGED)),
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
export const ListHubReviews = atHub(ListReviews, {
  hub: { user: READ },
  body: closed({ ...ListReviews.body.properties, realm_id: Type.Optional(Uuid) }),
  data: listOf('reviews', Review),
})
export const DecideHubReview = atHub(DecideReview, {
  hub: { user: WRITE },
  data: withMore(Review, { job_id: Type.String(), ...ORDER_FATE }),
})
