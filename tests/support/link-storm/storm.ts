// Two hubs on one PostgreSQL and three daemons behind a bad network. All of them are killed by SIGKILL again and again,
// while runs are dispatched and the clocks of the hubs jump past every lease. When the storm is over, each run must have
// executed on exactly one daemon, all must be complete, nothing may have been written twice outside, and the hubs must
// know what the daemons know.

import { expect } from 'bun:test'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../bounded.ts'
import { type RunningDaemon, spawnDaemon } from '../daemon.ts'
import { folder } from '../folder.ts'
import { rowsOf } from '../home.ts'
import { ADMIN_PASSWORD, freshPostgres } from '../hub.ts'
import { type HubProcess, startHubProcess } from '../hub-processes.ts'
import { type Random, randomFrom } from '../random.ts'
import type { HubPlace } from '../served-hub.ts'
import { type BadFront, startBadFront } from './bad-front.ts'

const AGENTS = join(import.meta.dir, 'agents')
const HUBS = 2
const DAEMONS = 3
const SLOTS = 4
/** How many runs are open at once, about. */
const BUSY = 24
/** So many runs end at most between two kills, and so much time passes at most after the last of them. */
const MOST_BETWEEN_KILLS = 6
const LONGEST_LIFE_MS = 500
/** Without the end of a run for this long, whatever is open may wait for a lease. */
const PATIENCE_MS = 30_000
/** A job is delivered five times at most, so more jumps would lose runs rightly. */
const JUMP_ONCE_IN = 12
const LOOK_AGAIN_MS = 100
const LEASE_MS = 61_000
/** All that is open must end within this time after the storm. */
const CALM_MS = 120_000
/** A poll that nothing wakes looks for jobs after five seconds. */
const LOOK_MS = 6_000

// biome-ignore lint/suspicious/noExplicitAny: the replies of both APIs, which are compared with each other.
type Data = any

export interface StormToll {
  runs: number
  kills: number
  /** Requests that the network did not let pass. */
  losses: number
  /** Jobs that were delivered more than once, which is known at the end. */
  again: number
}

export interface StormLimit {
  /** Stops to dispatch and to kill after this time; otherwise after these numbers. */
  ms?: number
  /** Goes on after that time until there were as many runs, kills and losses. */
  least?: number
  runs?: number
  kills?: number
}

/** Storms until `limit`, then checks everything. Throws when something does not hold. */
export async function linkStorm(
  server: string,
  seed: number,
  limit: StormLimit,
  onProgress: (toll: StormToll) => void = () => {},
): Promise<StormToll> {
  await using database = await freshPostgres(server)
  const storm = new Storm(database.location, randomFrom(seed))
  try {
    await storm.open()
    await storm.rage(limit, onProgress)
    await storm.calm()
    return storm.toll
  } finally {
    await storm.close()
  }
}

/** A process that is killed and started again. */
interface Victim {
  start(): Promise<void>
  kill(): Promise<void>
}

class Storm {
  readonly #random: Random
  readonly #place: HubPlace
  readonly #traces = folder()
  readonly #hubs: (HubProcess | null)[] = []
  readonly #daemons: { home: string; running: RunningDaemon | null }[] = []
  readonly #ledger: Ledger
  readonly #sql: Bun.SQL
  readonly #runs: string[] = []
  #ports: number[] = []
  #front!: BadFront
  #session!: string
  #realm!: string
  #realmToken!: string
  #skew = 0
  #kills = 0
  #again = 0
  #over = false

