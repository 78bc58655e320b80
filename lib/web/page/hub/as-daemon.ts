// The parts of the pages that show a run (its tree, phases, log and reviews) are those of the daemon. Here their calls
// are answered from the API of the hub.

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
import { askInstead, type BodyOf, type CallName, type DataOf, Refusal } from '../kit/api.ts'
import { ask, hub } from './kit/api.ts'
import { explain } from './kit/explain.ts'

/** What takes the body of a call of the daemon, and returns its data as far as the hub has it. */
type Answers = { [N in CallName]?: (body: BodyOf<N>) => Promise<unknown> }

const answers: Answers = {
  CancelRun: ({ run_id }) => hub(CancelDispatched, { run_id }),
  DecideReview: body => hub(DecideHubReview, body),
  // Only the daemon that executes a run knows its earlier attempts, and what it wrote outside.
  GetHistory: async ({ run_id }) => ({ run_id, attempts: [], written: [] }),
  GetLogs: body => hub(GetHubLogs, body),
  GetPhases: async body => {
    const found = await hub(GetHubPhases, body)
    return { ...found, phases: found.phases.map(phase => ({ waiting: null, ...phase })) }
  },
  GetRun: body => hub(GetHubRun, body),
  GetTree: body => hub(GetHubTree, body),
  GetWhy: ({ run_id }) => explain(run_id),
  ListArtifacts: body => hub(ListHubArtifacts, body),
  ListReviews: async ({ begins: _, ...body }) => {
    const { reviews, total } = await hub(ListHubReviews, body)
    return { reviews: reviews.map(asked), total }
  },
  ListRuns: body => hub(ListHubRuns, body),
  ResumeRun: ({ run_id, from_phase }) => hub(ResumeDispatched, { run_id, ...(from_phase && { from_phase }) }),
}

const asked = ({ inputs, prompt, reason, ...review }: HubReview) => ({
  ...review,
  form: inputs,
  prompt: prompt ?? '',
  reason: reason ?? '',
})

async function callHub<N extends CallName>(name: N, body: BodyOf<N>): Promise<DataOf<N>> {
  const answer = answers[name]
  if (!answer) throw new Refusal({ code: 'not_found', message: 'Only the page of the daemon shows this.' })
  // The hub's records have what the shared parts read of the daemon's.
  return (await answer(body)) as DataOf<N>
}

/** From now on the shared parts ask the hub. */
export const askHub = (): void => askInstead({ ask, call: callHub })
