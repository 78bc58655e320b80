// The parts of the pages that show a run (its tree, phases, log and reviews) are those of the daemon. Here their calls
// are answered from the API of the hub.

import type { Static, TSchema } from 'typebox'
import type { Call } from '../../../wire/call.ts'
import { ListArtifacts } from '../../../wire/calls/artifacts.ts'
import { CancelDispatched, ResumeDispatched } from '../../../wire/calls/dispatch.ts'
import type { HubReview } from '../../../wire/calls/hub-reviews.ts'
import { DecideHubReview, ListHubReviews } from '../../../wire/calls/hub-reviews.ts'
import {
  GetHubLogs,
  GetHubPhases,
  GetHubRun,
  GetHubTree,
  ListHubArtifacts,
  ListHubRuns,
} from '../../../wire/calls/hub-runs.ts'
import { DecideReview, ListReviews } from '../../../wire/calls/reviews.ts'
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
} from '../../../wire/calls/runs.ts'
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
  answer(DecideReview, body => hub(DecideHubReview, body)),
  // Only the daemon that executes a run knows its earlier attempts, and what it wrote outside.
  answer(GetHistory, async ({ run_id }) => ({ run_id, attempts: [], written: [] })),
  answer(GetLogs, body => hub(GetHubLogs, body)),
  answer(GetPhases, async body => {
    const found = await hub(GetHubPhases, body)
    return { ...found, phases: found.phases.map(phase => ({ waiting: null, ...phase })) }
  }),
  answer(GetRun, body => hub(GetHubRun, body)),
  answer(GetTree, body => hub(GetHubTree, body)),
  answer(GetWhy, body => hub(GetWhy, body)),
  answer(ListArtifacts, body => hub(ListHubArtifacts, body)),
  answer(ListReviews, async ({ begins: _, ...body }) => {
    const { reviews, total } = await hub(ListHubReviews, body)
    return { reviews: reviews.map(asked), total }
  }),
  answer(ListRuns, body => hub(ListHubRuns, body)),
  answer(ResumeRun, ({ run_id, from_phase }) => hub(ResumeDispatched, { run_id, ...(from_phase && { from_phase }) })),
]

const asked = ({ inputs, prompt, reason, ...review }: HubReview) => ({
  ...review,
  form: inputs,
  prompt: prompt ?? '',
  reason: reason ?? '',
})

async function callHub<Body extends TSchema, Data extends TSchema>(
  { path }: Call<Body, Data>,
  body: Static<Body>,
): Promise<Static<Data>> {
  const answer = answers.find(each => each.path === path)
  if (!answer) throw new Refusal({ code: 'not_found', message: 'Only the page of the daemon shows this.' })
  // The hub's records have what the shared parts read of the daemon's.
  return (await answer.of(body)) as Static<Data>
}

/** From now on the shared parts ask the hub. */
export const askHub = (): void => askInstead({ ask, call: callHub })
