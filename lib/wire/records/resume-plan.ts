// What a resume would do, before it starts.

import type { Static } from 'typebox'
import { nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { AnyText, NullableText } from '../parts.ts'
import { PHASE_STATES } from '../states.ts'
import { Written } from './run-records.ts'

/** How the phase ended. */
const ENDED = { phase: AnyText, state: Type.Enum([...PHASE_STATES]), reason: NullableText }

const RunsBelow = Type.Object({
  kept: Type.Integer({ description: 'How many runs below the phase stay as they are.' }),
  repeated: Type.Integer({ description: 'How many items run again, or for the first time.' }),
  names: Type.Array(AnyText, { description: 'The keys of the first of them.' }),
})
export type RunsBelow = Static<typeof RunsBelow>

const MapBelow = Type.Object({ phase: AnyText, ...RunsBelow.properties })
export type MapBelow = Static<typeof MapBelow>

const RepeatedPhase = Type.Object({
  ...ENDED,
  whole: Type.Boolean({ description: 'Whether everything below the phase is repeated, also what completed.' }),
  renewed: Type.Boolean({ description: 'Whether a map evaluates its items again.' }),
  /** Null also for a map that has not evaluated its items yet. */
  runs: nullable(RunsBelow),
  maps: Type.Array(MapBelow, {
    description:
      'The maps in its sub-runs that are repeated in part, with the phases that lead to them, such as `work/each`.',
  }),
})

/**
 * `kept`: nothing of the phase is repeated. `skipped`: the phase is repeated, and the write is there, so it is not sent
 * again. `asked`: cadre asks the other system before it sends anything, and a person if that system cannot say.
 * `person`: no system can say what a command has done, so cadre asks a person before it runs again. `sent`: it is sent
 * again, or the rest of it.
 */
const FATES = ['kept', 'skipped', 'asked', 'person', 'sent'] as const
export type Fate = (typeof FATES)[number]

const PlannedWrite = Type.Object({
  ...Written.properties,
  fate: Type.Enum([...FATES], { description: 'What the resume does with the write.' }),
})
export type PlannedWrite = Static<typeof PlannedWrite>

/**
 * `new` and `removed` are the phases that only the team of the resume has, or only that of the run: none, as long as a
 * run keeps its team.
 */
export const ResumePlan = Type.Object({
  run_id: AnyText,
  kept: Type.Array(Type.Object(ENDED), { description: 'The phases that stay as they are.' }),
  repeated: Type.Array(RepeatedPhase, { description: 'The phases that run again.' }),
  new: Type.Array(AnyText, { description: 'Phases that the run does not have yet.' }),
  removed: Type.Array(AnyText, { description: 'Phases that the run will not have any more.' }),
  writes: Type.Array(PlannedWrite, { description: 'The writes to other systems that are recorded.' }),
  writes_more: Type.Integer({ description: 'How many more writes there are.' }),
})
export type ResumePlan = Static<typeof ResumePlan>

/** Whether the answer to a resume is what it would do, and not what it does. */
export const isPlan = (answer: object): answer is ResumePlan => 'kept' in answer
