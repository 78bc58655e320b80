// The claim of a daemon in one transaction, for tests that look at the queue and not at the poll around it.

import type { Db, Store } from '../../db/hub/store.ts'
import { type ClaimingDaemon, claimableJobs, claimJobs } from '../../lib/hub/queue/claims.ts'

export async function claim(store: Store, tx: Db, taker: ClaimingDaemon, slots: number, now: number) {
  const found = await claimableJobs(store, tx, taker, slots, now)
  return found ? claimJobs(store, tx, taker, slots, found, now, taker) : []
}
