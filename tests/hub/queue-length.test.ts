// What a claim reads does not grow with the queue: on PostgreSQL by the rows that its statements read, whatever the planner
// knew of the tables, and on SQLite by their plans. No time is measured.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type SQL, sql } from 'drizzle-orm'
import type { Db, Store } from '../../db/hub/store.ts'
import type { Hub } from '../../lib/hub/core/hub.ts'
import { type ClaimingDaemon, claimableJobs, waitingJobs } from '../../lib/hub/queue/claims.ts'
import { endUndeliverableRunsOfAllRealms } from '../../lib/hub/queue/run-ends.ts'
import { giveUpJobs, hasUndeliverableJobs, nextDeadline } from '../../lib/hub/queue/undeliverable-jobs.ts'
import { createHub } from '../../lib/hub/serve.ts'
import { createLog } from '../../lib/log/log.ts'
import { claim } from '../support/claims.ts'
import { drivenClock } from '../support/driven-clock.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { statementsOf } from '../support/statements.ts'

const FEW = 400
const MANY = 3_000
/** The most rows and entries of indexes that a claim reads with all that belongs to it. */
const MOST_READ = 250
/** PostgreSQL plans a statement anew for each of its first five uses, and may then keep a plan for good. */
const USES = 8
const NOW = 1_000_000

let served: TestHub
let hub: Hub

beforeAll(async () => {
  served = await startTestHub()
  hub = createHub({
    store: served.store,
    log: createLog({ write: () => {} }),
    home: folder(),
    clock: drivenClock(() => NOW),
  })
})
afterAll(() => served.stop())

async function newTaker(): Promise<ClaimingDaemon> {
  const slug = `r${crypto.randomUUID()}`
  const { id } = await served.ok(served.admin, 'realms/create', { org_id: 1, slug, name: 'queue' })
  return { id: 'd1', realm_id: id, workspaces: [], labels: null, agents: [], paused: false }
}

/** A transaction with the queue of a realm. */
class Queue {
  readonly #taker: ClaimingDaemon
  readonly #tx: Db
  readonly #store: Store

  constructor(taker: ClaimingDaemon, tx: Db) {
    this.#taker = taker
    this.#tx = tx
    this.#store = { ...served.store, db: tx }
  }

  /** Adds jobs with a deadline that is far away, each with its run. Half of them are meant for some daemon. */
  async add(count: number, state: 'waiting' | 'done' = 'waiting'): Promise<void> {
    const { jobs, runs } = this.#store
    const { realm_id } = this.#taker
    for (let left = count; left > 0; left -= 500) {
      const ids = Array.from({ length: Math.min(500, left) }, () => Bun.randomUUIDv7())
      const run = { realm_id, call_path: ['t'], call_depth: 0, tree_key: '', team: 't', inputs: {}, attempt: 0 }
      const row = (id: string) => ({ run_id: id, root_run_id: id, ...run, state: 'queued', created_at: NOW })
      await this.#tx.insert(runs).values(ids.map(row))
      const job = { realm_id, kind: 'run' as const, payload: {}, priority: 0, state, deliveries: 0, created_by: 1 }
      const times = { created_at: NOW, expires_at: 2 * NOW, finished_at: state === 'done' ? NOW : null }
      const meant = (at: number) => (at % 2 === 0 ? null : `d${at % 8}`)
      await this.#tx
        .insert(jobs)
        .values(ids.map((id, at) => ({ id, run_id: id, ...job, ...times, daemon_id: meant(at) })))
    }
  }

