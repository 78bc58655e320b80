// runs/stream: what happens in a run and below it, as server-sent events. Each connection begins with how things stand.
// Ids are epoch milliseconds, counted up where two would be the same: a reader that comes back (Last-Event-ID) gets the
// log lines since then again; those that it had already are told by their numbers.

import { eventStream } from '../../http/stream.ts'
import { closed } from '../../schema.ts'
import { runEvents } from '../events.ts'
import type { Routing } from '../routes.ts'
import { RunId } from './bodies.ts'
import { target } from './runs.ts'

/** A stream ends within 5 s after its credential does. */
const CHECK_MS = 2_000

export function streamRoutes({ api, daemon, guard }: Routing): void {
  const access = guard({ local: 'open', remote: 'access', ofRun: true })
  const query = closed({ run_id: RunId })
  api.get('/v1/runs/stream', { access, query, summary: 'Events of a run: run, phase, log, end' }, visit => {
    const runId = target(daemon, { body: visit.query, caller: visit.caller })
    const last = Number(visit.request.headers.get('last-event-id'))
    visit.server?.timeout(visit.request, 0)
    return eventStream(async function* numbered(signal) {
      let id = Number.isSafeInteger(last) && last > 0 ? last : 0
      const over = new AbortController()
      const checks = setInterval(async () => {
        if (!(await visit.caller.stillAllowed())) over.abort()
      }, CHECK_MS)
      try {
        for await (const event of runEvents(daemon.engine, runId, AbortSignal.any([signal, over.signal]), id)) {
          id = Math.max(id + 1, Date.now())
          yield { id, ...event }
        }
      } finally {
        clearInterval(checks)
      }
    }, api.stopping)
  })
}
