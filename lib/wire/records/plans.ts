// What a run would do, as `teams/plan` returns it.

import type { Static } from 'typebox'
import { nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { WHEN_FULL } from '../concurrency.ts'
import { AnyJson, AnyObject, AnyText } from '../parts.ts'
import { PHASE_TYPES } from '../states.ts'
import { TRIGGER_KINDS } from './trigger-words.ts'

const PHASE = {
  name: AnyText,
  type: Type.Enum([...PHASE_TYPES]),
  depends_on: Type.Array(AnyText),
  when: Type.Optional(AnyText),
  agent: Type.Optional(AnyText),
  action: Type.Optional(AnyText),
  /** How often it is tried, the first time included; absent for once. */
  max_attempts: Type.Optional(Type.Integer()),
  /** After a lost reply its writes are not repeated: a person is asked. */
  asks_instead: Type.Optional(Type.Boolean()),
  repeat: Type.Optional(
    Type.Object(
      {
        until: Type.String({ description: 'The condition, as written.' }),
        every: Type.Integer({ description: 'The wait after a turn, in milliseconds.' }),
        most: Type.Integer({ description: 'How many turns there are at most.' }),
      },
      { description: 'It is repeated until a condition holds; absent where it is not.' },
    ),
  ),
  limit: Type.Optional(
    Type.Object(
      {
        count: Type.Integer({ description: 'How many may begin within the time.' }),
        per: Type.Integer({ description: 'The time, in milliseconds.' }),
      },
      { description: 'How many entries may begin below it within a time; absent where nothing limits that.' },
    ),
  ),
  /** Milliseconds, per attempt. */
  timeout: Type.Optional(Type.Integer()),
  /** It runs after failures and a cancel, too. */
  always: Type.Optional(Type.Boolean()),
  /** Absent for `fail`. */
  on_failure: Type.Optional(Type.Enum(['continue', 'escalate'])),
  /** Whom a gate asks; `any` is whoever may decide. Absent when it asks nobody. */
  reviewers: Type.Optional(Type.Array(AnyText)),
  /** As written; templates are evaluated when the phase runs. */
  inputs: Type.Optional(AnyJson),
  items: Type.Optional(AnyJson),
  entries: Type.Optional(Type.Array(AnyJson)),
  /** Where its commands run; absent when it has none. */
  sandbox: Type.Optional(AnyText),
  /** Its commands need the network. */
  network: Type.Optional(Type.Boolean()),
  requests: Type.Optional(
    Type.Array(
      Type.Object({
        name: AnyText,
        method: Type.String({ description: 'The method of the request.' }),
        url: AnyText,
        account: Type.Optional(
          Type.String({ description: 'The agent whose address and authorization it has; absent without one.' }),
        ),
      }),
      { description: 'What its entries ask of addresses that stand in the file, as written.' },
    ),
  ),
}
const Phase = Type.Object(PHASE)
export type PlannedPhase = Static<typeof Phase> & { below?: PlannedTeam }

const TEAM = {
  name: AnyText,
  version: AnyText,
  /** The team is already above this phase, so it calls itself. */
  recursive: Type.Optional(Type.Boolean()),
  /** The key of the team, as written. It is not held here, because only top runs hold a key. */
  unheld: Type.Optional(AnyText),
  listeners: Type.Optional(
    Type.Array(Type.Object({ name: AnyText, agent: AnyText, events: Type.Array(AnyText) }), {
      description: 'The listeners, and the events of its runs that they report; absent when there are none.',
    }),
  ),
}
const Team = Type.Object(TEAM)
export type PlannedTeam = Static<typeof Team> & { phases: PlannedPhase[] }

export const PlannedWrite = Type.Object({
  /** Names of the phases from the top team down. */
  phase: Type.Array(AnyText),
  agent: AnyText,
  action: nullable(AnyText),
  effect: Type.Enum(['read', 'idempotent', 'once', 'by entry']),
  /** The destination, as far as the settings and the file show it. */
  to: AnyText,
  /** Settings that authorize it. */
  credentials: Type.Array(AnyText),
})
export type PlannedWrite = Static<typeof PlannedWrite>

export const Problem = Type.Object({ path: AnyText, message: AnyText })

/** Checked at the top only, because teams hold teams. */
export const AnyTeam = Type.Unsafe<PlannedTeam>(Type.Object({ ...TEAM, phases: Type.Array(Phase) }))

export const Plan = Type.Object({
  inputs: AnyObject,
  environment: Type.Optional(
    nullable(AnyText, {
      description: 'The environment of settings.yml that it would have; null for the plain settings.',
    }),
  ),
  review: Type.Optional(
    Type.Array(AnyText, {
      description:
        'Who may approve it before anything of it begins: names of users, or any. Absent when nobody is asked.',
    }),
  ),
  /** Named secrets that its teams use. */
  secrets: Type.Array(AnyText),
  /** The key that the run would hold; null when its team has none. */
  concurrency: nullable(
    Type.Object({
      /** Null when the inputs give none. */
      key: nullable(AnyText),
      limit: Type.Integer(),
      when_full: Type.Enum([...WHEN_FULL]),
    }),
  ),
  /** What a hub asks of the daemon to which it gives the run. */
  requires: Type.Object({
    labels: Type.Record(Type.String(), AnyText),
    agents: Type.Record(Type.String(), AnyText),
  }),
  triggers: Type.Optional(
    Type.Array(Type.Object({ name: AnyText, kind: Type.Enum([...TRIGGER_KINDS]), words: AnyText }), {
      description: 'What the team declares to start it, once somebody enables it; absent when it declares nothing.',
    }),
  ),
  /** What the owner of the machine should know of the sandboxes of its commands. */
  warnings: Type.Array(AnyText),
  /** Inputs, settings and secrets without which it cannot start. */
  missing: Type.Array(Problem),
  team: AnyTeam,
  writes: Type.Array(PlannedWrite),
})
export type Plan = Static<typeof Plan>
