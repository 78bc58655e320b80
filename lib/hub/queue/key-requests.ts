// The concurrency keys of runs that are dispatched or resumed: what a run asks for, and what becomes of it when its key
// is held.

import { eq } from 'drizzle-orm'
import type { Db } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { Recent } from '../../recent.ts'
import { type HeldKey, inputsFor, keyFrom } from '../../team/team.ts'
import { skippedFor } from '../../wire/concurrency.ts'
import type { Hub } from '../core/hub.ts'
import type { JobRow } from '../core/job-rows.ts'
import type { PackageRow } from '../packages/packages.ts'
import { runWithLargeValues } from '../reports/large-values.ts'
import type { ReportedRun } from '../reports/runs.ts'
import { cancelOldestRuns } from './cancel-orders.ts'
import { holdersOfKey, type KeyRow, type RequestedKey, requestKey } from './concurrency-keys.ts'
import { skipQueuedRun } from './run-ends.ts'

const keys = new Recent<string, HeldKey>(1_000)

/** The key of a run with these inputs. Throws `invalid_request` when they give none. */
export function concurrencyKeyOf(
  { concurrency, inputs: fields }: PackageRow,
  given: JsonObject,
  environment: string | null,
): RequestedKey | null {
  if (!concurrency) return null
  const open = fields.filter(field => !field.secret)
  const names = fields.map(({ name }) => name)
  const id = JSON.stringify([concurrency, names])
  const { of, limit, whenFull } = keys.get(id) ?? keys.set(id, keyFrom(concurrency, names))
  return { text: of(inputsFor(open, given).values, environment), limit, whenFull }
}

/** Lets the run of a blocked job wait for its key, or what its team says instead. */
export async function requestKeyForJob(
  hub: Hub,
  tx: Db,
  job: JobRow,
  key: RequestedKey,
): Promise<{ job: JobRow; state: string }> {
  const { jobs, runs } = hub.store
  const keyRow = await requestKey(hub, tx, job, key)
  if (keyRow.state === 'waits') {
    if (key.whenFull === 'skip')
      await skipQueuedRun(hub, tx, job, skippedFor(key.text, await firstHolder(hub, tx, keyRow)))
    if (key.whenFull === 'cancel_oldest') await cancelOldestRuns(hub, tx, keyRow, job.created_by)
  }
  const [after] = await tx
    .select({ job: jobs, state: runs.state })
    .from(jobs)
    .innerJoin(runs, eq(runs.run_id, jobs.run_id))
    .where(eq(jobs.id, job.id))
  return after!
}

/** The run that holds the key, or that came first. */
async function firstHolder(hub: Hub, tx: Db, keyRow: KeyRow): Promise<string> {
  const [first] = await holdersOfKey(hub, tx, keyRow)
  return first ?? keyRow.run_id
}

/** Puts a resumed run behind the runs that wait for its key. */
export async function requestKeyAgain(
  hub: Hub,
  tx: Db,
  row: ReportedRun,
  found: PackageRow | null,
  job: JobRow,
): Promise<void> {
  const key = found && concurrencyKeyOf(found, (await runWithLargeValues(hub.store, tx, row)).inputs, row.environment)
  if (!key) throw new CadreError('conflict', `${row.team} is not published any more; dispatch another version of it`)
  const keyRow = await requestKey(hub, tx, row, key)
  if (keyRow.state !== 'waits') return
  if (key.whenFull === 'skip') {
    const { message } = skippedFor(key.text, await firstHolder(hub, tx, keyRow)).error
    throw new CadreError('conflict', `${message}: resume it when that run has ended`)
  }
  if (key.whenFull === 'cancel_oldest') await cancelOldestRuns(hub, tx, keyRow, job.created_by)
}
