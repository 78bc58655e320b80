// A run as `runs/get` tells it: its record, and what its listeners were asked to send.

import { CadreError } from '../error.ts'
import { type DeliveryRecord, deliveriesOf } from '../run/listeners.ts'
import { type RunRecord, runRecord } from '../run/records.ts'
import type { RunStore } from '../run/store.ts'

export type RunDetail = RunRecord & { deliveries: DeliveryRecord[] }

/** Throws `not_found`. */
export function runDetail(store: RunStore, runId: string): RunDetail {
  const row = store.run(runId)
  if (!row) throw new CadreError('not_found', `no run ${runId}`)
  return { ...runRecord(row), deliveries: deliveriesOf(store, runId) }
}
