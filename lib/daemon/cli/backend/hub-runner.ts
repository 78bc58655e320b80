// What commands do with runs of a hub, as run-backend.ts declares it. The hub gives the order to the daemon of the run, which
// may be away, so what an order did is not known when it is given.

import { pause } from '../../../wait.ts'
import { checkedData } from '../../../wire/call.ts'
import { CancelDispatched, ResumeDispatched } from '../../../wire/calls/dispatch.ts'
import { DecideHubReview } from '../../../wire/calls/hub-runs.ts'
import { ListReviews } from '../../../wire/calls/reviews.ts'
import { StreamRun } from '../../../wire/calls/runs.ts'
import { EVENTS, type RunEvent } from '../../../wire/records/run-records.ts'
import type { HubClient } from '../../link/hub-client.ts'
import { HubAbsence } from './hub-absence.ts'
import type { Runner } from './run-backend.ts'

/** How long to wait before a stream that ended too early is opened again. */
const AGAIN_MS = 1_000

export function hubRunner(client: HubClient): Runner {
  return {
    host: null,
    async cancel(run_id) {
      const { already_waits = false } = await client.call(CancelDispatched, { run_id })
      return { cleanup: [], already_waits }
    },
    async resume(run_id, { from_phase, failed, outputs }) {
      const what = {
        ...(from_phase !== undefined && { from_phase }),
        ...(failed && { failed }),
        ...(outputs && { outputs }),
      }
      await client.call(ResumeDispatched, { run_id, ...what })
      return null
    },
    decide: (review_id, answer) => client.call(DecideHubReview, { review_id, ...answer }),
    events: (runId, signal, notify) => eventsOf(client, runId, signal, notify),
    async pending() {
      return (await client.call(ListReviews, { state: 'pending', limit: 100 })).reviews
    },
  }
}

/** Follows a run over restarts of the hub. The stream begins with the present state each time. */
async function* eventsOf(
  client: HubClient,
  runId: string,
  signal: AbortSignal,
  notify: (line: string) => void,
): AsyncGenerator<RunEvent> {
  const absence = new HubAbsence(notify)
  while (!signal.aborted) {
    try {
      for await (const { name, data } of client.events(StreamRun, { run_id: runId }, signal)) {
        absence.end()
        const event = eventOf(name, data, client.url)
        if (event) yield event
        if (name === 'end') return
      }
      await pause(AGAIN_MS, signal)
    } catch (error) {
      await absence.bear(error, signal)
    }
  }
}

/** Null for what is not shown, such as log lines. */
function eventOf(name: string, data: unknown, hub: string): RunEvent | null {
  const from = { url: hub + StreamRun.path, kind: 'hub', advice: '' }
  switch (name) {
    case 'run':
    case 'end': {
      const { state, ...run } = checkedData(EVENTS[name], data, from)
      // The picture of a run has no such states. The reason of the run says that its daemon is silent.
      if (state === 'crashed')
        return { event: name, data: { ...run, state: 'running', reason: 'its daemon is silent' } }
      return { event: name, data: { ...run, state: state === 'interrupted' ? 'running' : state } }
    }
    case 'phase':
      return { event: name, data: checkedData(EVENTS.phase, data, from) }
    default:
      return null
  }
}
