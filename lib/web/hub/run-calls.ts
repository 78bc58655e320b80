// The parts of the page that show a run make the calls of a daemon. A hub answers most of them with the same records. It
// answers cancelling, resuming and the list of files at other paths.

import type { Static, TSchema } from 'typebox'
import type { Call } from '../../wire/call.ts'
import { ListArtifacts } from '../../wire/calls/artifacts.ts'
import { CancelDispatched, ResumeDispatched } from '../../wire/calls/dispatch.ts'
import { ListHubArtifacts } from '../../wire/calls/hub-runs.ts'
import { DecideReview, ListReviews } from '../../wire/calls/reviews.ts'
import {
  CancelRun,
  GetHistory,
  GetLogs,
  GetPhases,
  GetRun,
  GetTree,
  GetWhy,
  ListRuns,
  ResumeRun,
} from '../../wire/calls/runs.ts'
import {
  AddTrigger,
  BackfillTrigger,
  DisableTrigger,
  EnableTrigger,
  GetTrigger,
  ListFirings,
  ListTriggers,
  PauseTrigger,
  PreviewTrigger,
  RefireTrigger,
  RemoveTrigger,
  ResumeTrigger,
  RunTrigger,
  UpdateTrigger,
} from '../../wire/calls/triggers.ts'
import { Refusal, setSource } from '../kit/api.ts'
import { ask, hub } from './kit/api.ts'

const SAME = [
  ...[DecideReview, GetLogs, GetPhases, GetRun, GetTree, GetWhy, ListReviews, ListRuns],
  ...[
    AddTrigger,
    BackfillTrigger,
    DisableTrigger,
    EnableTrigger,
    GetTrigger,
    ListFirings,
    ListTriggers,
    PauseTrigger,
    PreviewTrigger,
    RefireTrigger,
    RemoveTrigger,
    ResumeTrigger,
    RunTrigger,
    UpdateTrigger,
  ],
]

/** The path of a hub for a call of a daemon. The bundle has only the addresses of calls, and so not who answers them. */
const PATHS = new Map<string, string>([
  ...SAME.map(({ path }) => [path, path] as const),
  [CancelRun.path, CancelDispatched.path],
  [ListArtifacts.path, ListHubArtifacts.path],
  [ResumeRun.path, ResumeDispatched.path],
])

/** Only the daemon that executes a run knows its earlier attempts and its writes. */
const NO_HISTORY: unknown = { attempts: [], written: [] }

async function callHub<Body extends TSchema, Data extends TSchema>(
  call: Call<Body, Data>,
  body: Static<Body>,
): Promise<Static<Data>> {
  if (call.path === GetHistory.path) return NO_HISTORY as Static<Data>
  const path = PATHS.get(call.path)
  if (path === undefined) throw new Refusal({ code: 'not_found', message: 'Only the page of the daemon shows this.' })
  return hub({ ...call, path }, body)
}

/** From now on the shared parts ask the hub. */
export const askHub = (): void => setSource({ ask, call: callHub })
