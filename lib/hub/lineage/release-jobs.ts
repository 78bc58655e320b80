// When the hub trusts an older copy of its database again, and which held jobs may be delivered before. A job is released
// when every daemon that could have executed it has sent what it has, or a person goes on without that daemon.

import { and, eq, isNull } from 'drizzle-orm'
import type { Db, Store } from '../../../db/hub/store.ts'
import { inState } from '../core/job-rows.ts'
import { awaitedFor, type Confirmation, type Copy, isAwaited, readCopies } from './copies.ts'
import { stopDeliveries } from './hold-jobs.ts'

/** Whether it is shown that a failover lost nothing: by all hubs that had written, or by all daemons that had called. */
function isWhole({ confirmations }: Copy): boolean {
  const all = [...confirmations.values()]
  const silent = (kind: Confirmation['kind']) =>
    all.some(each => each.kind === kind && each.compared_at === null && each.passed_at === null)
  return !silent('hub') || !silent('daemon')
}

/** The realms of which jobs were released, and the copies that are trusted now. */
export interface Release {
  released: string[]
  ended: Copy[]
}

/** Trusts the copies of which enough is known, and releases the jobs that no daemon can have executed any more. */
export async function releaseJobs(store: Store, clock: { now: () => number; lived: () => number }): Promise<Release> {
  const { copies, db, jobs } = store
  const [held] = await db.select({ id: jobs.id }).from(jobs).where(inState(store, 'held')).limit(1)
  const [open] = await db.select({ id: copies.id }).from(copies).where(isNull(copies.ended_at)).limit(1)
  if (!held && !open) return { released: [], ended: [] }
  return store.write(async tx => {
    const known = new Map((await readCopies(store, tx)).map(copy => [copy.id, copy]))
    const ended: Copy[] = []
    for (const copy of known.values()) {
      if (copy.ended_at !== null) continue
      if (copy.lost === null && isWhole(copy)) {
        copy.lost = false
        await resumeDeliveries(store, tx, clock.lived())
      } else if (copy.lost && copy.kind === 'failover') await stopDeliveries(store, tx, copy)
      if (copy.lost === false || (copy.lost && isComplete(copy))) {
        copy.ended_at = clock.now()
        await tx.update(copies).set({ ended_at: copy.ended_at, lost: copy.lost }).where(eq(copies.id, copy.id))
        ended.push(copy)
      }
    }
    const { copy_id, realm_id, daemon_id, needs_key, needs } = jobs
    const groups = await tx
      .selectDistinct({ copy_id, realm_id, daemon_id, needs_key, needs })
      .from(jobs)
      .where(inState(store, 'held'))
    const released = new Set<string>()
    for (const group of groups) {
      const copy = group.copy_id === null ? undefined : known.get(group.copy_id)
      if (copy && copy.ended_at === null && awaitedFor(copy, group).length > 0) continue
      const those = and(
        inState(store, 'held'),
        eq(realm_id, group.realm_id),
        group.copy_id === null ? isNull(copy_id) : eq(copy_id, group.copy_id),
        group.daemon_id === null ? isNull(daemon_id) : eq(daemon_id, group.daemon_id),
        eq(needs_key, group.needs_key),
      )
      await tx.update(jobs).set({ state: 'waiting', leased_to: null, lease_id: null, lease_until: null }).where(those)
      released.add(group.realm_id)
    }
    return { released: [...released], ended }
  })
}

const isComplete = ({ confirmations }: Copy): boolean =>
  [...confirmations.values()].every(each => each.kind === 'hub' || !isAwaited(each))

async function resumeDeliveries({ webhookDeliveries: deliveries }: Store, tx: Db, now: number): Promise<void> {
  const paused = and(eq(deliveries.state, 'waiting'), isNull(deliveries.next_at))
  await tx.update(deliveries).set({ next_at: now }).where(paused)
}
