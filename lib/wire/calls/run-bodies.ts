// Bodies of calls about runs that a daemon and a hub take alike.

import { Type } from '../../schema/type.ts'
import { EVERY_CHOICE } from '../choices.ts'
import { PAGE } from '../page.ts'
import { AnyObject, AnyText } from '../parts.ts'

export const OneRun = Type.Object({ run_id: AnyText })
/** The phases of a run, or the whole of one of them. */
export const OnePhase = Type.Object({ run_id: AnyText, phase: Type.Optional(AnyText) })

/** Filters of a list of runs. */
export const RUN_FILTERS = {
  ...PAGE,
  state: Type.Optional(AnyText),
  team: Type.Optional(AnyText),
  root_only: Type.Optional(Type.Boolean()),
}

/** Filters of a list of reviews. */
export const REVIEW_FILTERS = {
  ...PAGE,
  run_id: Type.Optional(AnyText),
  state: Type.Optional(AnyText),
  /** One review, which then is whole. */
  review_id: Type.Optional(AnyText),
}

export const LogPart = Type.Object({
  run_id: AnyText,
  phase: Type.Optional(AnyText),
  after_seq: Type.Optional(Type.Integer()),
  limit: Type.Optional(Type.Integer()),
})

export const Decision = Type.Object({
  review_id: AnyText,
  decision: Type.Enum([...EVERY_CHOICE]),
  comment: Type.Optional(AnyText),
  values: Type.Optional(AnyObject),
})
