// Jobs: what the hub asks a daemon to do with a run, or to tell people. The form of the payload depends on the kind.

import type { Static, TSchema } from 'typebox'
import { named, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { EVERY_CHOICE } from '../choices.ts'
import { AnyJson, AnyObject, AnyText, NullableText, RunUuid, Time, Uuid } from '../parts.ts'

export const JOB_KINDS = ['run', 'cancel', 'resume', 'decide'] as const
export type JobKind = (typeof JOB_KINDS)[number]

/** The kind of a job that is about no run. Only daemons that say so take it. */
export const TELL = 'tell'
/** The kinds that this daemon takes. */
export const TAKEN_KINDS = [...JOB_KINDS, TELL] as const

/** The user who gives an order, for the audit log of the daemon, which puts it here (`LeasedJob`). */
const BY = { by: Type.Optional(AnyText) }

/** The run to start. */
export const RunOrder = Type.Object({
  /** `@scope/name@version`. */
  team: AnyText,
  sha256: AnyText,
  inputs: AnyObject,
  run_name: NullableText,
  workspace: NullableText,
  /** An environment of the daemon's settings; absent without one. */
  environment: Type.Optional(NullableText),
  /** What the run says of who started it. Older hubs leave it out, and newer ones may have kinds that are not known here. */
  started_by: Type.Optional(AnyJson),
  /** The place in a trace of the call that asked for it, as its header said it; absent without one. */
  traceparent: Type.Optional(AnyText),
  ...BY,
})
export type RunOrder = Static<typeof RunOrder>

/** `reason`: a newer run of its key takes the place. A run that was asked to end before is then left alone. */
export const CancelOrder = Type.Object({ reason: Type.Optional(AnyText), ...BY })
export type CancelOrder = Static<typeof CancelOrder>

export const ResumeOrder = Type.Object({
  from_phase: Type.Optional(AnyText),
  failed: Type.Optional(Type.Boolean()),
  outputs: Type.Optional(Type.Boolean()),
  ...BY,
})
export type ResumeOrder = Static<typeof ResumeOrder>

/** A person's answer to a review, and who that person is. */
export const DecideOrder = Type.Object({
  review_id: AnyText,
  decision: Type.Enum([...EVERY_CHOICE]),
  by: AnyText,
  comment: Type.Optional(AnyText),
  values: Type.Optional(AnyObject),
})
export type DecideOrder = Static<typeof DecideOrder>

/** What people are told, and where. */
const TellOrder = Type.Object({ account: AnyText, text: AnyText, ...BY })
export type TellOrder = Static<typeof TellOrder>

/** The payload by kind. */
export const ORDERS = {
  run: RunOrder,
  cancel: CancelOrder,
  resume: ResumeOrder,
  decide: DecideOrder,
  tell: TellOrder,
} as const satisfies Record<(typeof TAKEN_KINDS)[number], TSchema>

const LEASED = {
  job_id: Uuid,
  lease_id: Uuid,
  attempt: Type.Integer(),
  lease_until: Time,
  run_id: nullable(RunUuid, { description: 'Null in a job of kind `tell`.' }),
  payload: AnyObject,
  by: Type.Optional(
    Type.String({ description: 'The user who gave the order. Hubs of earlier versions do not say it.' }),
  ),
}
/** A job as a daemon gets it. */
export const LeasedJob = named('leased_job', { ...LEASED, kind: Type.Enum([...TAKEN_KINDS]) })

/**
 * A leased job as a daemon reads it, one at a time: a job of another form, or of a kind that only newer hubs know, must
 * not keep the daemon from getting the others.
 */
export const AnyLeasedJob = Type.Object({ ...LEASED, kind: AnyText })
export type AnyLeasedJob = Static<typeof AnyLeasedJob>
