// Receipts change outside of steps, because the ledger writes them while an attempt sends. These facts note the changes
// for the hub.

import type { EngineState } from '../state/state.ts'

/** Notes that a receipt changed. The run may have ended: an attempt that ignored its signal may still write. */
export function receiptChanged(engine: EngineState, runId: string, position: number, entry: string): void {
  const row = engine.store.runs.get(runId)
  if (row?.synced !== 1) return
  const team = engine.world.bundle(row.bundle_id).team(row.team_key)
  engine.notes.add({ run: row, team, position, kind: 'receipt', entry })
}

/** Marks entries and deliveries that the previous process may have sent as `unknown`. Its requests ended by `now`. */
export function doubtSent(engine: EngineState, now: { boot: string; at: number }): void {
  for (const { run_id, position, entry } of engine.store.receipts.loseAll(now)) {
    receiptChanged(engine, run_id, position, entry)
  }
  engine.store.deliveries.doubtAll()
}
