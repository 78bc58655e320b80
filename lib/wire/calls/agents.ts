// The agents that are installed on the machine of a daemon.

import type { Static } from 'typebox'
import { closed, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { HERE, OWNER } from '../access.ts'
import { call } from '../call.ts'
import { EnvironmentName } from '../names.ts'
import { AnyObject, AnyText, Name, Time } from '../parts.ts'

const Handler = Type.Object({
  description: Type.Optional(AnyText),
  effect: AnyText,
  entry: AnyObject,
  data: Type.Optional(AnyObject),
  find: Type.Boolean(),
})
const AgentEntry = Type.Object({
  name: AnyText,
  type: AnyText,
  version: AnyText,
  description: AnyText,
  file: AnyText,
  settings: Type.Optional(AnyObject),
  actions: Type.Record(Type.String(), Handler),
  source: Type.Optional(Handler),
  target: Type.Optional(Handler),
  phase: Type.Optional(Handler),
  notify: Type.Optional(Handler),
})
/** An agent of the catalogue. `settings`, `entry` and `data` are JSON Schemas. */
export type AgentEntry = Static<typeof AgentEntry>

const Finding = Type.Object({
  agent: Type.String({
    description: '`issues`, or `issues@eu` for another account. For other findings a key of settings.yml, or `hub`.',
  }),
  environment: Type.Optional(
    Type.String({ description: 'The environment with whose settings it was examined; absent for the plain ones.' }),
  ),
  state: Type.Enum(['fine', 'wrong', 'unset', 'settings'], {
    description:
      '`wrong`: the settings, the reply or the permissions; `unset`: nothing is configured; `settings`: the settings are valid, and there is no system to ask.',
  }),
  who: nullable(Type.String(), { description: 'The owner of the credential.' }),
  missing: Type.Array(AnyText, {
    description: 'Permissions that the credential lacks and that a team of this home needs.',
  }),
  needed_by: Type.Optional(
    Type.Array(Type.Object({ permission: AnyText, team: AnyText, phase: AnyText }), {
      description: 'The phases and listeners that need what is missing.',
    }),
  ),
  unneeded: Type.Optional(
    Type.Array(AnyText, { description: 'Permissions that the credential lacks and that no team of this home needs.' }),
  ),
  text: AnyText,
  expires_at: Type.Optional(nullable(Time, { description: 'When the credential ends, if its system says it.' })),
})
export type Finding = Static<typeof Finding>

/** The catalogue, format version 1.0.0. */
export const ListAgents = call('/v1/agents/list', {
  summary: 'The agents that are installed',
  daemon: HERE,
  body: closed({}),
  data: Type.Object({
    agents: Type.Array(AgentEntry),
    skipped: Type.Array(Type.Object({ file: AnyText, reason: AnyText })),
  }),
})
/** Asks the systems of all agents, or of one, whether the credentials do. */
export const ExamineAgents = call('/v1/agents/doctor', {
  summary: 'Whether agents could do their work',
  daemon: OWNER,
  /** Without `environment`: the plain settings and, of each environment, those that it has of its own. */
  body: closed({ agent: Type.Optional(Name), environment: Type.Optional(nullable(EnvironmentName)) }),
  data: Type.Object({ findings: Type.Array(Finding) }),
})
