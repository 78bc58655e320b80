// The decisions that a person can take on a review. This file imports nothing else, so that the engine can use it
// without loading schemas.

const GATE = ['approve', 'reject'] as const
const ESCALATION = ['retry', 'skip', 'complete', 'fail'] as const

export const EVERY_CHOICE = [...GATE, ...ESCALATION] as const
export type Choice = (typeof EVERY_CHOICE)[number]

/** `start`: whether a run may begin, of which nothing has begun. */
export const REVIEW_KINDS = ['gate', 'escalation', 'start'] as const
type ReviewKind = (typeof REVIEW_KINDS)[number]

/** By kind. */
export const CHOICES: Readonly<Record<ReviewKind, readonly Choice[]>> = {
  gate: GATE,
  escalation: ESCALATION,
  start: GATE,
}

/** The decisions that a review takes. Those of a kind that only a newer program has are not known. */
export function choicesOf(kind: string): readonly Choice[] {
  return REVIEW_KINDS.flatMap(known => (known === kind ? CHOICES[known] : []))
}
