// What commands read about runs, as a hub has it: the calls of the daemon's API, answered from the hub's. A command
// prints the same for a run here and there, and need not know who answers.

import type { Static } from 'typebox'
import { ListHubReviews } from '../../../wire/calls/hub-reviews.ts'
import {
  GetHubLogs,
  GetHubPhases,
  GetHubRun,
  GetHubTree,
  type HubRun,
  ListHubRuns,
} from '../../../wire/calls/hub-runs.ts'
import { ListReviews } from '../../../wire/calls/reviews.ts'
import { GetLogs, GetPhases, GetRun, GetTree, GetWhy, ListRuns } from '../../../wire/calls/runs.ts'
import { page } from '../../../wire/page.ts'
import type { LogLine } from '../../../wire/records/run-records.ts'
import type { HubClient } from '../../link/hub-client.ts'
import type { Callee } from './home-client.ts'
import { deliveriesOf, toldPhase, toldReview, toldRun } from './hub-records.ts'
import { answer, answering } from './local-answers.ts'

/** The hub finds runs and reviews by their whole ids. Beginnings are looked for among this many of the newest. */
export const SEARCHED = 1_000
const PAGE = 100

type At = Required<Pick<Static<typeof ListHubRuns.body>, 'limit' | 'offset'>>

export function hubCallee(client: HubClient): Callee {
  return answering(
    answer(ListRuns, async ({ begins, since, search: _, ...filter }) => {
      const read = (at: At) => client.call(ListHubRuns, { ...filter, ...at })
      const listed =
        begins === undefined && since === undefined
          ? await read(page(filter))
          : found(await runsAmong(read, begins, since), page(filter))
      return { ...listed, runs: listed.runs.map(toldRun) }
    }),
    answer(GetRun, async body => {
      const run = await client.call(GetHubRun, body)
      return { ...toldRun(run), inputs: run.inputs, deliveries: deliveriesOf(run.deliveries) }
    }),
    answer(GetTree, body => client.call(GetHubTree, body)),
    answer(GetPhases, async body => {
      const { phases, ...of } = await client.call(GetHubPhases, body)
      return { ...of, phases: phases.map(toldPhase) }
    }),
    answer(GetLogs, async body => {
      const { lines, next } = await client.call(GetHubLogs, body)
      return { lines: lines.map(line => ({ ...line, stream: streamOf(line.stream) })), next }
    }),
    answer(GetWhy, body => client.call(GetWhy, body)),
    answer(ListReviews, async ({ begins, ...filter }) => {
      const read = (at: At) => client.call(ListHubReviews, { ...filter, ...at })
      if (begins === undefined) {
        const listed = await read(page(filter))
        return { ...listed, reviews: listed.reviews.map(toldReview) }
      }
      const all = []
      for (let offset = 0; offset < SEARCHED; ) {
        const { reviews, total } = await read({ limit: PAGE, offset })
        all.push(...reviews.filter(({ id }) => id.startsWith(begins)))
        offset += reviews.length
        if (reviews.length === 0 || offset >= total) break
      }
      return { reviews: all.slice(0, page(filter).limit).map(toldReview), total: all.length }
    }),
  )
}

/** Looks through the list, newest first, for what the hub cannot filter by. */
async function runsAmong(
  read: (at: At) => Promise<Static<typeof ListHubRuns.data>>,
  begins = '',
  since = 0,
): Promise<HubRun[]> {
  const all: HubRun[] = []
  const most = begins === '' ? Number.POSITIVE_INFINITY : SEARCHED
  for (let offset = 0; offset < most; ) {
    const { runs, total } = await read({ limit: PAGE, offset })
    offset += runs.length
    all.push(...runs.filter(run => run.run_id.startsWith(begins) && (run.started_at ?? run.created_at) >= since))
    // The list is in the order of `created_at`, and no run begins before it is created.
    if (runs.length === 0 || offset >= total || runs.at(-1)!.created_at < since) break
  }
  return all
}

const found = (runs: readonly HubRun[], { limit, offset }: At) => {
  return { runs: runs.slice(offset, offset + limit), total: runs.length }
}

const streamOf = (stream: string): LogLine['stream'] => (stream === 'stdout' || stream === 'stderr' ? stream : 'log')
