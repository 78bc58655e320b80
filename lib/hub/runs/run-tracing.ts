// The hub's part of the trace of a dispatched run: how long it waited for a daemon. The daemon exports the rest.

import { runSpanOf, spanIdOf, traceIdOf } from '../../log/trace.ts'
import type { DaemonRow } from '../access/daemons.ts'
import type { Hub } from '../core/hub.ts'
import type { JobRow } from '../core/queue.ts'

/** Called when the daemon has accepted the run. The span lies below that of the run, which begins later. */
export function traceWait({ tracer, now }: Hub, job: JobRow, daemon: DaemonRow): void {
  const name = String(job.payload.team).replace(/(.)@.*$/, '$1')
  tracer?.add({
    trace: traceIdOf(job.run_id),
    id: spanIdOf('dispatch', job.run_id),
    parent: runSpanOf(job.run_id, 1),
    name: `dispatch ${name}`,
    kind: 'producer',
    start: job.created_at,
    end: now(),
    failed: false,
    attributes: {
      'cicd.pipeline.name': name,
      'cicd.pipeline.run.id': job.run_id,
      'cicd.pipeline.run.state': 'pending',
      'cicd.worker.id': daemon.id,
      'cicd.worker.name': daemon.name,
    },
  })
}
