// The agents that are installed on the machine of a daemon.

import type { Static } from 'typebox'
import { closed, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { HERE, OWNER } from '../access.ts'
import { call } from '../call.ts'
import { EnvironmentName } from '../names.ts'
import { AnyObject, AnyText, Name, NullableText } from '../parts.ts'

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
  /** `issues`, or `issues@eu` for another account. For other findings a key of settings.yml, or `hub`. */
  agent: AnyText,
  /** The environment with whose settings it was examined; absent for the plain ones. */
  environment: Type.Optional(AnyText),
  /**
   * `fine`; `wrong`: the settings, the reply or the permissions; `unset`: nothing is configured; `settings`: the
   * settings are valid, and there is no system to ask.
   */
  state: Type.Enum(['fine', 'wrong', 'unset', 'settings']),
  /** The owner of the credential. */
  who: NullableText,
  /** Permissions that the credential lacks and that a team of this home needs. */
  missing: Type.Array(AnyText),
  /** The phases and listeners that need what is missing. */
  needed_by: Type.Optional(Type.Array(Type.Object({ permission: AnyText, team: AnyText, phase: AnyText }))),
  /** Permissions that the credential lacks and that no team of this home needs. */
  unneeded: Type.Optional(Type.Array(AnyText)),
  text: AnyText,
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
