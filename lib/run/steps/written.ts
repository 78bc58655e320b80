// What a run wrote outside, in the form that `why` and the plan of a resume show.

import type { Written } from '../../wire/run-records.ts'
import type { ReceiptRow } from '../core/core.ts'

export type { Written }

/** `phase` is the name of the phase that wrote. */
export function written(receipt: ReceiptRow, phase: string): Written {
  const { run_id, entry, state, external_id, external_url } = receipt
  return { run_id, phase, entry, state, id: external_id, url: external_url }
}
