// The calls of the hub's API with which the command line looks at runs and gives orders about them.

import type { Static } from 'typebox'
import { Type } from '../../schema/type.ts'
import { bareCall } from '../call.ts'
import { listOf, PAGE, rowsOf } from '../page.ts'
import { AnyObject, AnyText } from '../parts.ts'
import {
  Dispatched,
  Line,
  LOG_STATE,
  ORDER_FATE,
  Ordered,
  Phase,
  QueuedJob,
  Review,
  Run,
  TreeEntry,
  WholeRun,
  withMore,
} from '../records/hub-records.ts'
import { Decision, LogPart, OnePhase, OneRun, REVIEW_FILTERS, RUN_FILTERS } from './run-bodies.ts'

export const DispatchRun = bareCall(
  '/v1/dispatch/run',
  Type.Object({
    realm_id: AnyText,
    team: AnyText,
    inputs: Type.Optional(AnyObject),
    run_name: Type.Optional(AnyText),
    workspace: Type.Optional(AnyText),
  }),
  Dispatched,
)
export const CancelDispatched = bareCall('/v1/dispatch/cancel', OneRun, Ordered)
export const ResumeDispatched = bareCall(
  '/v1/dispatch/resume',
  Type.Object({ run_id: AnyText, from_phase: Type.Optional(AnyText) }),
  Ordered,
)
export const ListQueue = bareCall(
  '/v1/dispatch/queue',
  Type.Object({ ...PAGE, realm_id: AnyText }),
  listOf('jobs', QueuedJob),
)

export type HubRun = Static<typeof Run>
export const ListHubRuns = bareCall(
  '/v1/runs/list',
  Type.Object({ ...RUN_FILTERS, realm_id: Type.Optional(AnyText) }),
  listOf('runs', Run),
)
export const GetHubRun = bareCall('/v1/runs/get', OneRun, WholeRun)
export const GetHubTree = bareCall(
  '/v1/runs/tree',
  OneRun,
  Type.Object({ root_run_id: AnyText, runs: rowsOf(TreeEntry) }),
)
export type HubPhase = Static<typeof Phase>
export const GetHubPhases = bareCall(
  '/v1/runs/phases',
  OnePhase,
  Type.Object({ run_id: AnyText, state: Run.properties.state, phases: rowsOf(Phase) }),
)

/** Lines of a log, and how much of it the hub has. */
export const GetHubLogs = bareCall(
  '/v1/runs/logs',
  LogPart,
  Type.Object({ lines: rowsOf(Line), next: Type.Integer(), ...LOG_STATE }),
)

export type HubReview = Static<typeof Review>
export const ListHubReviews = bareCall('/v1/reviews/list', Type.Object(REVIEW_FILTERS), listOf('reviews', Review))
export const DecideHubReview = bareCall('/v1/reviews/decide', Decision, withMore(Review, ORDER_FATE))

/** The events of `GET /v1/runs/stream`, and of each the data that is read. `end` is the last one. */
export const HUB_STREAM = '/v1/runs/stream'
const { data: _, sub_runs: __, sub_runs_more: ___, ...BARE_PHASE } = Phase.properties
export const HUB_EVENTS = {
  run: Run,
  phase: Type.Object({ ...BARE_PHASE, text: AnyText, run_id: AnyText, position: Type.Integer() }),
  end: Run,
} as const
