// What the pages say of triggers: their states and those of firings in the shapes of runs, and reasons as plain words.

import { isObject } from '../../json.ts'
import type { FiringReason, Overlap, TriggerKind } from '../../wire/records/trigger-words.ts'
import type { FiringRecord, TriggerRecord } from '../../wire/records/triggers.ts'

/** The words are tables of this program; a newer server may send others, which are shown as they are. */
export const wordOf = (table: Readonly<Record<string, string>>, name: string): string =>
  Object.hasOwn(table, name) ? table[name]! : name

export const KINDS: Record<TriggerKind, string> = {
  schedule: 'schedules',
  hook: 'hooks',
  watch: 'watches',
  chain: 'chains',
}

export const TRIGGER_SHAPES: Record<TriggerRecord['state'], string> = {
  active: 'completed',
  paused: 'interrupted',
  disabled: 'cancelled',
  broken: 'failed',
}

/** Why an occasion started nothing, or not yet. */
export const REASONS: Record<FiringReason, string> = {
  overlap: 'an earlier run was still going on',
  superseded: 'a newer one took its place in the queue',
  paused: 'the trigger was paused',
  missed: 'nothing looked at it in time',
  removed: 'the trigger was removed',
  when: 'its condition was not met',
  limit: 'the limit of starts was reached',
  signature: 'the signature did not fit',
  timestamp: 'its time stamp was too old or too new',
  body: 'the body could not be read',
  too_large: 'the body was too large',
  inputs: 'the inputs did not fit the team',
  expression: 'an expression could not be evaluated',
  team: 'the team could not be read',
  owner: 'the owner may not start it',
  depth: 'too many runs had started one another',
  cycle: 'it would have started itself again',
  scheme: 'it was only a test of the address',
  copy: 'another copy of this home may have started it',
  internal: 'a fault of cadre',
}

export const OVERLAPS: Record<Overlap, string> = {
  skip: 'the new one is skipped',
  queue: 'the new one waits',
  cancel_running: 'the earlier run is cancelled',
  allow: 'both go on',
}

export const CATCH_UPS: Record<string, string> = {
  none: 'none of them',
  last: 'the newest of them',
  all: 'all of them, one after the other',
}

/** What became of an occasion, in the order in which legends have them. The value is what its mark says. */
export const FATES = {
  pending: 'planned',
  queued: 'waits',
  running: 'runs',
  awaiting_input: 'waits for a person',
  completed: 'done',
  failed: 'run failed',
  cancelled: 'run cancelled',
  skipped: 'skipped',
  refused: 'refused',
} as const
export type Fate = keyof typeof FATES

const OF_RUN: Partial<Record<string, Fate>> = {
  failed: 'failed',
  crashed: 'failed',
  interrupted: 'failed',
  cancelled: 'cancelled',
  awaiting_input: 'awaiting_input',
  running: 'running',
  queued: 'running',
}

/** A run of which nothing is known any more counts as done. */
export function fateOf({ state, run_state }: FiringRecord): Fate {
  if (state === 'waiting') return 'queued'
  if (state !== 'started') return state
  return OF_RUN[run_state ?? ''] ?? 'completed'
}

/** Where the spec of a trigger stands, when that is a team. */
export const sourceOf = ({ source }: TriggerRecord): string | null =>
  isObject(source) ? `${source.team} ${source.version}` : null
