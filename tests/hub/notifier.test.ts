// Who waits for something to change: woken when it is there to be read, not before, and after every loss of words.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { openStore } from '../../db/hub/open-store.ts'
import type { Db } from '../../db/hub/store.ts'
import type { Hub } from '../../lib/hub/core/hub.ts'
import type { JobRow } from '../../lib/hub/core/job-rows.ts'
import { createNotifier } from '../../lib/hub/core/notifier.ts'
import { enqueueJob } from '../../lib/hub/queue/jobs.ts'
import { endUndeliverableRuns, failRefusedRun } from '../../lib/hub/queue/run-ends.ts'
import { createHub } from '../../lib/hub/serve.ts'
import { createLog } from '../../lib/log/log.ts'
import { until } from '../support/bounded.ts'
import { folder } from '../support/folder.ts'
import { AGAIN, freshPostgres, startTestHub, type TestHub } from '../support/hub.ts'

let tested: TestHub
let hub: Hub
beforeAll(async () => {
  tested = await startTestHub()
  hub = createHub({ store: tested.store, log: createLog({ write: () => {} }), home: folder() })
})
afterAll(() => tested.stop())

const FOREVER_MS = 1_000_000
const never = new AbortController().signal

/** A run that waited too long for a daemon. */
async function queued() {
  const { store } = hub
  const run_id = Bun.randomUUIDv7()
  const place = { run_id, realm_id: tested.realm, root_run_id: run_id, call_path: ['t'], call_depth: 0, tree_key: '' }
  return store.write(async tx => {
    await tx
      .insert(store.runs)
      .values({ ...place, team: 't', state: 'queued', inputs: {}, attempt: 0, created_at: hub.now() })
    const job = { realm_id: tested.realm, run_id, kind: 'run' as const, payload: {}, created_by: 1 }
    return enqueueJob(store, tx, { ...job, expires_at: hub.now() - 1 }, hub.now())
  })
}

const stateOf = async (run_id: string) => {
  const { db, runs } = hub.store
  return (await db.select().from(runs).where(eq(runs.run_id, run_id)))[0]!.state
}

const ends = {
  'is lost': async tx => void (await endUndeliverableRuns(hub, tx, tested.realm)),
  'is refused': (tx, job) => failRefusedRun(hub, tx, job, 'desk'),
} satisfies Record<string, (tx: Db, job: JobRow) => Promise<void>>

test.each(Object.entries(ends))('when a run %s, its streams are woken as soon as they can read it', async (_, end) => {
  const job = await queued()
  using news = hub.notifier.subscribe(`run ${job.run_id}`)
  const read = news.wait(FOREVER_MS, never).then(() => stateOf(job.run_id))
  await hub.store.write(async tx => {
    await end(tx, job)
    // The others have a turn before the commit.
    await tx.select().from(hub.store.orgs)
  })
  expect(await read).toBe('failed')
})

test.each(Object.entries(ends))(
  'when a transaction in which a run %s is rolled back, nobody is woken',
  async (_, end) => {
    const job = await queued()
    using news = hub.notifier.subscribe(`run ${job.run_id}`)
    const rolledBack = hub.store.write(async tx => {
      await end(tx, job)
      throw new Error('undone')
    })
    await expect(rolledBack).rejects.toThrow('undone')
    const gaveUp = new AbortController()
    const waited = news.wait(FOREVER_MS, gaveUp.signal).then(() => gaveUp.signal.aborted)
    await stateOf(job.run_id)
    gaveUp.abort()
    expect(await waited).toBe(true)
  },
)

const server = AGAIN ? undefined : process.env.TEST_POSTGRES_URL

test.skipIf(!server)(
  'who waits looks again when LISTEN was lost (skipped without TEST_POSTGRES_URL)',
  async () => {
    await using database = await freshPostgres(server!)
    const store = await openStore(database.location)
    const notifier = createNotifier(store.channel)
    const sql = new Bun.SQL(database.location, { max: 1 })
    using news = notifier.subscribe('realm of some daemon')
    for (let round = 0; round < 2; round++) {
      const woken = news.wait(FOREVER_MS, never)
      const cut = await sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE 'LISTEN%' AND pid <> pg_backend_pid()`
      expect(cut).toHaveLength(1)
      await woken
    }
    // And hears words as before.
    const woken = news.wait(FOREVER_MS, never)
    await sql.notify('cadre_hub', 'realm of some daemon')
    await woken
    await sql.close()
    await store.close()
  },
  60_000,
)

test.skipIf(!server)(
  'the same word, rung many times at once, is sent once (skipped without TEST_POSTGRES_URL)',
  async () => {
    await using database = await freshPostgres(server!)
    const [near, far] = [await openStore(database.location), await openStore(database.location)]
    const heard: string[] = []
    far.channel!.receive(
      word => heard.push(word),
      () => {},
    )
    for (let time = 0; time < 100; time++) for (const word of ['realm a', 'realm "b"']) near.channel!.send(word)
    await until(() => heard.length >= 2, 'both words')
    for (const word of ['realm a', 'last']) near.channel!.send(word)
    await until(() => heard.includes('last'), 'the last word')
    expect(heard).toEqual(['realm a', 'realm "b"', 'realm a', 'last'])
    await near.close()
    await far.close()
  },
  60_000,
)

test.skipIf(!server)(
  'a word whose sending gets no answer holds up later ones for seconds only (skipped without TEST_POSTGRES_URL)',
  async () => {
    await using database = await freshPostgres(server!)
    const sql = new Bun.SQL(database.location, { max: 1 })
    // A server that does not answer to one word, as over a connection that is dead.
    await sql.unsafe(`CREATE FUNCTION public.pg_notify(channel text, word text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
      IF word = 'slow' THEN PERFORM pg_sleep(60); END IF; PERFORM pg_catalog.pg_notify(channel, word); END $$`)
    const name = new URL(database.location).pathname.slice(1)
    await sql.unsafe(`ALTER DATABASE ${name} SET search_path = public, pg_catalog`)
    const [near, far] = [await openStore(database.location), await openStore(database.location)]
    const heard: string[] = []
    far.channel!.receive(
      word => heard.push(word),
      () => {},
    )
    near.channel!.send('slow')
    const stuck = async () => {
      const found =
        await sql`SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()`
      return found.length > 0
    }
    await until(stuck, 'the word that gets no answer')
    near.channel!.send('later')
    await until(() => heard.includes('later'), 'the later word', 30_000)
    expect(heard).toEqual(['later'])
    await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`
    await sql.close()
    await near.close()
    await far.close()
  },
  60_000,
)
