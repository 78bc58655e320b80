// A job that the hub delivers again while this daemon hears that its earlier delivery is over.

import { Database } from 'bun:sqlite'
import { test } from 'bun:test'
import { readMigrations } from '../../db/open.ts'
import { JobTable } from '../../lib/daemon/link/job-table.ts'
import { Jobs } from '../../lib/daemon/link/jobs.ts'
import { CadreError } from '../../lib/error.ts'
import { RunIds } from '../../lib/files/run-ids.ts'
import { livedMs } from '../../lib/lived-time.ts'
import { createLog } from '../../lib/log/log.ts'
import { createRedactor } from '../../lib/secrets/redact.ts'
import { startPause } from '../../lib/wait.ts'
import type { AnyLeasedJob } from '../../lib/wire/records/jobs.ts'
import { until } from '../support/bounded.ts'
import { commitTo } from '../support/commit.ts'

const migrations = await readMigrations(`${import.meta.dir}/../../db/daemon/migrations`)
const JOBS = migrations.find(({ name }) => name.endsWith('_jobs.sql'))!.sql

const leaseOf = (lease: number) => `00000000-0000-4000-8000-00000000000${lease}`

/** A delivery of the job, whose form no daemon knows, so that it is refused at once. */
const delivery = (lease: number): AnyLeasedJob => ({
  job_id: crypto.randomUUID(),
  lease_id: leaseOf(lease),
  attempt: lease,
  lease_until: 0,
  kind: 'run',
  run_id: new RunIds().next(),
  payload: {},
})

test('a job that comes again while its earlier delivery is being dropped is worked on', async () => {
  using db = new Database(':memory:')
  db.run(JOBS)
  const book = new JobTable(db, commitTo(db))
  const stop = new AbortController()
  const answers: string[] = []
  const job = delivery(1)
  const jobs = new Jobs({
    book,
    log: createLog({ write: () => {} }),
    signal: stop.signal,
    changed: () => {},
    startPause,
    lived: livedMs,
    ack: async ({ lease_id }) => {
      answers.push(lease_id)
      if (lease_id !== leaseOf(1)) return
      // The lease of the first delivery is over. The reply to a poll, with the second, arrives together with this one.
      void jobs.take([{ ...job, lease_id: leaseOf(2), attempt: 2 }])
      throw new CadreError('conflict', 'the lease is over')
    },
    host: {
      freeSlots: () => 1,
      mask: createRedactor().json,
      attempt: () => null,
      prepare: async () => {},
      start: async () => {},
      ended: async () => {},
      cancel: async () => {},
      resume: async () => {},
      decide: async () => {},
      tell: async () => {},
    },
  })
  jobs.start()
  await jobs.take([job])
  await until(() => answers.length === 2, 'the second delivery is answered', 5_000)
  await until(() => book.ids().length === 0, 'nothing is left', 5_000)
  stop.abort()
})