  constructor(database: string, random: Random) {
    this.#random = random
    const cost = { memoryCost: 8, timeCost: 1 }
    this.#place = { database, home: folder(), password: ADMIN_PASSWORD, passwordCost: cost }
    cpSync(AGENTS, join(this.#place.home, 'agents'), { recursive: true })
    this.#ledger = openLedger(random)
    this.#sql = new Bun.SQL(database, { max: 1 })
  }

  get toll(): StormToll {
    return { runs: this.#runs.length, kills: this.#kills, losses: this.#front.losses, again: this.#again }
  }

  async open(): Promise<void> {
    this.#hubs.push(...(await Promise.all(Array.from({ length: HUBS }, () => startHubProcess(this.#place)))))
    this.#ports = this.#hubs.map(hub => Number(new URL(hub!.url).port))
    const credentials = { username: 'admin', password: ADMIN_PASSWORD }
    this.#session = (await this.#ask('session/create', credentials, null)).token
    this.#realm = (await this.#ask('realms/list')).realms[0].id
    const token = { type: 'realm', name: 'storm', realm_ids: [this.#realm] }
    this.#realmToken = (await this.#ask('auth/generate_token', token)).token
    const files = Object.entries(TEAM).map(([path, text]) => ({
      path,
      content_base64: Buffer.from(text).toString('base64'),
    }))
    await this.#ask('teams/publish', { files })
    await this.#ask('realms/add_team', { realm_id: this.#realm, team: '@admin/storm' })
    this.#front = await startBadFront(() => this.#ports, this.#random)
    for (let n = 0; n < DAEMONS; n++) this.#daemons.push({ home: this.#newHome(), running: null })
    await Promise.all(this.#daemons.map((_, n) => this.#startDaemon(n)))
  }

  async rage(
    { ms, least = 0, runs = Number.POSITIVE_INFINITY, kills = 0 }: StormLimit,
    onProgress: (toll: StormToll) => void,
  ): Promise<void> {
    const started = performance.now()
    const done = () =>
      this.#over ||
      (this.#runs.length >= runs && this.#kills >= kills) ||
      (performance.now() - started > (ms ?? Number.POSITIVE_INFINITY) &&
        Math.min(this.toll.runs, this.toll.kills, this.toll.losses) >= least)
    this.#front.calm = false
    const progress = setInterval(() => onProgress(this.toll), 10_000)
    try {
      await Promise.all([this.#dispatch(done), this.#haunt(done)].map(work => work.catch(error => this.#stop(error))))
    } finally {
      clearInterval(progress)
    }
  }

  #stop(error: unknown): never {
    this.#over = true
    throw error
  }

  /** Lets everything end, and checks it; then again when no lease is left. */
  async calm(): Promise<void> {
    this.#front.calm = true
    await this.#jump()
    await until(async () => (await this.#open()) === 0, 'the end of all runs', CALM_MS).catch(async error => {
      throw new Error(`${error.message}; open are ${JSON.stringify(await this.#stillOpen())}`)
    })
    await this.#settle()
    await this.#check()
    await this.#jump()
    await Bun.sleep(LOOK_MS)
    await this.#settle()
    await this.#check()
  }

  async close(): Promise<void> {
    this.#over = true
    await Promise.all(this.#daemons.map(({ running }) => running?.kill('SIGKILL')))
    for (const hub of this.#hubs) hub?.child.kill('SIGKILL')
    await Promise.all(this.#hubs.map(hub => hub?.child.exited))
    await this.#front?.[Symbol.asyncDispose]()
    this.#ledger.stop()
    await this.#sql.close()
  }

  #newHome(): string {
    const home = folder()
    // Its commands write down outside of their runs that they ran.
    const packages = { sandbox: 'none' }
    const settings = { packages, network: { allow: ['127.0.0.1'] }, agents: { ledger: { url: this.#ledger.url } } }
    writeFileSync(join(home, 'settings.yml'), JSON.stringify(settings), { mode: 0o600 })
    return home
  }

  #victims(): Victim[] {
    const hubs = this.#hubs.map((_, n) => ({
      start: async () => {
        const place = { ...this.#place, port: this.#ports[n]!, skew: this.#skew }
        this.#hubs[n] = await startHubProcess(place)
      },
      kill: async () => {
        const { child } = this.#hubs[n]!
        child.kill('SIGKILL')
        await child.exited
      },
    }))
    const daemons = this.#daemons.map((daemon, n) => ({
      start: () => this.#startDaemon(n),
      kill: () => daemon.running!.kill('SIGKILL'),
    }))
    return [...hubs, ...daemons]
  }

  /**
   * Kills processes and starts them again. Kills and jumps come with the work that is done, so that a slow machine has
   * fewer of them instead of never getting anything done.
   */
  async #haunt(done: () => boolean): Promise<void> {
    const victims = this.#victims()
    while (!done()) {
      const enough = (await this.#ended()) + this.#random.below(MOST_BETWEEN_KILLS)
      const patience = performance.now() + PATIENCE_MS
      const waits = () => !done() && performance.now() < patience
      while (waits() && (await this.#ended()) < enough) await Bun.sleep(LOOK_AGAIN_MS)
      // What was leased to a process that is gone waits for the end of its lease.
      if (performance.now() >= patience || this.#random.once(JUMP_ONCE_IN)) await this.#jump()
      await Bun.sleep(this.#random.below(LONGEST_LIFE_MS))
      const chosen = this.#random.once(8) ? victims : [this.#random.of(victims)]
      await Promise.all(chosen.map(victim => victim.kill()))
      this.#kills += chosen.length
      await Promise.all(chosen.map(victim => victim.start()))
    }
  }

  async #startDaemon(n: number): Promise<void> {
    const daemon = this.#daemons[n]!
    daemon.running = await spawnDaemon({
      home: daemon.home,
      env: {
        CADRE_HUB_URL: this.#front.url,
        CADRE_REALM_TOKEN: this.#realmToken,
        CADRE_DAEMON_NAME: `daemon ${n}`,
        CADRE_SLOTS: String(SLOTS),
        CADRE_AGENTS: AGENTS,
      },
    })
  }

  async #dispatch(done: () => boolean): Promise<void> {
    while (!done()) {
      if ((await this.#open()) >= BUSY) await Bun.sleep(LOOK_AGAIN_MS)
      else {
        const order = { realm_id: this.#realm, team: '@admin/storm', inputs: { dir: this.#traces } }
        const { run_id } = await this.#ask('dispatch/run', { ...order, idempotency_key: crypto.randomUUID() })
        this.#runs.push(run_id)
      }
    }
  }

  async #jump(): Promise<void> {
    this.#skew += LEASE_MS
    await Promise.allSettled(this.#hubs.map(hub => hub!.ask('skew', this.#skew)))
  }

  async #open(): Promise<number> {
    const [row] = await this.#sql`
      SELECT count(*) AS count FROM runs WHERE run_id = root_run_id AND state IN ('queued', 'pending', 'running', 'awaiting_input')`
    return Number(row.count)
  }

  async #ended(): Promise<number> {
    return this.#runs.length - (await this.#open())
  }

  #stillOpen(): Promise<unknown> {
    return this.#sql`
      SELECT runs.run_id, runs.state AS run, jobs.state, leased_to, lease_until, deliveries
      FROM runs JOIN jobs ON jobs.id = runs.job_id WHERE runs.state NOT IN ('completed', 'failed', 'cancelled')`
  }

  /** Waits until the daemons have told the hubs everything. */
  async #settle(): Promise<void> {
    const waiting = () =>
      this.#daemons.map(({ home }) =>
        rowsOf<{ id: unknown }>(
          home,
          'SELECT id FROM outbox UNION ALL SELECT id FROM jobs UNION ALL SELECT id FROM runs WHERE log_due = 1',
        ),
      )
    await until(() => waiting().every(rows => rows.length === 0), 'everything to be told', 60_000).catch(error => {
      throw new Error(`${error.message}; left are ${JSON.stringify(waiting())}`)
    })
  }

  /** Asks any hub. A call whose reply is lost by a kill is repeated. */
  async #ask(path: string, body: object = {}, token: string | null = this.#session): Promise<Data> {
    for (;;) {
      const port = this.#random.of(
        this.#ports.length > 0 ? this.#ports : this.#hubs.map(hub => Number(new URL(hub!.url).port)),
      )
      try {
        const reply = await fetch(`http://127.0.0.1:${port}/v1/${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
          body: JSON.stringify(body),
        })
        const { ok, data, error } = (await reply.json()) as Data
        if (ok) return data
        if (reply.status !== 503) throw new Refused(`${path}: ${reply.status} ${JSON.stringify(error)}`)
      } catch (error) {
        if (error instanceof Refused || this.#over) throw error
      }
      await Bun.sleep(20)
    }
  }

  async #check(): Promise<void> {
    const states = await this.#sql`SELECT state, error, count(*)::int AS count FROM runs GROUP BY state, error`
    expect([...states]).toEqual([{ state: 'completed', error: null, count: this.#runs.length * 2 }])
    const [jobs] = await this.#sql`SELECT count(*)::int AS again FROM jobs WHERE deliveries > 1`
    this.#again = jobs.again
    expect([...this.#ledger.entries].filter(([, count]) => count !== 1)).toEqual([])
    expect(this.#ledger.entries.size).toBe(this.#runs.length)
    const homes = this.#daemons.map(
      ({ home }) => new Set(rowsOf<{ id: string }>(home, 'SELECT id FROM runs').map(({ id }) => id)),
    )
    for (const run of this.#runs) {
      const on = homes.flatMap((ids, n) => (ids.has(run) ? [n] : []))
      expect([run, on]).toEqual([run, [expect.any(Number)]])
      await this.#compare(run, this.#daemons[on[0]!]!.running!)
    }
  }

  /** A whole tree, as its daemon and as a hub tell it. */
  async #compare(root: string, daemon: RunningDaemon): Promise<void> {
    const here = (path: string, run_id: string): Promise<Data> => daemon.call(`/v1/${path}`, { run_id, limit: 1_000 })
    const there = (path: string, run_id: string, more: object = {}): Promise<Data> =>
      this.#ask(path, { run_id, ...more })
    const tree = (await daemon.call('/v1/runs/tree', { run_id: root })) as Data
    expect((await there('runs/tree', root)).runs).toMatchObject(tree.runs)
    for (const { run_id } of tree.runs) {
      expect(await there('runs/get', run_id)).toMatchObject(await daemon.call('/v1/runs/get', { run_id }))
      const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })
      const told = await there('runs/phases', run_id)
      expect(told.phases).toEqual(phases.map((phase: Data) => ({ ...phase, waiting: null })))
      const files = phases.flatMap(({ name, files }: Data) => files.map((file: object) => ({ phase: name, ...file })))
      const { artifacts } = await there('runs/artifacts', run_id)
      const reported = artifacts.map(({ stored: _, ...file }: Data) => file)
      expect(reported.sort(byPath)).toEqual(files.sort(byPath))
      const { lines } = await here('runs/logs', run_id)
      const sent = (await there('runs/logs', run_id, { limit: 1_000 })).lines
      expect(sent).toEqual(lines.map(({ seq, phase, at, stream, text }: Data) => ({ seq, phase, at, stream, text })))
      this.#checkTrace(run_id, daemon, phases)
    }
  }

  /** Each execution has left a line with the folder in which it ran: all on one daemon, one for each attempt at most. */
  #checkTrace(run: string, { home }: RunningDaemon, phases: { name: string; attempt: number }[]): void {
    const lines = readFileSync(join(this.#traces, run), 'utf8').trim().split('\n')
    expect(lines.filter(line => !line.startsWith(`${home}/`))).toEqual([])
    const { attempt } = phases.find(({ name }) => name === 'write')!
    expect(lines.length).toBeLessThanOrEqual(attempt)
  }
}

class Refused extends Error {}

const byPath = (a: { path: string }, b: { path: string }) => (a.path < b.path ? -1 : 1)

interface Ledger {
  url: string
  /** How often each run was written. */
  entries: Map<string, number>
  stop(): void
}

/** Takes its time before and after it writes, so that kills meet both. */
function openLedger(random: Random): Ledger {
  const entries = new Map<string, number>()
  const keys = new Set<string>()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      if (request.method === 'GET')
        return new Response(null, { status: keys.has(searchParams.get('key')!) ? 200 : 404 })
      const key = await request.text()
      await Bun.sleep(random.below(50))
      keys.add(key)
      entries.set(pathname, (entries.get(pathname) ?? 0) + 1)
      await Bun.sleep(random.below(50))
      return new Response('written')
    },
  })
  return { entries, url: server.url.origin, stop: () => server.stop(true) }
}

const WRITE = `name: write, agent: exec, commands: [{ name: w, env: { DIR: "{{ inputs.dir }}" }, run: 'echo "$CADRE_OUT" >> "$DIR/$CADRE_RUN_ID"; echo "$CADRE_RUN_ID" > "$CADRE_OUT/report.txt"; for n in 1 2 3; do echo "line $n"; done' }]`

const TEAM = {
  'team.yml': `
name: "@admin/storm"
version: 1.0.0
inputs: [{ name: dir, type: string, required: true }]
phases:
  - { ${WRITE} }
  - { name: post, agent: ledger, action: write, depends_on: [write], target_entries: [{ name: entry }] }
  - { name: below, type: team, team: ./below, inputs: { dir: "{{ inputs.dir }}" } }
`,
  'below/team.yml': `
name: "@admin/below"
version: 1.0.0
inputs: [{ name: dir, type: string, required: true }]
phases:
  - { ${WRITE} }
`,
}
