// Receipts change outside of steps, because the ledger writes them while an attempt sends. These facts note the changes
// for the hub.

import type { Work } from './state.ts'

/** Notes that a receipt changed. The run may have ended: an attempt that ignored its signal may still write. */
export function receiptChanged(work: Work, runId: string, position: number, entry: string): void {
  const row = work.store.runs.get(runId)
  if (row?.synced !== 1) return
  const team = work.world.bundle(row.bundle_id).team(row.team_key)
  work.notes.add({ run: row, team, position, kind: 'receipt', entry })
}

/** Marks entries and deliveries that the previous process may have sent as `unknown`. Its requests ended by `now`. */
export function doubtSent(work: Work, now: { boot: string; at: number }): void {
  for (const { run_id, position, entry } of work.store.receipts.loseAll(now)) {
    receiptChanged(work, run_id, position, entry)
  }
  work.store.deliveries.doubtAll()
}
