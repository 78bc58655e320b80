// Measures hub and daemons together, on SQLite and, with TEST_POSTGRES_URL, on PostgreSQL. Each measurement has a floor in
// the same run: the commits, requests or rows that it needs at least, without a hub around them. The ratios matter,
// because the machine affects both sides. A line ends with its goal, where there is one, and with MISSED if the goal was
// not reached. Memory and processor time are read from /proc, so this runs on Linux only.
//
//   bun bench/link.ts [--only begin,claims,runs,backlog,polls,beats] [--database sqlite] [--lines N] [--daemons N] [--seconds N]

import { Database } from 'bun:sqlite'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openDatabase } from '../db/open.ts'
import {
  addDaemons,
  addJobs,
  type Dialect,
  inChunks,
  memory,
  openWorld,
  percentile,
  post,
  processorTime,
  startDaemon,
  teamText,
  type World,
} from './link-world.ts'
import { type Server, serve } from './server.ts'

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    database: { type: 'string', default: 'sqlite,postgres' },
    lines: { type: 'string', default: '1000000' },
    daemons: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '15' },
  },
})
const only = values.only?.split(',')
const folder = mkdtempSync(join(tmpdir(), 'cadre-bench-'))
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)
const secondsSince = (started: number) => (performance.now() - started) / 1_000
const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`

function told(name: string, value: string, about = '', goal?: { text: string; met: boolean }): void {
  const end = goal ? `goal ${goal.text}${goal.met ? '' : '  MISSED'}` : ''
  console.log(`${name.padEnd(52)} ${value.padStart(11)}  ${about.padEnd(58)} ${end}`.trimEnd())
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await Bun.sleep(2)
}

/** A home for a daemon, which is removed at the end. */
const newHome = () => mkdtempSync(join(folder, 'home-'))

/** Commits one row at a time, durably, in a database of the same kind as the hub's. */
async function commits({ dialect, database }: World): Promise<{ one(): Promise<unknown>; close(): Promise<void> }> {
  if (dialect === 'sqlite') {
    const db = openDatabase(join(folder, `${crypto.randomUUID()}.db`))
    db.run('CREATE TABLE floor (id TEXT PRIMARY KEY, state TEXT)')
    const insert = db.query('INSERT INTO floor VALUES (?, ?)')
    return { one: async () => insert.run(crypto.randomUUID(), 'waiting'), close: async () => db.close() }
  }
  const sql = new Bun.SQL(database, { max: 1 })
  await sql.unsafe('CREATE TABLE IF NOT EXISTS floor (id TEXT PRIMARY KEY, state TEXT)')
  return {
    one: () => sql`INSERT INTO floor VALUES (${crypto.randomUUID()}, 'waiting')`,
    close: () => sql.close(),
  }
}

const floorServer = (name: string) =>
  serve([join(import.meta.dir, 'floors.ts'), name, join(folder, `${name}.db`), 'token'])

/** Requests that wait at `url`, each on a connection of its own, as those of as many daemons do. */
async function hold(
  url: string,
  path: string,
  token: string,
  bodies: object[],
  answered: (at: number, reply: string) => void,
) {
  const { hostname, port } = new URL(url)
  const open: Bun.Socket[] = []
  await inChunks([...bodies.entries()], 200, async some => {
    const opened = some.map(([at, body]) => {
      const text = JSON.stringify(body)
      const head = `POST ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n`
      const socket = {
        open: (to: Bun.Socket) => void to.write(head + text),
        data: (_: Bun.Socket, reply: Buffer) => answered(at, reply.toString()),
      }
      return Bun.connect({ hostname, port: Number(port), socket })
    })
    open.push(...(await Promise.all(opened)))
  })
  const close = () => {
    for (const socket of open) socket.end()
  }
  return { close }
}

const programs: Record<string, (world: World) => Promise<void>> = {
  async begin(world) {
    const daemon = await startDaemon(newHome(), world)
    const body = { realm_id: world.realm, team: '@admin/noop' }
    const waits: number[] = []
    for (let n = 0; n < 220; n++) {
      const asked = Date.now()
      const { run_id } = await world.call('dispatch/run', body)
      let run: { started_at: number; completed_at: number | null } | null = null
      await until(async () => {
        run = await post(daemon.url, null, 'runs/get', { run_id }).catch(() => null)
        return run?.completed_at != null
      })
      // The first runs find nothing compiled.
      if (n >= 20) waits.push(run!.started_at - asked)
    }
    await daemon.stop()
    const [bare, floor] = [await floorServer('bare'), await commits(world)]
    const trips: number[] = []
    for (let n = 0; n < 220; n++) {
      const started = performance.now()
      // A call to dispatch, the answer to a poll, an `accepted`; and the commits: queued, leased, held, accepted, begun.
      for (let call = 0; call < 3; call++)
        await fetch(bare.url, { method: 'POST', body: '{}' }).then(reply => reply.json())
      for (let commit = 0; commit < 5; commit++) await floor.one()
      if (n >= 20) trips.push(performance.now() - started)
    }
    await bare.stop()
    await floor.close()
    for (const part of [0.5, 0.99]) {
      const [took, least] = [percentile(waits, part), percentile(trips, part)]
      const name = `from dispatch to begin, p${part * 100}`
      told(name, `${(took / least).toFixed(1)} ×`, `${ms(took)}; floor ${ms(least)} (3 calls, 5 commits)`)
    }
  },

  async claims(world) {
    const { daemon_id } = await world.call('daemons/register', { name: 'claims' }, world.token)
    const claim = async () => {
      const started = performance.now()
      for (let n = 0; n < 100; n++) {
        const { jobs } = await world.call('daemons/poll', { daemon_id, slots: 1, wait_ms: 0 }, world.token)
        if (jobs.length !== 1) throw new Error(`a poll claimed ${jobs.length} jobs`)
      }
      return secondsSince(started)
    }
    const best = async () => {
      let least = Number.POSITIVE_INFINITY
      for (let round = 0; round < 4; round++) {
        await addJobs(world, 100)
        least = Math.min(least, await claim())
      }
      return least
    }
    const few = await best()
    await addJobs(world, 100_000)
    const many = await best()
    const floor = await commits(world)
    let least = Number.POSITIVE_INFINITY
    for (let round = 0; round < 3; round++) {
      const started = performance.now()
      for (let n = 0; n < 100; n++) await floor.one()
      least = Math.min(least, secondsSince(started))
    }
    await floor.close()
    const rate = (seconds: number) => `${Math.round(100 / seconds)}/s`
    told('claims, 100 jobs waiting', `${(few / least).toFixed(1)} ×`, `${rate(few)}; floor ${rate(least)} (commits)`)
    const ratio = many / few
    told('claims, 100,000 jobs waiting, to 100', `${ratio.toFixed(2)} ×`, rate(many), {
      text: '≤ 1.3 ×',
      met: ratio <= 1.3,
    })
  },

  async runs(world) {
    const count = 500
    const team = newHome()
    await Bun.write(join(team, 'team.yml'), teamText('@admin/noop'))
    const alone = await startDaemon(newHome(), null)
    const completed = async (list: (body: object) => Promise<{ total: number }>, before: number) =>
      until(async () => (await list({ state: 'completed', limit: 1 })).total >= before + count)
    const measure = async (start: () => Promise<unknown>, list: (body: object) => Promise<{ total: number }>) => {
      let best = Number.POSITIVE_INFINITY
      for (let round = 0; round < 3; round++) {
        const { total } = await list({ state: 'completed', limit: 1 })
        const started = performance.now()
        await inChunks(numbers(count), 50, some => Promise.all(some.map(start)))
        await completed(list, total)
        best = Math.min(best, secondsSince(started))
      }
      return best
    }
    const floor = await measure(
      () => post(alone.url, null, 'runs/start', { path: team }),
      body => post(alone.url, null, 'runs/list', body),
    )
    await alone.stop()
    const daemon = await startDaemon(newHome(), world)
    const took = await measure(
      () => world.call('dispatch/run', { realm_id: world.realm, team: '@admin/noop' }),
      body => world.call('runs/list', { realm_id: world.realm, ...body }),
    )
    await daemon.stop()
    const about = `${Math.round(count / took)}/s; without the hub ${Math.round(count / floor)}/s`
    told('runs through the hub, to without it', `${(floor / took).toFixed(2)} ×`, about, {
      text: '≥ 0.5 ×',
      met: floor / took >= 0.5,
    })
  },

  async backlog(world) {
    const lines = Number(values.lines)
    const home = newHome()
    let daemon = await startDaemon(home, world)
    const team = newHome()
    await Bun.write(join(team, 'team.yml'), teamText('@admin/lines'))
    await world.hub.stop()
    const count = 10
    for (const _ of numbers(count))
      await post(daemon.url, null, 'runs/start', { path: team, inputs: { lines: lines / count } })
    await until(
      async () => (await post(daemon.url, null, 'runs/list', { state: 'completed', limit: 1 })).total === count,
    )
    await daemon.stop()
    const bytes = readdirSync(join(home, 'runs')).reduce(
      (sum, id) => sum + statSync(join(home, 'runs', id, 'log.jsonl')).size,
      0,
    )
    await world.restart()
    const started = performance.now()
    daemon = await startDaemon(home, world)
    const fresh = await world.call('dispatch/run', { realm_id: world.realm, team: '@admin/noop' })
    let waited = 0
    const rows = new Database(join(home, 'daemon.db'), { readonly: true })
    const left = rows.query<{ n: number }, []>(
      'SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM runs WHERE log_due = 1) AS n',
    )
    await until(async () => {
      if (waited === 0) {
        const { state } = await world.call('runs/get', { run_id: fresh.run_id })
        if (state === 'completed') waited = secondsSince(started)
      }
      await Bun.sleep(20)
      return waited > 0 && left.get()!.n === 0
    })
    const took = secondsSince(started)
    const peaks = [await memory(daemon.pid, 'VmHWM'), await memory(world.hub.pid, 'VmHWM')]
    rows.close()
    await daemon.stop()
    const floor = (await rowFloor(world, Math.min(lines, 100_000))) * (lines / Math.min(lines, 100_000))
    const rate = (seconds: number) =>
      `${Math.round(lines / seconds)} lines/s, ${(bytes / seconds / 1e6).toFixed(1)} MB/s`
    told(
      `a backlog of ${lines} lines`,
      `${(took / floor).toFixed(1)} ×`,
      `${took.toFixed(1)} s, ${rate(took)}; floor ${rate(floor)} (rows)`,
    )
    told('  peak memory of the daemon, of the hub', peaks.map(peak => `${peak} MiB`).join(', '))
    told(
      '  a run dispatched at its begin is complete on the hub',
      `${waited.toFixed(1)} s`,
      'after the start of the daemon',
    )
  },

  async polls(world) {
    const count = Number(values.daemons)
    const [bare, floor] = [await floorServer('hold'), [] as number[]]
    const empty = await memory(bare.pid, 'VmRSS')
    const bodies = numbers(count).map(() => ({ daemon_id: crypto.randomUUID(), slots: 1, wait_ms: 30_000 }))
    let answers = 0
    const held = await hold(bare.url, '/', world.token, bodies, () => answers++)
    await Bun.sleep(1_000)
    const floorMemory = (await memory(bare.pid, 'VmRSS')) - empty
    for (let n = 0; n < 20; n++) {
      const [started, before] = [performance.now(), answers]
      void fetch(`${bare.url}wake`, { method: 'POST' }).then(reply => reply.json())
      await until(() => answers > before)
      floor.push(performance.now() - started)
    }
    held.close()
    await bare.stop()

    const ids = await addDaemons(world, count)
    const before = await memory(world.hub.pid, 'VmRSS')
    const woken = new Map<number, number>()
    const started = performance.now()
    const waiting = await hold(
      world.hub.url,
      '/v1/daemons/poll',
      world.token,
      ids.map(daemon_id => ({ daemon_id, slots: 1, wait_ms: 30_000 })),
      // A poll that ended without a job was not woken.
      (at, reply) => void (reply.includes('job_id') && woken.set(at, performance.now())),
    )
    const arrived = secondsSince(started)
    await Bun.sleep(2_000)
    const busy = await processorTime(world.hub.pid)
    await Bun.sleep(5_000)
    const idle = ((await processorTime(world.hub.pid)) - busy) / 5
    const waits: number[] = []
    const wakes: number[] = []
    for (let n = 0; n < 15; n++) {
      const [asked, known] = [performance.now(), woken.size]
      await world.call('dispatch/run', { realm_id: world.realm, team: '@admin/noop' })
      await until(() => woken.size > known)
      waits.push([...woken.values()].at(-1)! - asked)
      await Bun.sleep(20)
      wakes.push(woken.size - known)
    }
    const used = (await memory(world.hub.pid, 'VmRSS')) - before
    waiting.close()
    told(
      `${count} polls wait`,
      `${(used / floorMemory).toFixed(1)} ×`,
      `${used} MiB; floor ${floorMemory} MiB; all there after ${arrived.toFixed(1)} s`,
    )
    told('  processor time while nothing happens', `${Math.round(idle * 100)} %`, 'of one core')
    const [took, least] = [percentile(waits, 0.5), percentile(floor, 0.5)]
    const about = `${ms(took)}, p99 ${ms(percentile(waits, 0.99))}; floor ${ms(least)}`
    const most = Math.max(...wakes)
    told('  from a dispatch to the answer of one poll', `${(took / least).toFixed(1)} ×`, about)
    told('  polls answered by one dispatch', String(most), '', { text: '1', met: most === 1 })
  },

  async beats(world) {
    const count = Number(values.daemons)
    const ids = await addDaemons(world, count)
    const { teams_version } = await world.call('daemons/heartbeat', { daemon_id: ids[0]! }, world.token)
    const elysia = await floorServer('elysia')
    const beat = async (server: Server, path: string, token: string, body: (id: string) => object) => {
      const seconds = Number(values.seconds)
      const late: number[] = []
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
      const going = new Set<Promise<void>>()
      const busy = await processorTime(server.pid)
      const begun = performance.now()
      const total = Math.round((count / 15) * seconds)
      for (let n = 0; n < total; n++) {
        const due = begun + (n * 15_000) / count
        while (performance.now() < due) await Bun.sleep(1)
        const text = JSON.stringify(body(ids[n % count]!))
        const sent = fetch(server.url + path, { method: 'POST', headers, body: text }).then(async reply => {
          await reply.text()
          if (!reply.ok) throw new Error(`a heartbeat was answered ${reply.status}`)
          late.push(performance.now() - due)
        })
        going.add(sent)
        void sent.finally(() => going.delete(sent))
      }
      await Promise.all(going)
      const took = secondsSince(begun)
      return {
        load: ((await processorTime(server.pid)) - busy) / took,
        p99: percentile(late, 0.99),
        rate: total / took,
      }
    }
    const floor = await beat(elysia, '', 'token', daemon_id => ({ daemon_id }))
    const hub = await beat(world.hub, '/v1/daemons/heartbeat', world.token, daemon_id => ({
      daemon_id,
      teams_version,
      protocol: 1,
    }))
    await elysia.stop()
    const percent = (load: number) => `${Math.round(load * 100)} %`
    const about = `${percent(hub.load)} of one core at ${Math.round(hub.rate)}/s; floor ${percent(floor.load)}`
    told(`${count} daemons beat every 15 s`, `${(hub.load / floor.load).toFixed(1)} ×`, about)
    told('  p99 of a heartbeat', ms(hub.p99), `floor ${ms(floor.p99)}`)
  },
}

/** Seconds to insert `count` lines as rows, 500 a statement and 10,000 a transaction. */
async function rowFloor({ dialect, database }: World, count: number): Promise<number> {
  const row = (seq: number) => ({
    run_id: '01900000-0000-7000-8000-000000000000',
    seq,
    phase: 'p',
    at: Date.now(),
    stream: 'stdout',
    text: String(seq),
  })
  const columns = 'run_id TEXT, seq BIGINT, phase TEXT, at BIGINT, stream TEXT, text TEXT, PRIMARY KEY (run_id, seq)'
  if (dialect === 'postgres') {
    const sql = new Bun.SQL(database, { max: 1 })
    await sql.unsafe(`CREATE TABLE floor_lines (${columns})`)
    const started = performance.now()
    await inChunks(numbers(count), 10_000, some =>
      sql.begin(tx => inChunks(some, 500, part => tx`INSERT INTO floor_lines ${tx(part.map(row))}`)),
    )
    const took = secondsSince(started)
    await sql.close()
    return took
  }
  const db = openDatabase(join(folder, 'lines.db'))
  db.run(`CREATE TABLE floor_lines (${columns})`)
  const insert = db.query(`INSERT INTO floor_lines VALUES ${Array(500).fill('(?, ?, ?, ?, ?, ?)').join(', ')}`)
  const started = performance.now()
  await inChunks(numbers(count), 10_000, async some =>
    db.transaction(() => {
      for (let at = 0; at < some.length; at += 500)
        insert.run(...some.slice(at, at + 500).flatMap(seq => Object.values(row(seq))))
    })(),
  )
  const took = secondsSince(started)
  db.close()
  return took
}

try {
  for (const dialect of values.database.split(',') as Dialect[]) {
    if (dialect === 'postgres' && !process.env.TEST_POSTGRES_URL) {
      console.log('PostgreSQL is not measured: TEST_POSTGRES_URL is not set')
      continue
    }
    for (const [name, program] of Object.entries(programs)) {
      if (only && !only.includes(name)) continue
      await using world = await openWorld(dialect)
      console.log(`${dialect}: ${name}`)
      await program(world)
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
