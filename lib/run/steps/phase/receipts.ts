// Receipts and deliveries change outside of steps, because they are written while something is sent. These facts note the
// changes for the hub.

import type { Change } from '../state/notes.ts'
import type { EngineState } from '../state/state.ts'

/** Notes that a receipt changed. The run may have ended: an attempt that ignored its signal may still write. */
export function receiptChanged(engine: EngineState, runId: string, position: number, entry: string): void {
  note(engine, runId, { position, kind: 'receipt', entry })
}

/** Notes that a listener's delivery has come to an end. */
export function deliveryChanged(engine: EngineState, runId: string): void {
  note(engine, runId, { position: null, kind: 'delivery' })
}

function note(engine: EngineState, runId: string, change: Omit<Change, 'run' | 'team'>): void {
  const row = engine.store.runs.get(runId)
  if (row?.synced !== 1) return
  engine.notes.add({ run: row, team: engine.world.bundle(row.bundle_id).team(row.team_key), ...change })
}

/** Marks entries and deliveries that the previous process may have sent as `unknown`. Its requests ended by `now`. */
export function doubtSent(engine: EngineState, now: { boot: string; at: number }): void {
  for (const { run_id, position, entry } of engine.store.receipts.loseAll(now)) {
    receiptChanged(engine, run_id, position, entry)
  }
  for (const { run_id } of engine.store.deliveries.doubtAll()) deliveryChanged(engine, run_id)
}
