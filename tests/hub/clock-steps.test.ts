// A hub as a process whose clock, or whose database's clock, is set an hour or forty days ahead and back, at its start and
// while it runs, and that stands still for a while: nothing is deleted, failed, delivered twice or delayed because of it.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { type FakeClock, fakeClock } from '../support/fake-clock.ts'
import { folder } from '../support/folder.ts'
import { CHEAP_PASSWORDS, environmentAt, HUB } from '../support/program.ts'
import { BIN, startPostgres } from '../support/standby.ts'
import { runChange } from '../support/sync.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const PASSWORD = 'correct horse battery'
/** How far two clocks may seem apart that are the same. */
const NEAR_MS = 15_000

const team = (name: string, more = '') =>
  `name: "@admin/${name}"\nversion: 1.0.0\n${more}phases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]\n`

interface Job {
  job_id: string
  lease_id: string
  run_id: string
}

// biome-ignore lint/suspicious/noExplicitAny: tests say what they expect by asserting it
type Data = any

/** The hub, and the calls of a person and of a daemon. */
class World {
  readonly #home = folder()
  readonly #env: Record<string, string>
  #hub: Bun.Subprocess<'ignore', 'pipe', 'pipe'> | null = null
  #url = ''
  session = ''
  /** Of the admin; it ends in ten days. */
  token = ''
  #realm = ''
  #realmToken = ''
  daemon = ''
  readonly #epoch = crypto.randomUUID()
  #seq = 0

