// Triggers and firings as a home and a hub keep them.

import type { JsonObject } from '../json.ts'
import type { FiringReason, FiringState, TriggerKind } from '../wire/records/trigger-words.ts'
import type { Declared, TriggerRecord, TriggerSpec } from '../wire/records/triggers.ts'

export type { TriggerSpec }

export interface Trigger<Own = unknown> {
  id: string
  name: string
  kind: TriggerKind
  spec: TriggerSpec<Own>
  /** One more with each change. */
  revision: number
  source: 'manual' | Declared
  enabled: boolean
  paused: TriggerRecord['paused']
  problem: TriggerRecord['problem']
  /** Occasions up to here were looked at. Epoch milliseconds. */
  cursor: number
  /** When the next slot is due, or null while none can be, and where no clock says it. */
  next_at: number | null
  created_at: number
  created_by: string
}

export interface Firing {
  id: string
  trigger_id: string
  revision: number
  occasion: string
  at: number
  until: number | null
  seen_at: number
  started_at: number | null
  state: FiringState
  reason: FiringReason | null
  detail: string | null
  run_id: string | null
  count: number
  late_ms: number | null
  /** `backfill`: it is one of several slots of the past that somebody had started. */
  manual: { by: string; backfill?: true } | null
  /** How often the delivery of a hook came; absent or null of another kind. */
  deliveries?: number | null
  /**
   * What `when` and `inputs` may name. The body and the query of a hook's delivery are kept apart, and so is the run that a
   * chain follows.
   */
  variables: JsonObject
  /** Where the end of that run is kept; absent or null of another kind. */
  end_id?: number | null
}

/** A team in whatever version: its name without a range, or the path of its folder. */
export const bareTeam = (team: string): string =>
  team.startsWith('@') ? team.replace(/(?<=.)@.*$/, '') : team.replace(/(?<=.)\/(team\.ya?ml)?$/, '')

/** What `triggers/firings` may ask for. */
export interface FiringFilter {
  state?: FiringState
  reason?: FiringReason
  since?: number
  until?: number
}
