// `queue`: the jobs of a realm that no daemon has accepted yet, and what each waits for.

import { CancelDispatched, ListQueue } from '../../../wire/calls/dispatch.ts'
import { runIdAt } from '../backend/typed-ids.ts'
import type { Entry } from '../kit/command-table.ts'
import { realmIdOf } from '../kit/names.ts'
import { inRealm } from './entry.ts'
import { changing, listing } from './forms.ts'
import { relative } from './output.ts'

export const ENTRIES: readonly Entry[] = [
  listing('list', 'list the runs of a realm that wait, and for what', '--realm prod', {
    options: [inRealm],
    call: ListQueue,
    where: async (hub, { realm }) => ({ realm_id: await realmIdOf(hub, realm) }),
    rows: 'jobs',
    row: ({ team, kind, state, run_id, waiting_for, created_at, expires_at }, paint) => [
      paint.bold(kind === 'run' ? (team ?? '') : kind),
      waiting_for === null ? state : `${state === 'blocked' ? 'blocked: ' : ''}waits for ${waiting_for}`,
      `${relative(created_at)}${expires_at === null ? '' : `, given up ${relative(expires_at)}`}`,
      paint.dim(run_id),
    ],
  }),
  // One that a daemon has already is cancelled there.
  changing('cancel <run>', 'cancel a run that waits, by its id, the beginning of it, or last', '01a1fd72', {
    find: (hub, run) => runIdAt(work => work(hub), `at ${hub.url}`, run),
    call: (hub, run_id) => hub.call(CancelDispatched, { run_id }),
    confirmation: (run_id, { state }) =>
      `run ${run_id}: ${state === 'cancelled' ? 'cancelled' : 'its daemon gets the order to cancel it'}`,
  }),
]