  /** All that a poll which claims a job asks of the queue, and what the room and the chores ask. */
  async use(times = USES): Promise<void> {
    const [store, tx, taker] = [this.#store, this.#tx, this.#taker]
    const realm = taker.realm_id
    for (let use = 0; use < times; use++) {
      expect(await hasUndeliverableJobs(store, realm, NOW)).toBe(false)
      expect(await nextDeadline(store, realm, NOW)).toBeGreaterThan(NOW)
      expect((await waitingJobs(store, realm, NOW)).needs).toHaveLength(1)
      expect(await claimableJobs(store, store.db, taker, 1, NOW)).not.toBeNull()
      expect(await giveUpJobs(store, tx, realm, NOW)).toEqual([])
      expect(await claim(store, tx, taker, 1, NOW)).toHaveLength(1)
      await Array.fromAsync(endUndeliverableRunsOfAllRealms({ ...hub, store }))
    }
  }

  // biome-ignore lint/suspicious/noExplicitAny: only PostgreSQL has this method
  #execute = (statement: SQL): Promise<unknown> => (this.#tx as any).execute(statement)
  analyze = () => this.#execute(sql`ANALYZE`)
  /** Gives the tables new files, without what earlier transactions have left in them. */
  empty = () => this.#execute(sql`TRUNCATE runs CASCADE`)

  /** The rows and the entries of indexes that the transaction has read so far. */
  async #readSoFar(): Promise<number> {
    const read = sql`(SELECT sum(pg_stat_get_xact_tuples_returned(oid)) AS read FROM pg_class WHERE relnamespace = 'public'::regnamespace) AS t`
    const [row] = await this.#tx.select({ read: sql<string>`read` }).from(read)
    return Number(row!.read)
  }

  async read(work: () => Promise<void>): Promise<number> {
    const before = await this.#readSoFar()
    await work()
    return (await this.#readSoFar()) - before
  }
}

/** Does `within` in a transaction of which nothing stays. */
async function undone(within: (queue: Queue, tx: Db) => Promise<void>): Promise<void> {
  const taker = await newTaker()
  const over = new Error('undone')
  await served.store
    .write(async tx => {
      await within(new Queue(taker, tx), tx)
      throw over
    })
    .catch(error => {
      if (error !== over) throw error
    })
}

const HISTORIES: Record<string, (queue: Queue) => Promise<unknown>> = {
  'nothing is known of the tables': queue => queue.add(MANY),
  'the statements are older than the queue': async queue => {
    await queue.add(FEW)
    await queue.use()
    await queue.add(MANY)
  },
  'the tables were analysed when they were almost empty': async queue => {
    await queue.add(FEW)
    await queue.analyze()
    await queue.use()
    await queue.add(MANY)
  },
  'the tables were analysed when all jobs had ended': async queue => {
    await queue.add(MANY, 'done')
    await queue.analyze()
    await queue.add(FEW)
    await queue.use()
    await queue.add(MANY)
  },
  'the tables were analysed when the queue was long': async queue => {
    await queue.add(MANY)
    await queue.analyze()
  },
}

for (const [name, grow] of Object.entries(HISTORIES)) {
  test(`PostgreSQL reads as little of a long queue as of a short one: ${name}`, async () => {
    if (served.store.dialect === 'sqlite') return
    await undone(async queue => {
      await queue.empty()
      await grow(queue)
      for (let use = 0; use < USES; use++) expect(await queue.read(() => queue.use(1))).toBeLessThan(MOST_READ)
    })
  })
}

/** How SQLite finds jobs when it reads no more than it needs: each index with enough columns to leave only those. */
const SPARING = [
  // All jobs of which a delivery has not been accepted, in every realm.
  /^SCAN jobs USING INDEX jobs_lease$/,
  /^SEARCH jobs USING (COVERING )?INDEX jobs_queue \(realm_id=\? AND kind=\?/,
  /^SEARCH jobs USING (COVERING )?INDEX jobs_(lease|expiry) \(realm_id=\? AND (lease_until|expires_at)[<>]\?\)$/,
  /^SEARCH (jobs|cancels) USING INDEX jobs_run \(run_id=\?\)$/,
  /^SEARCH jobs USING (COVERING )?INDEX sqlite_autoindex_jobs_1 \(id=\?\)$/,
]

test('SQLite finds the jobs of a claim by their indexes, and sorts none', async () => {
  if (served.store.dialect !== 'sqlite') return
  let texts: string[] = []
  await undone(async (queue, tx) => {
    await queue.add(FEW)
    texts = await statementsOf(tx, () => queue.use(1))
  })
  using db = new Database(served.database, { readonly: true })
  const plans = texts.flatMap(text => db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${text}`).all())
  const steps = plans.map(({ detail }) => detail).filter(detail => /\b(jobs|cancels|TEMP B-TREE)\b/.test(detail))
  expect(steps.filter(step => !SPARING.some(form => form.test(step)))).toEqual([])
  expect(steps.length).toBeGreaterThan(20)
})
