// Receipts and deliveries change outside of steps, because they are written while something is sent. These facts note the
// changes for the hub.

import type { Team } from '../../../team/team.ts'
import type { RunRow } from '../../core/core.ts'
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
  const team = teamOf(engine, row)
  if (team) engine.notes.add({ run: row, team, ...change })
}

/** The team of a run; null where its bundle cannot be read, which must not keep other runs from going on. */
function teamOf({ world }: EngineState, { bundle_id, team_key }: RunRow): Team | null {
  try {
    return world.bundle(bundle_id).team(team_key)
  } catch {
    return null
  }
}

/** Marks entries and deliveries that the previous process may have sent as `unknown`. Its requests ended by `now`. */
export function doubtSent(engine: EngineState, now: { boot: string; at: number }): void {
  for (const { run_id, position, entry } of engine.store.receipts.loseAll(now)) {
    receiptChanged(engine, run_id, position, entry)
  }
  for (const { run_id } of engine.store.deliveries.doubtAll()) deliveryChanged(engine, run_id)
}
