// Reviews, which ask people, as the API of a daemon and of a hub returns them.

import type { Static } from 'typebox'
import { nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { REVIEW_KINDS } from '../choices.ts'
import { AnyText, BYTES_OF_REVIEW, NullableText, NullableTime, Time } from '../parts.ts'
import { Field } from './forms.ts'
import { PlannedWrite } from './plans.ts'

/** What runs once a review is approved. */
export const ReviewNext = Type.Object({
  phases: Type.Array(AnyText, {
    description: 'The phases that depend on it, in its run and then in the runs above it.',
  }),
  writes: Type.Array(PlannedWrite),
  more_phases: Type.Optional(Type.Integer({ description: 'How many more phases there are than `phases` has.' })),
  more_writes: Type.Optional(Type.Integer({ description: 'How many more writes there are than `writes` has.' })),
})
export type ReviewNext = Static<typeof ReviewNext>

/** What the commands of a gate have done before it asks. */
export const ReviewShown = Type.Object({
  output: Type.String({ description: 'The last 16 KiB of what they printed.' }),
  omitted_bytes: Type.Integer({ description: 'How much more they printed before.' }),
  files: Type.Array(Type.Object({ name: AnyText, path: AnyText, bytes: Type.Integer() }), {
    description: 'What they wrote. The files themselves are those of the phase.',
  }),
  more_files: Type.Optional(Type.Integer({ description: 'How many more files there are than `files` has.' })),
})
export type ReviewShown = Static<typeof ReviewShown>

const SHOWN = { description: 'What the commands of the gate printed and wrote; null where there are none.' }
const NEXT = { description: 'What its approval leads to; null where that is not known.' }
const EXPIRES = { description: 'When it expires, if nothing stops its clock; null for one that does not.' }

/** A review as `reviews/list` returns it. */
export const ReviewRecord = Type.Object({
  id: AnyText,
  run_id: AnyText,
  run_name: NullableText,
  /** Null for a review of kind `start`, which asks whether the run may begin. */
  phase: NullableText,
  entries: Type.Array(AnyText),
  kind: Type.Enum([...REVIEW_KINDS]),
  reason: AnyText,
  prompt: AnyText,
  next: nullable(ReviewNext, NEXT),
  shown: nullable(ReviewShown, SHOWN),
  expires_at: nullable(Time, EXPIRES),
  state: Type.Enum(['pending', 'decided']),
  decision: NullableText,
  decided_by: NullableText,
  comment: NullableText,
  created_at: Time,
  decided_at: NullableTime,
})
export type ReviewRecord = Static<typeof ReviewRecord>

/** A review with the fields that its answer asks for; an escalation asks for none. */
export const AskedReview = Type.Object({
  ...ReviewRecord.properties,
  kind: AnyText,
  state: AnyText,
  /** Null where it is too large for a list. */
  prompt: NullableText,
  /** Older hubs leave it out. */
  team: Type.Optional(Type.String({ description: 'The team of its run.' })),
  /** Hubs of 0.1.0 leave it out. */
  form: Type.Optional(Type.Array(Field)),
  /** Hubs of 0.1.0 leave these out. */
  next: Type.Optional(nullable(ReviewNext, NEXT)),
  shown: Type.Optional(nullable(ReviewShown, SHOWN)),
  expires_at: Type.Optional(nullable(Time, EXPIRES)),
  reviewers: Type.Optional(
    Type.Array(AnyText, { description: 'Whom it asks: names of users, or any for whoever may decide.' }),
  ),
  lacks: Type.Optional(
    nullable(AnyText, {
      description: 'Why the hub does not know what its approval leads to, in words; null where it does.',
    }),
  ),
  /** Of an escalation that waits: the outputs and phases that read the result of its phase. A hub does not know. */
  readers: Type.Optional(Type.Object({ outputs: Type.Array(AnyText), phases: Type.Array(AnyText) })),
  /** In lists, what is large is empty or null; `reviews/list` with `review_id` has it. */
  ...BYTES_OF_REVIEW,
})
export type AskedReview = Static<typeof AskedReview>
