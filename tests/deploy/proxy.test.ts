// deploy/Caddyfile as Caddy runs it, in front of two hubs on one PostgreSQL: while one hub after the other is replaced, every
// call is answered. Needs `TEST_POSTGRES_URL`, and Caddy.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { hasCaddy, startCaddy } from '../support/caddy.ts'
import { folder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { freshPostgres } from '../support/hub.ts'
import { CHEAP_PASSWORDS, environmentAt, HUB } from '../support/program.ts'
import { runChange } from '../support/sync.ts'

const server = process.env.TEST_POSTGRES_URL
const ADMIN = { username: 'admin', password: 'known' }
/** Longer than Caddy takes to notice, as in the set. */
const DRAIN_SECONDS = '6'
const CALLERS = 6

const TEAM = `name: "@admin/t"
version: 1.0.0
phases: [{ name: p, agent: exec, commands: [{ name: c, run: "true" }] }]
`

interface Reply {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect by asserting it
  data: any
}

describe.skipIf(!server || !hasCaddy)('two hubs behind Caddy (skipped without TEST_POSTGRES_URL or caddy)', () => {
  const ports = [freePort(), freePort()]
  const [httpsPort, httpPort] = [freePort(), freePort()]
  let database: Awaited<ReturnType<typeof freshPostgres>>
  let caddy: Awaited<ReturnType<typeof startCaddy>>
  let hubs: Bun.Subprocess[]
  let token: string
  const asked: string[] = []
  const storage = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch({ method, url, headers, body }) {
      const { pathname, search } = new URL(url)
      asked.push(`${method} ${headers.get('host')} ${pathname}${search} ${(await new Response(body).bytes()).length}`)
      return new Response('kept')
    },
  })

  async function start(port: number) {
    const home = folder()
    const child = Bun.spawn([...HUB, 'serve', '--port', String(port), '--database', database.location], {
      env: {
        ...{ ...environmentAt(home), ...CHEAP_PASSWORDS, CADRE_HOME: home, CADRE_HUB_KEY: 'k' },
        ...{ CADRE_ADMIN_PASSWORD: ADMIN.password, CADRE_TRUST_PROXY: '1', CADRE_DRAIN_SECONDS: DRAIN_SECONDS },
      },
      stdout: 'pipe',
      stderr: 'ignore',
    })
    await child.stdout.getReader().read()
    return child
  }

  /** Bun would look for `localhost` at ::1 only, so it is asked by its address. */
  const request = (path: string, { host = 'localhost', headers, ...init }: RequestInit & { host?: string } = {}) =>
    fetch(`https://127.0.0.1:${httpsPort}${path}`, {
      ...init,
      headers: { ...(headers as Record<string, string>), host: `${host}:${httpsPort}` },
      tls: { ca: caddy.ca, serverName: host },
      signal: AbortSignal.timeout(60_000),
    })

  async function call(path: string, body: object = {}, credential = token): Promise<Reply> {
    const headers = { 'content-type': 'application/json', ...(credential && { authorization: `Bearer ${credential}` }) }
    const reply = await request(`/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: reply.status, ...((await reply.json()) as { data: unknown }) } as Reply
  }

  /** A daemon of the first realm, on whose list is the team of `runChange`. */
  async function daemon(name: string) {
    const [{ id }] = (await call('realms/list')).data.realms
    const { data } = await call('auth/generate_token', { type: 'realm', name, realm_ids: [id] })
    const { daemon_id } = (await call('daemons/register', { name }, data.token)).data
    return { realm: id, realmToken: data.token as string, daemon_id }
  }

  beforeAll(async () => {
    database = await freshPostgres(server!, { empty: true })
    hubs = await Promise.all(ports.map(start))
    caddy = await startCaddy(
      {
        HUB_DOMAIN: `localhost:${httpsPort}`,
        FILES_DOMAIN: `files.localhost:${httpsPort}`,
        HUBS: ports.map(port => `127.0.0.1:${port}`).join(' '),
        STORAGE: `127.0.0.1:${storage.port}`,
      },
      { httpsPort, httpPort },
    )
    await until(
      () =>
        request('/ready').then(
          ({ ok }) => ok,
          () => false,
        ),
      'Caddy answers',
    )
    token = (await call('session/create', ADMIN, '')).data.token
  }, 60_000)

  afterAll(async () => {
    await using _ = database
    await caddy?.stop()
    await storage.stop(true)
    for (const child of hubs) child.kill('SIGKILL')
    await Promise.all(hubs.map(child => child.exited))
  })

  // Other systems have no second address for this machine.
  test.if(process.platform === 'linux')(
    'what a caller says of its address is not believed, and what Caddy says of it is',
    async () => {
      const certificate = join(folder(), 'root.crt')
      await Bun.write(certificate, caddy.ca)
      const wrong = JSON.stringify({ ...ADMIN, password: 'not known' })
      const curl = Bun.spawn([
        ...['curl', '--silent', '--interface', '127.0.0.2', '--cacert', certificate, '--data', wrong],
        ...['--header', 'content-type: application/json', '--header', 'x-forwarded-for: 203.0.113.9'],
        `https://localhost:${httpsPort}/v1/session/create`,
      ])
      expect(await curl.stdout.text()).toContain('wrong user name or password')
      const { audit } = (await call('audit/list', { action: 'session/create_failed' })).data
      expect(audit).toMatchObject([{ address: '127.0.0.2' }])
    },
  )

  test('the store gets requests as they were signed', async () => {
    const path = `/cadre/1/2?X-Amz-Signature=a%2Fb`
    const reply = await request(path, {
      method: 'PUT',
      host: 'files.localhost',
      body: 'x'.repeat(2 ** 20),
    })
    expect([reply.status, await reply.text(), asked]).toEqual([
      200,
      'kept',
      [`PUT files.localhost:${httpsPort} ${path} ${2 ** 20}`],
    ])
  })

  test('a stream tells at once what happens', async () => {
    const { realm, realmToken, daemon_id } = await daemon('s')
    const files = [{ path: 'team.yml', content_base64: Buffer.from(TEAM).toString('base64') }]
    expect((await call('teams/publish', { files })).status).toBe(200)
    await call('realms/add_team', { realm_id: realm, team: '@admin/t' })
    const [run_id, epoch] = [Bun.randomUUIDv7(), crypto.randomUUID()]
    let seq = 0
    const report = async (state: object) => {
      const changes = [{ seq: ++seq, ...runChange(run_id, state) }]
      const { data } = await call('runs/sync', { daemon_id, epoch, from_seq: seq, changes }, realmToken)
      expect(data).toMatchObject({ acked_seq: seq, rejected: [] })
    }
    await report({})
    const reply = await request(`/v1/runs/stream?run_id=${run_id}`, { headers: { authorization: `Bearer ${token}` } })
    const stream = reply.body!.getReader()
    const decoder = new TextDecoder()
    let told = ''
    const tells = async (what: string) => {
      while (!told.includes(what)) {
        const { value, done } = await stream.read()
        if (done) throw new Error(`the stream ended without ${what}: ${told}`)
        told += decoder.decode(value, { stream: true })
      }
    }
    for (let round = 0; round < 5; round++) {
      await report({ reason: `round ${round}` })
      await tells(`"round ${round}"`)
    }
    await report({ state: 'completed', completed_at: 2_000 })
    await tells('event: end')
  }, 30_000)

  test('while one hub after the other is replaced, every call and every poll is answered', async () => {
    const { realmToken, daemon_id } = await daemon('p')
    const answers: Record<string, number> = {}
    let isOver = false
    const again = async (one: () => Promise<Reply>) => {
      while (!isOver) {
        const answer = await one().then(({ status }) => String(status), String)
        answers[answer] = (answers[answer] ?? 0) + 1
        await Bun.sleep(2)
      }
    }
    const callers = Array.from({ length: CALLERS }, () => again(() => call('auth/whoami')))
    const poll = { daemon_id, slots: 1, wait_ms: 4_000 }
    callers.push(again(() => call('daemons/poll', poll, realmToken)))

    const isCalled = async (port: number) => {
      const metrics = await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { authorization: `Bearer ${token}` } })
      return /^http_server_request_duration_seconds_count\{.*whoami/m.test(await metrics.text())
    }
    for (const index of [0, 1]) {
      hubs[index]!.kill('SIGTERM')
      expect(await hubs[index]!.exited).toBe(0)
      hubs[index] = await start(ports[index]!)
      await until(() => isCalled(ports[index]!), 'Caddy calls it again')
    }
    isOver = true
    await Promise.all(callers)
    expect(Object.keys(answers)).toEqual(['200'])
  }, 120_000)

  test('when a hub is killed, reads are answered, and soon everything is', async () => {
    hubs[0]!.kill('SIGKILL')
    await hubs[0]!.exited
    const reads = await Promise.all(Array.from({ length: 50 }, () => request('/health')))
    expect(reads.filter(({ status }) => status !== 200)).toEqual([])
    const isWell = async () => {
      const answers = await Promise.all(Array.from({ length: 20 }, () => call('auth/whoami').catch(() => null)))
      return answers.every(answer => answer?.status === 200)
    }
    await until(isWell, 'Caddy has noticed', 5_000)
  }, 30_000)
})
