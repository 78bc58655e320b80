// What hubs do by themselves, as real processes on a database of their own: a store of files that does not answer, and a
// hub that is killed, keep no other chore from being done.

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { createServer, type Socket } from 'node:net'
import { openStore } from '../../db/hub/open-store.ts'
import type { Store } from '../../db/hub/store.ts'
import { until } from '../support/bounded.ts'
import { type Call, DATABASES, type HubProcess, publish, signedIn, startHub, stop } from '../support/served-hubs.ts'

const METRICS_TOKEN = 'a-token-that-reads-metrics'
const TEAM = '@admin/t'
const TEXT = `name: "${TEAM}"\nversion: 1.0.0\nphases: [{ name: a, type: gate, review: { prompt: "?" } }]\n`
/** A lease lasts for a minute, and a hub looks every five seconds. */
const TAKES_OVER_MS = 90_000

/** Ends a run that nobody takes, which is one of the chores, and returns when it has ended. */
async function timesOut(call: Call, realm_id: string): Promise<void> {
  const asked = { realm_id, team: TEAM, queue_timeout: '1s', requires: { labels: { nobody: 'has-this' } } }
  const { run_id } = await call('dispatch/run', asked)
  const isOver = async () => (await call('runs/get', { run_id })).state === 'failed'
  await until(isOver, 'the queue_timeout of a run')
}

/** The values of a metric by chore. */
async function metric({ url }: HubProcess, name: string): Promise<Record<string, number>> {
  const reply = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })
  const found = (await reply.text()).matchAll(new RegExp(`^${name}\\{chore="(\\w+)"\\} (\\S+)$`, 'gm'))
  return Object.fromEntries([...found].map(([, chore, value]) => [chore, Number(value)]))
}

/** How many calls of the store of files have failed. */
async function failedStoreCalls(hubs: readonly HubProcess[]): Promise<number> {
  const counts = hubs.map(async ({ url }) => {
    const reply = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })
    return Number(/^cadre_file_store_calls_total\{result="failed"\} (\d+)$/m.exec(await reply.text())![1])
  })
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}

