// The rows of older copies of the database, and of the daemons and hubs that have to confirm what they know before a copy
// is trusted.

import { inArray } from 'drizzle-orm'
import type { Db, Store } from '../../../db/hub/store.ts'
import type { JobRow } from '../core/job-rows.ts'
import { missingNeeds } from '../queue/job-needs.ts'

export type CopyRow = Store['copies']['$inferSelect']
export type CopyKind = CopyRow['kind']
export type Confirmation = Store['confirmations']['$inferSelect']

export interface Copy extends CopyRow {
  /** By the id of the daemon or hub. Those of a copy that has ended are not read. */
  confirmations: ReadonlyMap<string, Confirmation>
}

export const concernsRealm = ({ realm_id }: Pick<CopyRow, 'realm_id'>, realm: string | null): boolean =>
  realm_id === null || realm_id === realm

/** Whether a daemon has neither sent everything that it has, nor been given up by a person. */
export const isAwaited = ({ reported_at, passed_at }: Confirmation): boolean =>
  reported_at === null && passed_at === null

export async function readCopies({ copies, confirmations }: Store, db: Db): Promise<Copy[]> {
  const rows = await db.select().from(copies)
  const open = rows.filter(({ ended_at }) => ended_at === null).map(({ id }) => id)
  const all = open.length === 0 ? [] : await db.select().from(confirmations).where(inArray(confirmations.copy_id, open))
  return rows.map(row => ({
    ...row,
    confirmations: new Map(all.filter(({ copy_id }) => copy_id === row.id).map(each => [each.id, each])),
  }))
}

/** The daemons that may have executed a job of the copy and have not reported yet. */
export function awaitedFor(copy: Copy, job: Pick<JobRow, 'realm_id' | 'daemon_id' | 'needs'>): Confirmation[] {
  return [...copy.confirmations.values()].filter(
    each =>
      each.kind === 'daemon' &&
      each.offer !== null &&
      isAwaited(each) &&
      each.realm_id === job.realm_id &&
      (job.daemon_id === null || job.daemon_id === each.id) &&
      missingNeeds(job.needs, each.offer).length === 0,
  )
}
