// What the job of a run says of it: the labels that its dispatch asked for, and what the run waits for before it begins.

import { eq } from 'drizzle-orm'
import type { Hub } from '../core/hub.ts'
import type { JobRow } from '../core/job-rows.ts'
import { findPackage } from '../packages/packages.ts'
import type { ReportedRun } from '../reports/runs.ts'
import { describeWait } from './waiting-reasons.ts'

/** What a job waits for, in words that follow "waits for". */
export const turnOfJob = async (hub: Hub, job: JobRow): Promise<string> =>
  (await describeWait(hub, job)) ?? (job.state === 'leased' ? 'its daemon to accept it' : 'a daemon to take it')

/** Nothing of a run without a job, such as a sub-run, and of one whose job was cleared away. */
export async function askedOf(
  hub: Hub,
  { row, state }: { row: ReportedRun; state: string },
): Promise<{ labels?: Record<string, string>; waiting_for?: string }> {
  const { jobs, db } = hub.store
  if (row.job_id === null) return {}
  const [job] = await db.select().from(jobs).where(eq(jobs.id, row.job_id))
  if (!job) return {}
  return {
    labels: await labelsAsked(hub, row, job.needs?.labels ?? {}),
    ...(state === 'queued' && { waiting_for: await turnOfJob(hub, job) }),
  }
}

/** Without the labels that the team itself asks for. */
async function labelsAsked(
  { store }: Hub,
  { team, version }: ReportedRun,
  all: Record<string, string>,
): Promise<Record<string, string>> {
  if (Object.keys(all).length === 0) return all
  const own = (await findPackage(store, store.db, `${team}@${version}`))?.needs?.labels ?? {}
  return Object.fromEntries(Object.entries(all).filter(([name, value]) => own[name] !== value))
}
