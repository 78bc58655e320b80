// Teams on the machine of a daemon: they are read with everything that they use, and nothing is started.

import type { Static } from 'typebox'
import { closed, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { HERE } from '../access.ts'
import { call } from '../call.ts'
import { EnvironmentName } from '../names.ts'
import { AnyObject, AnyText, Name, Path } from '../parts.ts'
import { Field } from '../records/forms.ts'
import { Plan, Problem } from '../records/plans.ts'

/** A package by its name, or a folder or file on the daemon's own machine. */
export const WHICH = { team: Type.Optional(Name), path: Type.Optional(Path) }
const Which = closed(WHICH)
export type Which = Static<typeof Which>

/** A file beside team.yml that a phase names. */
const OwnFile = Type.Object({
  place: Type.String({ description: 'Where the phase is: the file, its line and its column.' }),
  phase: AnyText,
  path: Type.String({ description: 'The path as the phase names it.' }),
  folder: Type.String({ description: 'The folder of team.yml, in which the file lies.' }),
  sub_team: Type.Optional(Type.Boolean({ description: 'Whether it is the folder of a team that the top team calls.' })),
})
export type OwnFile = Static<typeof OwnFile>

export const ValidateTeam = call('/v1/teams/validate', {
  summary: 'Check a team',
  daemon: HERE,
  body: Which,
  data: Type.Object({
    name: Type.Optional(AnyText),
    inputs: Type.Array(Field),
    /** The named secrets that it uses, and those of them that cannot be read. */
    secrets: Type.Array(AnyText),
    missing_secrets: Type.Array(Problem),
    /** What is not wrong, and may not be what the author expects. */
    notes: Type.Optional(Type.Array(AnyText)),
    /** A run looks for them in its workspace. */
    own_files: Type.Optional(Type.Array(OwnFile)),
  }),
})
export const PlanTeam = call('/v1/teams/plan', {
  summary: 'What a run would do',
  daemon: HERE,
  body: closed({ ...WHICH, inputs: Type.Optional(AnyObject), environment: Type.Optional(nullable(EnvironmentName)) }),
  data: Plan,
})
/** For editors, which cannot send a token. */
export const GetTeamSchema = call('/schema/team.json', {
  summary: 'The JSON Schema of team.yml',
  daemon: HERE,
  query: closed({}),
  media: 'application/schema+json',
})
