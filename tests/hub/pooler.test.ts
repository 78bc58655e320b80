// Two hub processes that reach PostgreSQL by a pooler in transaction mode, which gives a connection of theirs a server's only
// for the time of a transaction, or that are on an engine without LISTEN, advisory locks and PostgreSQL's settings.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { findSessions } from '../../db/hub/sessions.ts'
import { until } from '../support/bounded.ts'
import { command } from '../support/daemon.ts'
import { farAway } from '../support/far-away.ts'
import { firstVersion } from '../support/first-version.ts'
import { folder } from '../support/folder.ts'
import { freshPostgres } from '../support/hub.ts'
import { otherEngine } from '../support/other-engine.ts'
import { hasPgBouncer, startPgBouncer } from '../support/pgbouncer.ts'
import { serveDaemon } from '../support/served-daemon.ts'
import { METRICS_TOKEN } from '../support/served-hub.ts'
import { type Call, type HubProcess, publish, signedIn, spawnHub, startHub, stop } from '../support/served-hubs.ts'

const server = process.env.TEST_POSTGRES_URL
if (!server) console.log('skipped: hubs behind a pooler (needs TEST_POSTGRES_URL)')

/** What CockroachDB, and YugabyteDB before 2025.2, do not have or call otherwise. */
const LACKS =
  /^\s*(un)?listen\b|^\s*notify\b|pg_notify|advisory|enable_seqscan|\bjit\b|lock table|pg_control_system|txid_current/i

const WAYS = [
  {
    name: 'by PgBouncer, as the hub is told',
    env: { CADRE_HUB_POOLER: 'transaction' },
    open: startPgBouncer,
    isTold: true,
  },
  { name: 'by PgBouncer, as the hub notices', env: {}, open: startPgBouncer, isTold: false },
  {
    name: 'by PgBouncer, which refuses a parameter of the address',
    env: {},
    async open(database: string) {
      const pooler = await startPgBouncer(database)
      return { ...pooler, location: `${pooler.location}?jit=off` }
    },
    isTold: false,
  },
  {
    name: 'on an engine without sessions',
    env: {},
    open: (database: string) => otherEngine(database, LACKS),
    isTold: false,
  },
]

const TEAM = `
name: "@admin/t"
version: 1.0.0
phases:
  - { name: a, agent: exec, commands: [{ name: a, run: "true" }] }
`

const open = (location: string, env: Record<string, string>) =>
  startHub(location, { ...env, CADRE_METRICS_TOKEN: METRICS_TOKEN, CADRE_HUB_STATEMENT_SECONDS: '2' })

/** A way by PgBouncer is skipped where that is not installed. */
const isThere = ({ name }: { name: string }) => server !== undefined && (hasPgBouncer || !name.includes('PgBouncer'))

