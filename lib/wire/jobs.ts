// Jobs: what the hub asks a daemon to do with a run. The form of the payload depends on the kind.

import type { Static, TSchema } from 'typebox'
import { named } from '../schema.ts'
import { Type } from '../type.ts'
import { EVERY_CHOICE } from './choices.ts'
import { AnyObject, AnyText, NullableText, Time } from './parts.ts'

export const JOB_KINDS = ['run', 'cancel', 'resume', 'decide'] as const
export type JobKind = (typeof JOB_KINDS)[number]
export const JobKind = Type.Enum([...JOB_KINDS])

/** The run to start. */
export const RunOrder = Type.Object({
  /** `@scope/name@version`. */
  team: AnyText,
  sha256: AnyText,
  inputs: AnyObject,
  run_name: NullableText,
  workspace: NullableText,
})
export type RunOrder = Static<typeof RunOrder>

/** `reason`: a newer run of its key takes the place. A run that was asked to end before is then left alone. */
export const CancelOrder = Type.Object({ reason: Type.Optional(AnyText) })

export const ResumeOrder = Type.Object({ from_phase: Type.Optional(AnyText) })

/** A person's answer to a review, and who that person is. */
export const DecideOrder = Type.Object({
  review_id: AnyText,
  decision: Type.Enum([...EVERY_CHOICE]),
  by: AnyText,
  comment: Type.Optional(AnyText),
  values: Type.Optional(AnyObject),
})
export type DecideOrder = Static<typeof DecideOrder>

/** The payload by kind. */
export const ORDERS = {
  run: RunOrder,
  cancel: CancelOrder,
  resume: ResumeOrder,
  decide: DecideOrder,
} as const satisfies Record<JobKind, TSchema>

const LEASED = {
  job_id: AnyText,
  lease_id: AnyText,
  attempt: Type.Integer(),
  lease_until: Time,
  run_id: AnyText,
  payload: AnyObject,
}
/** A job as a daemon gets it. */
export const LeasedJob = named('leased_job', { ...LEASED, kind: JobKind })

/**
 * A leased job as a daemon reads it. A newer hub may have kinds of jobs that this daemon does not know, and such a job
 * must not keep the daemon from getting the others.
 */
export const AnyLeasedJob = Type.Object({ ...LEASED, kind: AnyText })
export type AnyLeasedJob = Static<typeof AnyLeasedJob>
