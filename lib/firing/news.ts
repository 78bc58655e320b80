// What people are told of triggers (`trigger.refused`, `trigger.broken`, `notify.on_fail`). Pure, so that a home and a hub
// say the same.

import type { FiringReason } from '../wire/records/trigger-words.ts'
import type { Firing, Trigger } from './trigger.ts'

/** Of what a sender did wrong the answer tells, and what breaks the trigger is told once, as that. */
const TOLD_ELSEWHERE: readonly (FiringReason | null)[] = [
  'signature',
  'timestamp',
  'body',
  'too_large',
  'team',
  'owner',
]

/** Whether accounts are told of a firing: it started nothing, through a fault that somebody here can end. */
export const isTold = ({ state, reason }: Pick<Firing, 'state' | 'reason'>): boolean =>
  (state === 'refused' && !TOLD_ELSEWHERE.includes(reason)) || (state === 'skipped' && reason === 'limit')

type Named = Pick<Trigger, 'name'> & { spec: Pick<Trigger['spec'], 'team'> }

export const refusedText = (
  { name, spec }: Named,
  { state, occasion, reason, detail }: Pick<Firing, 'state' | 'occasion' | 'reason' | 'detail'>,
): string => `${spec.team}: trigger ${name} ${state} ${occasion} (${reason}): ${detail}`

export const brokenText = ({ name, spec }: Named, { reason, text }: { reason: string; text: string }): string =>
  `${spec.team}: trigger ${name} is broken (${reason}), and starts nothing until that ends: ${text}`
