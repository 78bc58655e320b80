// Two hub processes on one PostgreSQL, calls alternating between them: what one decides the other knows at once.
// Needs `TEST_POSTGRES_URL`, a server where databases may be created.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { openStore } from '../../db/hub/open-store.ts'
import { until } from '../support/bounded.ts'
import { folder } from '../support/folder.ts'
import { freshPostgres } from '../support/hub.ts'
import { CHEAP_PASSWORDS, environmentAt, HUB } from '../support/program.ts'
import { runChange } from '../support/sync.ts'

const server = process.env.TEST_POSTGRES_URL

interface Reply {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect by asserting it
  data: any
}

describe.skipIf(!server)('two hubs on one PostgreSQL (skipped without TEST_POSTGRES_URL)', () => {
  let database: Awaited<ReturnType<typeof freshPostgres>>
  let hubs: { url: string; child: Bun.Subprocess }[]
  let session: string
  let realm: string
  let turn = 0

  async function start() {
    const home = folder()
    const child = Bun.spawn([...HUB, 'serve', '--port', '0', '--database', database.location], {
      env: {
        ...environmentAt(home),
        ...CHEAP_PASSWORDS,
        CADRE_HOME: home,
        CADRE_ADMIN_PASSWORD: 'known',
        CADRE_HUB_KEY: 'k',
      },
      stdout: 'pipe',
      stderr: 'ignore',
    })
    const { value } = await child.stdout.getReader().read()
    return { child, url: /http:\S+/.exec(new TextDecoder().decode(value))![0] }
  }

  const post = async (hub: number, path: string, body: object = {}, token = session): Promise<Reply> => {
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    const reply = await fetch(`${hubs[hub]!.url}/v1/${path}`, init)
    return { status: reply.status, ...((await reply.json()) as { data: unknown }) } as Reply
  }
  /** On the other hub than the call before. */
  const call = (path: string, body: object = {}, token = session) => post(turn++ % 2, path, body, token)

  beforeAll(async () => {
    database = await freshPostgres(server!, { empty: true })
    // At once: one of them migrates and makes the first account, the other waits.
    hubs = await Promise.all([start(), start()])
    session = (await post(0, 'session/create', { username: 'admin', password: 'known' }, '')).data.token
    realm = (await call('realms/list')).data.realms[0].id
  })
  afterAll(async () => {
    await using _ = database
    for (const { child } of hubs) child.kill('SIGTERM')
    expect(await Promise.all(hubs.map(({ child }) => child.exited))).toEqual([0, 0])
  })

  async function daemon(name: string) {
    const { token } = (await call('auth/generate_token', { type: 'realm', name, realm_ids: [realm] })).data
    const { daemon_id } = (await call('daemons/register', { name }, token)).data
    return { token: token as string, daemon_id: daemon_id as string }
  }

  test('a token that one revokes is dead on the other, and so is a former secret', async () => {
    for (let n = 0; n < 6; n++) {
      const { token, id } = (await call('auth/generate_token', { type: 'user', name: `t${n}` })).data
      expect((await call('auth/whoami', {}, token)).status).toBe(200)
      expect((await call('auth/whoami', {}, token)).status).toBe(200)
      const { token: next } = (await call('auth/rotate_token', { id })).data
      expect([(await call('auth/whoami', {}, token)).status, (await call('auth/whoami', {}, token)).status]).toEqual([
        401, 401,
      ])
      await call('auth/revoke_token', { id })
      expect([
        (await post(0, 'auth/whoami', {}, next)).status,
        (await post(1, 'auth/whoami', {}, next)).status,
      ]).toEqual([401, 401])
    }
  })

  test('a membership that one ends, the other no longer counts', async () => {
    const { id } = (await call('orgs/create', { slug: 'both', display_name: 'Both' })).data
    const user = { username: 'una', password: 'password of una' }
    await call('users/create', user)
    await call('orgs/add_member', { org_id: id, username: 'una', role: 'member' })
    const una = (await call('session/create', user, '')).data.token
    for (const hub of [0, 1]) expect((await post(hub, 'orgs/get_by_id', { org_id: id }, una)).status).toBe(200)
    expect((await call('orgs/remove_member', { org_id: id, username: 'una' })).status).toBe(200)
    for (const hub of [0, 1]) expect((await post(hub, 'orgs/get_by_id', { org_id: id }, una)).status).toBe(404)
  })

  test('each slug is given once, however the two race', async () => {
    const slugs = Array.from({ length: 10 }, (_, n) => `raced${n}`)
    const replies = await Promise.all(
      slugs.flatMap(slug => [0, 1].map(hub => post(hub, 'orgs/create', { slug, display_name: slug }))),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([...Array(10).fill(200), ...Array(10).fill(409)])
  })

  test('a poll that waits at one is woken by a dispatch at the other, and each job goes out once', async () => {
    const files = [{ path: 'team.yml', content_base64: Buffer.from(TEAM).toString('base64') }]
    expect((await call('teams/publish', { files })).status).toBe(200)
    await call('realms/add_team', { realm_id: realm, team: '@admin/t' })
    const [a, b] = [await daemon('a'), await daemon('b')]
    for (const [waits, dispatches] of [
      [0, 1],
      [1, 0],
    ] as const) {
      const poll = post(waits, 'daemons/poll', { daemon_id: a.daemon_id, slots: 1, wait_ms: 20_000 }, a.token)
      await Bun.sleep(300)
      // Without the word from the other hub it would look again after five seconds: too late for this one.
      const order = { realm_id: realm, team: '@admin/t', queue_timeout: '3s' }
      const { run_id } = (await post(dispatches, 'dispatch/run', order)).data
      expect((await poll).data.jobs).toMatchObject([{ run_id, kind: 'run' }])
    }
    const runs = await Promise.all(
      Array.from(
        { length: 20 },
        async (_, n) => (await post(n % 2, 'dispatch/run', { realm_id: realm, team: '@admin/t' })).data.run_id,
      ),
    )
    const taken: string[] = []
    const drain = async ({ token, daemon_id }: { token: string; daemon_id: string }, hub: number) => {
      for (;;) {
        const { jobs } = (await post(hub, 'daemons/poll', { daemon_id, slots: 3, wait_ms: 0 }, token)).data
        if (jobs.length === 0) return
        for (const { job_id, lease_id, run_id } of jobs) {
          taken.push(run_id)
          const answer = { daemon_id, job_id, lease_id, status: 'accepted' }
          expect((await post(1 - hub, 'daemons/ack', answer, token)).status).toBe(200)
        }
      }
    }
    await Promise.all([drain(a, 0), drain(b, 1), drain(b, 0), drain(a, 1)])
    await drain(a, 0)
    expect(taken.sort()).toEqual(runs.sort())
  })

  test('what one has acknowledged goes out at the other, though the one is killed and the other has lost LISTEN', async () => {
    const { token, daemon_id } = await daemon('d')
    const poll = post(0, 'daemons/poll', { daemon_id, slots: 1, wait_ms: 30_000 }, token)
    await Bun.sleep(300)
    const sql = new Bun.SQL(database.location, { max: 1 })
    const cut = await sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE 'LISTEN%' AND pid <> pg_backend_pid()`
    expect(cut).toHaveLength(2)
    await sql.close()
    const { run_id } = (await post(1, 'dispatch/run', { realm_id: realm, team: '@admin/t' })).data
    hubs[1]!.child.kill('SIGKILL')
    const { jobs } = (await poll).data
    expect(jobs).toMatchObject([{ run_id, kind: 'run', attempt: 1 }])
    hubs[1] = await start()
    const answer = { daemon_id, job_id: jobs[0].job_id, lease_id: jobs[0].lease_id, status: 'accepted' }
    expect((await post(1, 'daemons/ack', answer, token)).status).toBe(200)
  }, 60_000)

  test('a stream at one tells at once what a daemon reports to the other', async () => {
    const { token, daemon_id } = await daemon('c')
    const run_id = Bun.randomUUIDv7()
    const epoch = crypto.randomUUID()
    let seq = 0
    const report = (hub: number, state: object) =>
      post(
        hub,
        'runs/sync',
        { daemon_id, epoch, from_seq: ++seq, changes: [{ seq, ...runChange(run_id, state) }] },
        token,
      )
    expect((await report(0, {})).data).toMatchObject({ acked_seq: 1, rejected: [] })
    const headers = { authorization: `Bearer ${session}` }
    const stream = (await fetch(`${hubs[0]!.url}/v1/runs/stream?run_id=${run_id}`, { headers })).body!.getReader()
    const decoder = new TextDecoder()
    let told = ''
    const until = async (what: string) => {
      while (!told.includes(what)) {
        const { value, done } = await stream.read()
        if (done) throw new Error(`the stream ended without ${what}: ${told}`)
        told += decoder.decode(value, { stream: true })
      }
    }
    // Without the word from the other hub each would be told after two seconds.
    for (let round = 0; round < 30; round++) {
      await report(1, { reason: `round ${round}` })
      await until(`"round ${round}"`)
    }
    await report(1, { state: 'completed', completed_at: 2_000 })
    await until('event: end')
  }, 30_000)

  test('a database of a newer program is refused, untouched', async () => {
    await using other = await freshPostgres(server!)
    await (await openStore(other.location)).close()
    const sql = new Bun.SQL(other.location, { max: 1 })
    await sql`INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('of tomorrow', ${Date.now() + 1e9})`
    await expect(openStore(other.location)).rejects.toThrow(/start the newer program/)
    const child = Bun.spawn([...HUB, 'serve', '--port', '0', '--database', other.location], {
      env: { PATH: process.env.PATH!, CADRE_HOME: folder() },
      stdout: 'ignore',
      stderr: 'pipe',
    })
    expect(await child.stderr.text()).toContain('start the newer program')
    expect(await child.exited).toBe(2)
    await sql.close()
  })

  test('while PostgreSQL ends their connections, calls are answered by `unavailable` at worst', async () => {
    const sql = new Bun.SQL(database.location, { max: 1 })
    const statuses = new Map<number, number>()
    const end = performance.now() + 3_000
    const ask = async () => {
      while (performance.now() < end) {
        const slug = `c${crypto.randomUUID()}`
        for (const [path, body] of [['realms/list'], ['realms/create', { org_id: 1, slug, name: slug }]] as const) {
          const { status } = await call(path, body)
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
        }
      }
    }
    const cut = async () => {
      while (performance.now() < end) {
        await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid()`
        await Bun.sleep(50)
      }
    }
    await Promise.all([cut(), ...Array.from({ length: 10 }, ask)])
    await sql.close()
    expect([...statuses.keys()].filter(status => status !== 200 && status !== 503)).toEqual([])
    expect(statuses.get(503)).toBeGreaterThan(0)
    await until(async () => (await call('realms/list')).status === 200, 'the hubs are well again')
  }, 60_000)
})

const TEAM = `
name: "@admin/t"
version: 1.0.0
phases:
  - { name: a, agent: exec, commands: [{ name: a, run: "true" }] }
`