describe.each(WAYS.filter(isThere))('two hubs $name', ({ env, open: openWay, isTold }) => {
  let database: Awaited<ReturnType<typeof freshPostgres>>
  let way: AsyncDisposable & { location: string }
  let hubs: HubProcess[]
  let call: Call
  let second: Call
  let realm_id: string

  beforeAll(async () => {
    database = await freshPostgres(server!, { empty: true })
    way = await openWay(database.location)
    // At once: one of them migrates and makes the first account, the other waits.
    hubs = await Promise.all([open(way.location, env), open(way.location, env)])
    ;({ call, realm_id } = await signedIn(() => hubs[0]!.url))
    ;({ call: second } = await signedIn(() => hubs[1]!.url))
    await publish(call, realm_id, '@admin/t', TEAM)
  }, 60_000)
  afterAll(async () => {
    await using _ = database
    await using __ = way
    await stop(hubs)
  })

  test('they say how they find news, where nobody has told them', async () => {
    for (const { url, log } of hubs) {
      const { data } = (await (await fetch(`${url}/ready`)).json()) as { data: object }
      expect(data).toEqual(isTold ? { status: 'ready' } : { status: 'ready', wake_ups: 'polled' })
      expect((await log()).includes('CADRE_HUB_POOLER=transaction')).toBe(!isTold)
    }
    const { stdout } = await command(['status', '--hub', hubs[0]!.url], { home: folder() })
    expect(stdout.includes('the hub polls its database')).toBe(!isTold)
    const metrics = await fetch(`${hubs[0]!.url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })
    expect(await metrics.text()).toContain('\ncadre_hub_database_polled 1\n')
  })

  test('a poll that waits at one is woken by a dispatch at the other', async () => {
    const { token } = await call('auth/generate_token', { type: 'realm', name: 'r', realm_ids: [realm_id] })
    const { daemon_id } = await call('daemons/register', { name: 'by hand' }, token)
    const poll = call('daemons/poll', { daemon_id, slots: 1, wait_ms: 20_000 }, token)
    await Bun.sleep(300)
    // By itself the poll would look again after five seconds: too late for this one.
    const { run_id } = await second('dispatch/run', { realm_id, team: '@admin/t', queue_timeout: '4s' })
    const { jobs } = await poll
    expect(jobs).toMatchObject([{ run_id, kind: 'run' }])
    const { job_id, lease_id } = jobs[0]
    await second('daemons/ack', { daemon_id, job_id, lease_id, status: 'accepted' }, token)
  })

  test('a daemon of one executes and reports what was dispatched at the other', async () => {
    const { token } = await call('auth/generate_token', { type: 'realm', name: 'd', realm_ids: [realm_id] })
    const daemon = await serveDaemon({ env: { CADRE_HUB_URL: hubs[0]!.url, CADRE_REALM_TOKEN: token } })
    const runs: string[] = []
    for (let n = 0; n < 5; n++) runs.push((await second('dispatch/run', { realm_id, team: '@admin/t' })).run_id)
    for (const run_id of runs) {
      await until(async () => (await second('runs/get', { run_id })).state === 'completed', 'the run has ended')
    }
    await daemon.stop()
  }, 60_000)

  test('each chore is done by one of them, and what is due is done', async () => {
    const order = { realm_id, team: '@admin/t', queue_timeout: '1s', requires: { labels: { never: 'there' } } }
    const { run_id } = await second('dispatch/run', order)
    await until(async () => (await call('runs/get', { run_id })).state === 'failed', 'its time in the queue is over')
    const sql = new Bun.SQL(database.location, { max: 1 })
    const holders = await sql`SELECT count(*)::int AS chores, count(holder)::int AS held FROM chores`
    expect(holders[0].held).toBe(holders[0].chores)
    await sql.close()
  }, 60_000)

  test('a statement that takes too long is ended by the server, and only it', async () => {
    const sql = new Bun.SQL(database.location, { max: 2 })
    const over = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    const holding = sql.begin(async tx => {
      await tx`LOCK TABLE packages`
      // Writes alone wait for this one.
      await tx`LOCK TABLE orgs IN SHARE MODE`
      held.resolve()
      await over.promise
    })
    await held.promise
    const session = await sessionAt(hubs[0]!.url)
    const ask = async (path: string, body: object) => {
      const { status, headers } = await fetch(`${hubs[0]!.url}/v1/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${session}` },
        body: JSON.stringify(body),
      })
      return [status, headers.has('retry-after')]
    }
    const create = ask('orgs/create', { slug: 'late', display_name: 'Late' })
    expect([await ask('teams/list', {}), await create]).toEqual([
      [503, true],
      [503, true],
    ])
    const waiting = () =>
      sql`SELECT count(*)::int AS many FROM pg_locks WHERE relation IN ('packages'::regclass, 'orgs'::regclass) AND NOT granted`
    await until(async () => (await waiting())[0].many === 0, 'no statement waits behind a call that has ended')
    over.resolve()
    await holding
    await sql.close()
    await call('teams/list')
  }, 60_000)

  test('nothing that they set stays with a connection of the server', async () => {
    // All at once, so that each has a server's connection of its own.
    const clients = Array.from(
      { length: 6 },
      () => new Bun.SQL(way.location.replace('?jit=off', ''), { max: 1, prepare: false }),
    )
    const found = await Promise.all(
      clients.map(async sql => {
        await sql.unsafe('BEGIN').simple()
        const rows = await sql.unsafe(
          `SELECT name, setting FROM pg_settings WHERE source = 'session' AND name <> 'client_encoding'
             AND name NOT IN ('DateStyle', 'TimeZone', 'application_name', 'standard_conforming_strings')`,
        )
        await Bun.sleep(200)
        await sql.unsafe('COMMIT').simple()
        return [...rows]
      }),
    )
    await Promise.all(clients.map(sql => sql.close()))
    expect(found.flat()).toEqual([])
  })
})

async function sessionAt(url: string): Promise<string> {
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'admin', password: 'known' }),
  }
  return ((await (await fetch(`${url}/v1/session/create`, init)).json()) as { data: { token: string } }).data.token
}

test.skipIf(!server)(
  'a database that is far away keeps sessions all the same',
  async () => {
    // To connect and to listen takes longer than a notification is waited for.
    await using far = await farAway(server!, 600)
    expect(await findSessions(far.location)).toEqual({ url: far.location, lack: null })
  },
  30_000,
)

test.skipIf(!server || !hasPgBouncer)(
  'a hub that is killed in the middle of migrations leaves them to the other',
  async () => {
    await using database = await freshPostgres(server!, { empty: true })
    const sql = new Bun.SQL(database.location, { max: 2 })
    await firstVersion(sql)
    await using pooler = await startPgBouncer(database.location)
    const over = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    const holding = sql.begin(async tx => {
      await tx`SELECT count(*) FROM runs`
      held.resolve()
      await over.promise
    })
    await held.promise
    const env = { CADRE_HUB_POOLER: 'transaction' }
    const first = spawnHub(pooler.location, env)
    const blocked = () => sql`
      SELECT a.pid FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid
      WHERE a.datname = current_database() AND l.relation = 'runs'::regclass AND NOT l.granted`
    await until(async () => (await blocked()).length > 0, 'the first migrates')
    const second = spawnHub(pooler.location, env)
    await until(async () => (await second.log()).includes('of another hub that migrates'), 'the second waits for it')
    first.child.kill('SIGKILL')
    await first.child.exited
    // What the first had sent may still wait in the server until its deadline.
    await until(async () => (await second.log()).includes('"lock":"runs"'), 'the second migrates', 60_000)
    over.resolve()
    await holding
    const hub = await second.served()
    const { call } = await signedIn(() => hub.url)
    expect((await call('runs/list')).runs).toEqual([])
    await stop([hub])
    await sql.close()
  },
  120_000,
)
