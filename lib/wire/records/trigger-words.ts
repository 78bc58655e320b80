// The words of triggers and firings. They are apart from the schemas, which a command line that only lists its options does
// without.

export const TRIGGER_KINDS = ['schedule', 'hook', 'watch', 'chain'] as const
export type TriggerKind = (typeof TRIGGER_KINDS)[number]

/** What `when` and `inputs` of a trigger may name, by its kind. */
export const OCCASION_VARIABLES: Readonly<Record<TriggerKind, readonly string[]>> = {
  schedule: ['slot', 'now'],
  hook: ['body', 'headers', 'query', 'delivery'],
  watch: ['files'],
  chain: ['run'],
}

export const TRIGGER_STATES = ['active', 'paused', 'disabled', 'broken'] as const

export const OVERLAPS = ['skip', 'queue', 'cancel_running', 'allow'] as const
export type Overlap = (typeof OVERLAPS)[number]

/** How a run can end that a chain follows. */
export const CHAIN_ENDS = ['completed', 'failed', 'cancelled'] as const
export type ChainEnd = (typeof CHAIN_ENDS)[number]

/** `waiting` becomes one of the others, which are final. */
export const FIRING_STATES = ['waiting', 'started', 'skipped', 'refused'] as const
export type FiringState = (typeof FIRING_STATES)[number]

/** Why a firing did not start a run, or waits. */
export const FIRING_REASONS = [
  'overlap',
  'superseded',
  'paused',
  'missed',
  'removed',
  'when',
  'limit',
  'signature',
  'timestamp',
  'body',
  'too_large',
  'inputs',
  'expression',
  'team',
  'owner',
  'depth',
  'cycle',
  'scheme',
  'copy',
  'internal',
] as const
export type FiringReason = (typeof FIRING_REASONS)[number]
