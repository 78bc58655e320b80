// Receipts change outside of steps: the ledger writes them while an attempt sends. These facts tell the hub of it.

import type { Machine } from './machine.ts'

/** Notes that a receipt changed. The run may have ended: an attempt that ignored its signal may still write. */
export function receiptChanged(machine: Machine, runId: string, position: number, entry: string): void {
  const row = machine.store.runs.get(runId)
  if (row?.synced !== 1) return
  const team = machine.world.bundle(row.bundle_id).team(row.team_key)
  machine.note({ run: row, team, position, kind: 'receipt', entry })
}

/** Marks as unknown what the previous process may have sent: entries and deliveries. */
export function doubtSent(machine: Machine): void {
  for (const { run_id, position, entry } of machine.store.receipts.doubtAll()) {
    receiptChanged(machine, run_id, position, entry)
  }
  machine.store.deliveries.doubtAll()
}
