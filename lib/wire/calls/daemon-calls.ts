// The calls of the daemon's API that the command line makes, with their bodies and replies.

import type { Static } from 'typebox'
import { Type } from '../../schema/type.ts'
import { bareCall } from '../call.ts'
import { listOf, rowsOf } from '../page.ts'
import { AnyObject, AnyText, BYTES_OF_REVIEW, NullableText, Time } from '../parts.ts'
import { AnyTeam, Plan, Problem } from '../records/plans.ts'
import {
  History,
  LogLine,
  ReviewRecord,
  RunRecord,
  ToldDetail,
  ToldPhases,
  ToldRun,
  ToldTree,
  Why,
  Written,
} from '../records/run-records.ts'
import { RUN_STATES, TOLD_RUN_STATES } from '../states.ts'
import { Field } from './forms.ts'
import { Decision, LogPart, OnePhase, OneRun, REVIEW_FILTERS, RUN_FILTERS } from './run-bodies.ts'

/** A package by its name, or a folder or file on the daemon's own machine. */
const Which = Type.Object({ team: Type.Optional(AnyText), path: Type.Optional(AnyText) })
export type Which = Static<typeof Which>

const REQUEST = { inputs: Type.Optional(AnyObject) }

export const ValidateTeam = bareCall(
  '/v1/teams/validate',
  Which,
  Type.Object({
    inputs: Type.Array(Field),
    /** The named secrets that it uses, and those of them that cannot be read. */
    secrets: Type.Array(AnyText),
    missing_secrets: Type.Array(Problem),
    /** What is not wrong, and may not be what the author expects. */
    notes: Type.Optional(Type.Array(AnyText)),
  }),
)

export const PlanTeam = bareCall('/v1/teams/plan', Type.Object({ ...Which.properties, ...REQUEST }), Plan)

export const StartRun = bareCall(
  '/v1/runs/start',
  Type.Object({
    ...Which.properties,
    ...REQUEST,
    run_name: Type.Optional(NullableText),
    workspace: Type.Optional(NullableText),
    run_id: Type.Optional(AnyText),
  }),
  Type.Object({ run_id: AnyText, state: Type.Enum([...RUN_STATES]) }),
)

const ListBody = Type.Object({
  ...RUN_FILTERS,
  /** Part of the name, the team or the id. */
  search: Type.Optional(AnyText),
  /** The beginning of an id. */
  begins: Type.Optional(AnyText),
  /** Only runs that began then or later. */
  since: Type.Optional(Time),
})
export const ListRuns = bareCall('/v1/runs/list', ListBody, listOf('runs', ToldRun))
export const DeleteRun = bareCall('/v1/runs/delete', OneRun, RunRecord)
export const GetRun = bareCall('/v1/runs/get', OneRun, ToldDetail)
export const GetTree = bareCall('/v1/runs/tree', OneRun, ToldTree)
export const GetPhases = bareCall('/v1/runs/phases', OnePhase, ToldPhases, 'run_phases')
/** The team of a run as it was read when the run began. */
export const GetTeam = bareCall('/v1/runs/team', OneRun, AnyTeam)
export const GetHistory = bareCall('/v1/runs/history', OneRun, History)
/** `ask`: after the other systems were asked about what is in doubt or not yet confirmed. */
export const GetWhy = bareCall(
  '/v1/runs/why',
  Type.Object({ ...OneRun.properties, ask: Type.Optional(Type.Boolean()) }),
  Why,
)

export const GetLogs = bareCall('/v1/runs/logs', LogPart, Type.Object({ lines: rowsOf(LogLine), next: Type.Integer() }))

/** `cleanup`: names of `always` phases that continue. */
export const CancelRun = bareCall(
  '/v1/runs/cancel',
  OneRun,
  Type.Object({ ...RunRecord.properties, state: Type.Enum([...TOLD_RUN_STATES]), cleanup: Type.Array(AnyText) }),
)

/**
 * Returns what runs again, and what was already written and is not sent again. `continued` means that it was
 * interrupted.
 */
export const ResumeRun = bareCall(
  '/v1/runs/resume',
  Type.Object({
    run_id: AnyText,
    from_phase: Type.Optional(AnyText),
    failed: Type.Optional(Type.Boolean()),
    inputs: Type.Optional(AnyObject),
  }),
  Type.Object({ repeats: Type.Array(AnyText), written: Type.Array(Written), continued: Type.Boolean() }),
)

/** A review with the fields that its answer asks for; an escalation asks for none. */
const AskedReview = Type.Object({
  ...ReviewRecord.properties,
  kind: AnyText,
  state: AnyText,
  form: Type.Array(Field),
  /** Of an escalation that waits: the outputs and phases that read the result of its phase. A hub does not know. */
  readers: Type.Optional(Type.Object({ outputs: Type.Array(AnyText), phases: Type.Array(AnyText) })),
  /** In lists, what is large is empty; `reviews/list` with `review_id` has it. */
  ...BYTES_OF_REVIEW,
})
export type AskedReview = Static<typeof AskedReview>
export const ListReviews = bareCall(
  '/v1/reviews/list',
  Type.Object({ ...REVIEW_FILTERS, begins: Type.Optional(AnyText) }),
  listOf('reviews', AskedReview),
)

export const DecideReview = bareCall('/v1/reviews/decide', Decision, ReviewRecord)

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
export const ListAgents = bareCall(
  '/v1/agents/list',
  Type.Object({}),
  Type.Object({
    agents: Type.Array(AgentEntry),
    skipped: Type.Array(Type.Object({ file: AnyText, reason: AnyText })),
  }),
)

const Finding = Type.Object({
  /** `issues`, or `issues@eu` for another account. For other findings a key of settings.yml, or `hub`. */
  agent: AnyText,
  /**
   * `fine`; `wrong`: the settings, the reply or the permissions; `unset`: nothing is configured; `settings`: the
   * settings are valid, and there is no system to ask.
   */
  state: Type.Enum(['fine', 'wrong', 'unset', 'settings']),
  /** The owner of the credential. */
  who: NullableText,
  /** Permissions that the credential lacks. */
  missing: Type.Array(AnyText),
  text: AnyText,
})
export type Finding = Static<typeof Finding>
/** Asks the systems of all agents, or of one, whether the credentials do. */
export const ExamineAgents = bareCall(
  '/v1/agents/doctor',
  Type.Object({ agent: Type.Optional(AnyText) }),
  Type.Object({ findings: Type.Array(Finding) }),
)

export { ListArtifacts } from './artifacts.ts'
export { ListSettings, SetSetting } from './settings.ts'
export { AddWorkspace, ListWorkspaces, RemoveWorkspace } from './workspaces.ts'