  constructor(database: string, env: Record<string, string>) {
    this.#env = {
      ...environmentAt(this.#home),
      ...CHEAP_PASSWORDS,
      ...{ CADRE_HOME: this.#home, CADRE_HUB_DATABASE: database || join(this.#home, 'hub.db') },
      ...{ CADRE_ADMIN_PASSWORD: PASSWORD, CADRE_KEEP_RUNS_DAYS: '30', CADRE_LOG_LEVEL: 'error' },
      ...env,
    }
  }

  async start(): Promise<void> {
    const command = [...HUB, 'serve', '--port', '0']
    this.#hub = Bun.spawn(command, { env: this.#env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
    const { value } = await this.#hub.stdout.getReader().read()
    this.#url = /http:\S+/.exec(new TextDecoder().decode(value))![0]
  }

  async stop(): Promise<void> {
    this.#hub?.kill('SIGTERM')
    await this.#hub?.exited
    this.#hub = null
  }

  kill(signal: NodeJS.Signals): void {
    this.#hub?.kill(signal)
  }

  async call(token: string | null, path: string, body: object = {}): Promise<{ status: number; data: Data }> {
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
    const reply = await fetch(`${this.#url}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: reply.status, data: ((await reply.json()) as { data: Data }).data }
  }

  async ok(token: string | null, path: string, body: object = {}): Promise<Data> {
    const { status, data } = await this.call(token, path, body)
    if (status >= 300) throw new Error(`${path}: ${status}`)
    return data
  }

  signIn = async () =>
    (await this.ok(null, 'session/create', { username: 'admin', password: PASSWORD })).token as string
  status = async (token: string) => (await this.call(token, 'auth/whoami')).status

  async furnish(): Promise<void> {
    this.session = await this.signIn()
    const { realms } = await this.ok(this.session, 'realms/list')
    this.#realm = realms[0].id
    for (const text of [team('plain'), team('keyed', 'concurrency: { key: one }\n')]) {
      const { name } = await this.ok(this.session, 'teams/publish', {
        files: [{ path: 'team.yml', content_base64: btoa(text) }],
      })
      await this.ok(this.session, 'realms/add_team', { realm_id: this.#realm, team: name })
    }
    const mint = (body: object) => this.ok(this.session, 'auth/generate_token', { name: 'x', ...body })
    this.admin = (await mint({ type: 'user' })).token
    this.token = (await mint({ type: 'user', expires_in_days: 10 })).token
    this.#realmToken = (await mint({ type: 'realm', realm_ids: [this.#realm] })).token
    this.daemon = (await this.fromDaemon('register', { name: 'one', protocol: 1 })).daemon_id
  }

  fromDaemon = (what: string, body: object = {}) =>
    this.ok(this.#realmToken, `daemons/${what}`, { ...(this.daemon && { daemon_id: this.daemon }), ...body })
  poll = async (): Promise<Job[]> => (await this.fromDaemon('poll', { slots: 9, wait_ms: 0 })).jobs
  accept = ({ job_id, lease_id }: Job) => this.fromDaemon('ack', { job_id, lease_id, status: 'accepted' })

  async report(run_id: string, run: object): Promise<void> {
    const changes = [{ ...runChange(run_id, { team: '@admin/plain', ...run }), seq: ++this.#seq }]
    const body = { daemon_id: this.daemon, epoch: this.#epoch, from_seq: this.#seq, changes }
    expect((await this.ok(this.#realmToken, 'runs/sync', body)).rejected).toEqual([])
  }

  dispatch = async (name: string, more: object = {}): Promise<string> =>
    (await this.ok(this.admin, 'dispatch/run', { realm_id: this.#realm, team: `@admin/${name}`, ...more })).run_id

  /** A token that never ends. */
  admin = ''
  async states(...runs: string[]): Promise<string[]> {
    return Promise.all(
      runs.map(async run_id => (await this.call(this.admin, 'runs/get', { run_id })).data?.state ?? 'gone'),
    )
  }

  async daemonStatus(): Promise<string> {
    return (await this.ok(this.admin, 'daemons/get', { daemon_id: this.daemon })).status
  }

  async queued(run: string): Promise<Data> {
    const { jobs } = await this.ok(this.admin, 'dispatch/queue', { realm_id: this.#realm })
    return jobs.find(({ run_id }: Data) => run_id === run)
  }

  async serverTime(): Promise<number> {
    return (await this.fromDaemon('heartbeat')).server_time
  }
}

const NOBODY = { requires: { labels: { nobody: 'has-this' } } }

async function checkSteps(clock: FakeClock, database: string, env: Record<string, string>): Promise<void> {
  const world = new World(database, env)
  try {
    await world.start()
    await world.furnish()
    const held = await world.dispatch('keyed')
    const [job] = (await world.poll()) as [Job]
    await world.accept(job)
    await world.report(held, {
      state: 'running',
      team: '@admin/keyed',
      call_path: ['@admin/keyed'],
      started_at: Date.now(),
    })
    const second = await world.dispatch('keyed')
    const patient = await world.dispatch('plain', { queue_timeout: '30m', ...NOBODY })
    const untaken = await world.dispatch('plain')
    const [leased] = (await world.poll()) as [Job]
    expect(leased.run_id).toBe(untaken)
    const old = crypto.randomUUID()
    const end = Date.now() - 29 * DAY
    await world.report(old, { state: 'completed', started_at: end, completed_at: end })
    const others = [held, second, patient, untaken, old]
    const before = ['running', 'queued', 'queued', 'queued', 'completed']
    expect(await world.states(...others)).toEqual(before)

    const beat = () => world.fromDaemon('heartbeat', { running: [leased.job_id] })
    let ahead = 0
    const sees = async () => Math.abs((await world.serverTime()) - Date.now() - ahead) < NEAR_MS
    const step = (ms: number) => {
      ahead = ms
      clock.set(ms)
      return until(sees, `the hub has the clock that is ${ms} ahead`)
    }
    /** Limits are met, and nothing else has happened. */
    const check = async () => {
      await beat()
      const short = await world.dispatch('plain', { queue_timeout: '1s', ...NOBODY })
      const isOver = async () => (await world.states(short))[0] === 'failed'
      await until(isOver, `a queue_timeout with the clock ${ahead} ahead`, 20_000)
      expect({ ahead, states: await world.states(...others) }).toEqual({ ahead, states: before })
      expect({ ahead, jobs: await world.poll() }).toEqual({ ahead, jobs: [] })
      expect({ ahead, status: await world.daemonStatus() }).toEqual({ ahead, status: 'online' })
      const left = (await world.queued(patient)).expires_at - (await world.serverTime())
      expect(left).toBeWithin(25 * 60_000, 30 * 60_000 + 1)
    }

    for (const ms of [HOUR, 40 * DAY, -HOUR, -40 * DAY]) {
      await step(ms)
      await check()
      if (ms !== 40 * DAY) continue
      // A clock ahead asks for a new sign-in, and what was minted to last less long is refused.
      expect([await world.status(world.session), await world.status(world.token)]).toEqual([401, 401])
      for (let n = 0; n < 10; n++) await world.call(null, 'session/create', { username: 'x', password: 'wrong' })
      expect(await world.status(await world.signIn())).toBe(200)
    }
    await step(0)
    // The session was found ended; the token is judged anew. Failures of another time keep nobody out.
    expect([await world.status(world.session), await world.status(world.token)]).toEqual([401, 200])
    expect(await world.status(await world.signIn())).toBe(200)
    await check()

    // The process stands still for longer than a run may wait.
    const brief = await world.dispatch('plain', { queue_timeout: '12s', ...NOBODY })
    world.kill('SIGSTOP')
    await Bun.sleep(15_000)
    world.kill('SIGCONT')
    expect((await world.states(brief))[0]).toBe('queued')
    await check()

    for (const ms of [HOUR, 40 * DAY, -HOUR, -40 * DAY]) {
      await world.stop()
      ahead = ms
      clock.set(ms)
      await world.start()
      await until(sees, 'the hub has the clock of its start')
      await check()
    }
  } finally {
    world.kill('SIGCONT')
    await world.stop()
  }
}

test.concurrent('the clock of a hub on SQLite', async () => {
  const clock = fakeClock()
  if (clock) await checkSteps(clock, '', clock.env)
}, 240_000)

test.concurrent('the clock of the database of a hub on PostgreSQL', async () => {
  const clock = BIN === null ? null : fakeClock()
  if (BIN === null) console.warn('initdb is missing: the clock of PostgreSQL is not tested')
  if (!clock) return
  await using server = await startPostgres(clock.env)
  await checkSteps(clock, server.location, {})
}, 240_000)
