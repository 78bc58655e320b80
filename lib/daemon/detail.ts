// A run as `runs/get` tells it: its record, and what its listeners were asked to send.

import { CadreError } from '../error.ts'
import type { JsonObject } from '../json.ts'
import { type RunRecord, runRecord } from '../run/records.ts'
import type { RunStore } from '../run/store.ts'

interface Delivery {
  phase: string
  event: string
  state: string
  error: JsonObject | string | null
}

export type RunDetail = RunRecord & { deliveries: Delivery[] }

/** Throws `not_found`. */
export function runDetail(store: RunStore, runId: string): RunDetail {
  const row = store.run(runId)
  if (!row) throw new CadreError('not_found', `no run ${runId}`)
  const deliveries = store.db
    .query<Delivery, [string]>(
      'SELECT listener AS phase, event, state, error FROM deliveries WHERE run_id = ? ORDER BY number',
    )
    .all(runId)
  return { ...runRecord(row), deliveries }
}
