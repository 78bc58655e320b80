// The parts of the pages that show a run (its tree, phases, log and reviews) are those of the daemon. A hub answers their
// calls with the same records. What it gives as an order to the daemon of the run, and what it has under another path, is
// here.

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
import { askInstead, Refusal } from '../kit/api.ts'
import { ask, hub } from './kit/api.ts'

interface Answer {
  path: string
  of(body: unknown): Promise<unknown>
}

/** `of` takes the body of a call of the daemon, and returns its data as far as the hub has it. */
function answer<Body extends TSchema, Data extends TSchema>(
  { path }: Call<Body, Data>,
  of: (body: Static<Body>) => Promise<unknown>,
): Answer {
  return { path, of }
}

const answers = [
  answer(CancelRun, ({ run_id }) => hub(CancelDispatched, { run_id })),
  // Only the daemon that executes a run knows its earlier attempts, and what it wrote outside.
  answer(GetHistory, async ({ run_id }) => ({ run_id, attempts: [], written: [] })),
  answer(ListArtifacts, body => hub(ListHubArtifacts, body)),
  answer(ResumeRun, ({ run_id, from_phase }) => hub(ResumeDispatched, { run_id, ...(from_phase && { from_phase }) })),
]

/** Calls that a hub answers as a daemon does. The bundle has only the addresses of calls, and so not who answers them. */
const SAME = [DecideReview, GetLogs, GetPhases, GetRun, GetTree, GetWhy, ListReviews, ListRuns].map(({ path }) => path)

async function callHub<Body extends TSchema, Data extends TSchema>(
  call: Call<Body, Data>,
  body: Static<Body>,
): Promise<Static<Data>> {
  if (SAME.some(path => path === call.path)) return hub(call, body)
  const answer = answers.find(({ path }) => path === call.path)
  if (!answer) throw new Refusal({ code: 'not_found', message: 'Only the page of the daemon shows this.' })
  // An order has no more of the record than the page reads.
  return (await answer.of(body)) as Static<Data>
}

/** From now on the shared parts ask the hub. */
export const askHub = (): void => askInstead({ ask, call: callHub })
