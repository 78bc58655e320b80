// Two hubs on one PostgreSQL with many schedules of each minute. Their clocks are 40 s before and behind that of the
// database, and they are killed again and again at random moments. Afterwards every rule of firings is checked.

import { expect } from 'bun:test'
import { until } from './bounded.ts'
import type { FakeClock } from './fake-clock.ts'
import { checkFiringRows, type FiringRows } from './firing-rules.ts'
import { folder } from './folder.ts'
import { closeAtEnd } from './left.ts'
import { CHEAP_PASSWORDS, environmentAt, HUB } from './program.ts'
import { randomFrom } from './random.ts'
import { WAYS } from './trigger-storm.ts'

const MINUTE = 60_000
const SKEWS = [-40_000, 40_000]
const PASSWORD = 'correct horse battery'
const TEAM = 'name: "@admin/storm"\nversion: 1.0.0\nphases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]\n'

export interface RealmStormOptions {
  seed: number
  schedules: number
  database: string
  /** The clocks of the hubs, which a test sets ahead of that of the machine. */
  clocks: readonly FakeClock[]
  /** That of the database. Without it the storm takes so many `minutes`. */
  clock?: FakeClock
  kills?: number
  minutes?: number
  say?(text: string): void
}

// biome-ignore lint/suspicious/noExplicitAny: the replies of the API.
type Data = any

class StormHub {
  readonly #home = folder()
  readonly #env: Record<string, string>
  #child: Bun.Subprocess<'ignore', 'pipe', 'pipe'> | null = null
  url = ''

  constructor(database: string, clock: FakeClock) {
    this.#env = {
      ...{ ...environmentAt(this.#home), ...CHEAP_PASSWORDS, ...clock.env, CADRE_HOME: this.#home },
      ...{ CADRE_HUB_DATABASE: database, CADRE_ADMIN_PASSWORD: PASSWORD, CADRE_HUB_KEY: 'k', CADRE_LOG_LEVEL: 'error' },
    }
  }

  async start(): Promise<void> {
    const child = Bun.spawn([...HUB, 'serve', '--port', '0'], {
      env: this.#env,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    this.#child = child
    closeAtEnd(() => this.kill())
    const { value } = await child.stdout.getReader().read()
    if (!value) throw new Error(`the hub ended: ${await child.stderr.text()}`)
    this.url = /http:\S+/.exec(new TextDecoder().decode(value))![0]
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.#child?.kill(signal)
    await this.#child?.exited
  }

  async call(token: string | null, path: string, body: object = {}): Promise<{ status: number; data: Data }> {
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
    const reply = await fetch(`${this.url}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: reply.status, data: ((await reply.json()) as { data: Data }).data }
  }

  async ok(token: string | null, path: string, body: object = {}): Promise<Data> {
    const { status, data } = await this.call(token, path, body)
    if (status >= 300) throw new Error(`${path}: ${status}`)
    return data
  }
}

export async function realmStorm(options: RealmStormOptions) {
  const { seed, schedules, database, clocks, clock, kills = Infinity, minutes = 0, say } = options
  const random = randomFrom(seed)
  let ahead = 0
  const setAll = () => {
    clock?.set(ahead)
    for (const [at, each] of clocks.entries()) each.set(ahead + SKEWS[at % SKEWS.length]!)
  }
  setAll()
  const hubs = clocks.map(each => new StormHub(database, each))
  for (const hub of hubs) await hub.start()
  const [first] = hubs as [StormHub]
  const { token: session } = await first.ok(null, 'session/create', { username: 'admin', password: PASSWORD })
  const { token } = await first.ok(session, 'auth/generate_token', { type: 'user', name: 'storm' })
  const [{ id: realm_id }] = (await first.ok(token, 'realms/list')).realms
  await first.ok(token, 'teams/publish', { files: [{ path: 'team.yml', content_base64: btoa(TEAM) }] })
  await first.ok(token, 'realms/add_team', { realm_id, team: '@admin/storm' })
  for (let n = 0; n < schedules; n++) {
    const way = WAYS[n % WAYS.length]!
    const rule = { realm_id, name: `s-${n}`, kind: 'schedule', team: '@admin/storm', cron: '* * * * *', ...way }
    await first.ok(token, 'triggers/add', rule)
  }
  /** Runs have no daemon; these end at once. */
  const endSome = async (hub: StormHub, limit: number) => {
    const { runs } = await hub.ok(token, 'runs/list', { realm_id, state: 'queued', limit })
    for (const { run_id } of runs) await hub.call(token, 'dispatch/cancel', { run_id })
    return runs.length as number
  }

  const begun = performance.now()
  let died = 0
  const isOver = () => died >= kills || (minutes > 0 && performance.now() - begun > minutes * MINUTE)
  while (!isOver()) {
    const hub = random.of(hubs)
    const other = hubs.find(each => each !== hub)!
    if (clock) ahead += MINUTE
    setAll()
    const ending = endSome(other, 20).catch(() => {})
    await Bun.sleep(random.below(clock ? 2_500 : 8_000))
    await hub.kill()
    died++
    await ending
    await hub.start()
    say?.(`${((performance.now() - begun) / 1_000).toFixed(0)} s: ${died} killed`)
  }
  if (clock) ahead += MINUTE
  setAll()
  const sql = new Bun.SQL(database, { max: 1 })
  try {
    const isDone = async () => {
      await endSome(first, 100)
      const [left] = await sql<{ n: number }[]>`
        SELECT (SELECT count(*) FROM triggers WHERE next_at <= extract(epoch from clock_timestamp()) * 1000 - 2000)::int
          + (SELECT count(*) FROM firings WHERE state = 'waiting' AND reason <> 'limit')::int
          + (SELECT count(*) FROM runs WHERE state = 'queued')::int AS n`
      return left!.n === 0
    }
    await until(isDone, 'everything that was due has started and ended', 120_000)
    for (const hub of hubs) await hub.kill('SIGTERM')
    return { kills: died, states: checkFiringRows(await rowsOf(sql)) }
  } finally {
    await sql.close()
  }
}

async function rowsOf(sql: Bun.SQL): Promise<FiringRows> {
  const [jobs] = await sql<{ n: number }[]>`
    SELECT count(*)::int AS n FROM (SELECT run_id FROM jobs WHERE kind = 'run' GROUP BY run_id HAVING count(*) <> 1) AS twice`
  expect(['each run has one job', jobs!.n]).toEqual(['each run has one job', 0])
  const numbers = (rows: Record<string, unknown>[], ...names: string[]) =>
    rows.map(row => ({
      ...row,
      ...Object.fromEntries(names.map(name => [name, row[name] === null ? null : Number(row[name])])),
    }))
  const triggers = numbers(await sql`SELECT id, name, spec, cursor, created_at FROM triggers`, 'cursor', 'created_at')
  const firings = numbers(
    await sql`SELECT id, trigger_id, at, until, seen_at, count, state, manual, run_id FROM firings`,
    ...['at', 'until', 'seen_at', 'count'],
  )
  // The hub's own time goes on in memory, and follows a jump of the clock of the database after a few seconds.
  const runs = await sql`SELECT run_id AS id, NULL AS created_at FROM runs WHERE parent_run_id IS NULL`
  return { triggers, firings, runs: [...runs] } as FiringRows
}
