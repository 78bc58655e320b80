// runs/stream: the events of a run and of all runs below it, as server-sent events. Each connection begins with the
// present state. Event ids are epoch milliseconds, increased where two would be equal. A reader that reconnects
// (Last-Event-ID) gets the log lines since then again, and recognizes lines that it already has by their numbers.

import { resource } from '../../http/resource.ts'
import { eventStream } from '../../http/stream.ts'
import { StreamRun } from '../../wire/calls/runs.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { runEvents } from '../runs/events.ts'
import { target } from './runs.ts'

/** A stream ends within 5 s after its credential does. */
const CHECK_MS = 2_000

export const stream = (daemon: Daemon, kit: DaemonKit) =>
  resource('stream', kit, [
    answer(StreamRun, ({ query, caller, headers, request, server, stopping }) => {
      const runId = target(daemon, caller, query.run_id)
      const last = Number(headers['last-event-id'])
      server?.timeout(request, 0)
      return eventStream(async function* numbered(signal) {
        let id = Number.isSafeInteger(last) && last > 0 ? last : 0
        const over = new AbortController()
        const checks = setInterval(async () => {
          if (!(await caller.stillAllowed())) over.abort()
        }, CHECK_MS)
        try {
          for await (const event of runEvents(daemon.engine, runId, AbortSignal.any([signal, over.signal]), id)) {
            id = Math.max(id + 1, Date.now())
            yield { id, ...event }
          }
        } finally {
          clearInterval(checks)
        }
      }, stopping.signal)
    }),
  ])
