// What a run wrote outside, as people are told of it: by `why`, and before a resume repeats something.

import type { ReceiptRow } from '../core/core.ts'

/** A write to the outside that must not happen twice. */
export interface Written {
  run_id: string
  phase: string
  entry: string
  state: ReceiptRow['state']
  /** What the outside calls it. */
  id: string | null
  url: string | null
}

/** `phase` is the name of the phase that wrote. */
export function written(receipt: ReceiptRow, phase: string): Written {
  const { run_id, entry, state, external_id, external_url } = receipt
  return { run_id, phase, entry, state, id: external_id, url: external_url }
}
