// `queue`: the jobs of a realm that no daemon has accepted yet, and what each waits for.

import { CancelDispatched, ListQueue } from '../../../wire/hub-run-calls.ts'
import { hubCallee } from '../../calls/hub-answers.ts'
import { runIdAt } from '../../calls/ids.ts'
import { homeFolder } from '../../home.ts'
import { hubOf } from '../hub-client.ts'
import { realmIdOf } from './names.ts'
import { done, list, type Options, type PageOptions, pageOf, relative } from './output.ts'

export async function listQueue(options: PageOptions & { realm?: string }): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const realm_id = await realmIdOf(client, options.realm)
  const found = await client.call(ListQueue, { realm_id, ...pageOf(options) })
  list(options, found, found.jobs, ({ team, kind, state, run_id, waiting_for, created_at, expires_at }, paint) => [
    paint.bold(kind === 'run' ? (team ?? '') : kind),
    waiting_for === null ? state : `${state === 'blocked' ? 'blocked: ' : ''}waits for ${waiting_for}`,
    `${relative(created_at)}${expires_at === null ? '' : `, given up ${relative(expires_at)}`}`,
    paint.dim(run_id),
  ])
}

/** Cancels a run that waits. One that a daemon has already is cancelled there. */
export async function cancelQueued(typed: string, options: Options): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const callee = hubCallee(client)
  const run_id = await runIdAt(work => work(callee), `at ${client.url}`, typed)
  const ordered = await client.call(CancelDispatched, { run_id })
  const said = ordered.state === 'cancelled' ? 'cancelled' : 'its daemon gets the order to cancel it'
  done(options, ordered, `run ${run_id}: ${said}`)
}