/** A store of files that takes connections and says nothing, until `answer` is called. */
async function silentBucket() {
  const open = new Set<Socket>()
  let isAnswering = false
  const server = createServer(socket => {
    open.add(socket)
    socket.on('close', () => open.delete(socket)).on('error', () => {})
    socket.on('data', () => isAnswering && socket.end('HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n'))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.address() as { port: number }
  return {
    env: {
      ...{ CADRE_ARTIFACTS: 's3://bucket', AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}`, AWS_REGION: 'x' },
      ...{ AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'x', CADRE_METRICS_TOKEN: METRICS_TOKEN },
    },
    open,
    answer() {
      isAnswering = true
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

const disposable = (store: Store) => Object.assign(store, { [Symbol.asyncDispose]: () => store.close() })

for (const { name, hubs: many, open } of DATABASES) {
  test.concurrent(`a bucket that does not answer stops no other chore, on ${name}`, async () => {
    await using database = await open()
    await using bucket = await silentBucket()
    await using store = disposable(await openStore(database.location))
    const { keptFiles } = store
    const [realm, root] = [crypto.randomUUID(), crypto.randomUUID()]
    const left = { realm_id: realm, root_run_id: root, sha256: 'a'.repeat(64), bytes: 1, kept_for: null, asked_at: 1 }
    await store.write(tx => tx.insert(keptFiles).values(left))
    const hubs = await Promise.all(Array.from({ length: many }, () => startHub(database.location, bucket.env)))
    try {
      const { call, realm_id } = await signedIn(() => hubs[0]!.url)
      await publish(call, realm_id, TEAM, TEXT)
      await until(() => bucket.open.size > 0, 'the hub asks the bucket')
      const [asked] = bucket.open
      await timesOut(call, realm_id)
      expect(bucket.open.has(asked!)).toBe(true)

      const failing = async () => (await metric(hubs[0]!, 'cadre_chore_failing')).delete_files
      await until(async () => (await failing()) === 1, 'the metrics say that the chore fails', TAKES_OVER_MS)
      const errors = await metric(hubs[0]!, 'cadre_chore_last_error_timestamp_seconds')
      expect(Object.keys(errors)).toEqual(['delete_files'])
      expect(await failedStoreCalls(hubs)).toBeGreaterThan(0)
      bucket.answer()
      await until(async () => (await failing()) === 0, 'the file is removed', TAKES_OVER_MS)
      expect(await store.db.select().from(keptFiles)).toEqual([])
    } finally {
      await stop(hubs)
    }
  }, 200_000)
}

const [onSqlite, onPostgres] = DATABASES

test.concurrent('a hub on SQLite that starts after a kill does every chore at once', async () => {
  await using database = await onSqlite!.open()
  let hub = await startHub(database.location)
  const { call, realm_id } = await signedIn(() => hub.url)
  await publish(call, realm_id, TEAM, TEXT)
  await timesOut(call, realm_id)
  hub.child.kill('SIGKILL')
  await hub.child.exited
  hub = await startHub(database.location)
  try {
    await timesOut(call, realm_id)
  } finally {
    await stop([hub])
  }
}, 120_000)

test.concurrent('audit entries that cannot be sealed are a chore that fails, until they can', async () => {
  await using database = await onSqlite!.open()
  const hub = await startHub(database.location, { CADRE_METRICS_TOKEN: METRICS_TOKEN })
  using db = new Database(database.location)
  // The hub writes, too.
  db.run('PRAGMA busy_timeout = 10000')
  try {
    db.run("CREATE TRIGGER broken BEFORE UPDATE OF hash ON audit BEGIN SELECT RAISE(ABORT, 'no seals here'); END")
    await signedIn(() => hub.url)
    const failing = async () => (await metric(hub, 'cadre_chore_failing')).seal_audit_entries
    await until(async () => (await failing()) === 1, 'the metrics say that the chore fails')
    expect(await hub.log()).toContain('no seals here')
    db.run('DROP TRIGGER broken')
    await until(async () => (await failing()) === 0, 'the chore goes on')
    expect(db.query('SELECT count(*) AS left FROM audit WHERE position IS NULL').get()).toEqual({ left: 0 })
  } finally {
    await stop([hub])
  }
}, 120_000)

test.skipIf(!onPostgres)(
  'one hub at a time does each chore, and another one when it was killed or stops',
  async () => {
    await using database = await onPostgres!.open()
    const env = { CADRE_METRICS_TOKEN: METRICS_TOKEN }
    const first = await startHub(database.location, env)
    await using store = disposable(await openStore(database.location))
    const { chores, db } = store
    const rows = () => db.select().from(chores)
    const holders = async () => [...new Set((await rows()).map(({ holder }) => holder))]
    const [holder] = await until(async () => {
      const found = await holders()
      return found.length === 1 && found[0] !== null && found
    }, 'the first hub has taken every chore')
    const second = await startHub(database.location, env)
    const { call, realm_id } = await signedIn(() => second.url)
    await publish(call, realm_id, TEAM, TEXT)
    await timesOut(call, realm_id)
    expect(await holders()).toEqual([holder!])

    first.child.kill('SIGKILL')
    await first.child.exited
    const isOther = async () => (await holders()).every(each => each !== holder && each !== null)
    await until(isOther, 'the second hub has taken every chore', TAKES_OVER_MS)
    const [other] = await holders()
    await timesOut(call, realm_id)
    const ran = async () => Object.keys(await metric(second, 'cadre_chore_last_run_timestamp_seconds')).sort()
    const names = (await rows()).map(each => each.name)
    const own = ['check_lineage', 'choose_sealing_key', 'compare_clocks', 'read_refused_starts', 'seal_audit_entries']
    await until(
      async () => Bun.deepEquals(await ran(), [...names, ...own].sort()),
      'every chore has run',
      TAKES_OVER_MS,
    )

    const third = await startHub(database.location, env)
    await stop([second])
    const now = await holders()
    expect(now).not.toContain(other!)
    try {
      const isTaken = async () => (await holders()).every(each => each !== null)
      await until(isTaken, 'the third hub has taken every chore')
    } finally {
      await stop([third])
    }
    expect(await holders()).toEqual([null])
  },
  300_000,
)
