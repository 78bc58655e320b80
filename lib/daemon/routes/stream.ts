// runs/stream: the events of a run and of all runs below it, as server-sent events. Each connection begins with the
// present state. An event id says up to when all was told before the event (epoch milliseconds), with three more digits that
// count the events since. So a connection may break at any event, and however many of them have come at once. A reader that
// reconnects (Last-Event-ID) gets the log lines since then again, and recognizes lines that it already has by their numbers.

import { resource } from '../../http/resource.ts'
import { eventStream } from '../../http/stream.ts'
import { StreamRun } from '../../wire/calls/runs.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { datedEvents } from '../runs/events.ts'
import { target } from './runs.ts'

/** So many events may have the time of the same millisecond; whatever more there are take the next ones. */
const IDS_EACH_MS = 1_000
/** Ids were milliseconds before. Those of the next thousand years are less, and the others are more. */
const LAST_MS = 1e14

/** Up to when whoever has the event with this id was told all; 0: nobody was. */
const toldAt = (id: number): number => (id < LAST_MS ? id : Math.floor(id / IDS_EACH_MS))

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
          const until = AbortSignal.any([signal, over.signal])
          for await (const [event, told] of datedEvents(daemon.engine, runId, until, toldAt(id))) {
            id = Math.max(id + 1, told * IDS_EACH_MS)
            yield { id, ...event }
          }
        } finally {
          clearInterval(checks)
        }
      }, stopping.signal)
    }),
  ])
