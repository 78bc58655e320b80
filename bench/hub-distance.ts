// Measures a hub whose PostgreSQL is far away: daemons that take runs, answer and report, and people who dispatch and read
// meanwhile, through a proxy that carries everything later. Each caller makes its next call when the last one is answered.
//
//   bun bench/hub-distance.ts --postgres postgres://… [--delay 200] [--pool 10] [--daemons 50] [--readers 10]
//     [--dispatchers 2] [--waiting 2000] [--seconds 30] [--root FOLDER]
//
// So many runs wait at first that each poll finds one. `--root` is another checkout, whose hub is measured in the same way.

import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { DaemonClient } from '../lib/daemon/link/daemon-client.ts'
import { HubClient } from '../lib/daemon/link/hub-client.ts'
import { GenerateToken } from '../lib/wire/calls/auth.ts'
import { Ack, Poll, Register, Sync } from '../lib/wire/calls/daemon-link.ts'
import { DispatchRun } from '../lib/wire/calls/dispatch.ts'
import { ListHubRuns } from '../lib/wire/calls/hub-runs.ts'
import { PublishTeam } from '../lib/wire/calls/packages.ts'
import { AddTeam, ListRealms } from '../lib/wire/calls/realms.ts'
import { GetTree } from '../lib/wire/calls/runs.ts'
import { CreateSession } from '../lib/wire/calls/session.ts'
import { serve } from './server.ts'

const { values } = parseArgs({
  options: {
    postgres: { type: 'string', default: 'postgres://root@127.0.0.1:5432/test' },
    delay: { type: 'string', default: '200' },
    pool: { type: 'string', default: '10' },
    daemons: { type: 'string', default: '50' },
    readers: { type: 'string', default: '10' },
    dispatchers: { type: 'string', default: '2' },
    waiting: { type: 'string', default: '2000' },
    seconds: { type: 'string', default: '30' },
    root: { type: 'string', default: join(import.meta.dir, '..') },
  },
})
/** The time in which connections are made, and statements are used for the first time. */
const WARM_UP_MS = 20_000
const TIMEOUT_MS = 60_000

let delayMs = 0

/** Carries what comes from one side to the other, half of the delay later. */
function carry(from: Socket, to: Socket): void {
  from.on('data', (bytes: Buffer) => {
    if (delayMs === 0) to.write(bytes)
    else setTimeout(() => to.write(bytes), delayMs / 2)
  })
  from.on('close', () => to.destroy()).on('error', () => to.destroy())
}

const server = new URL(values.postgres)
const proxy = createServer(near => {
  const far = connect(Number(server.port || 5432), server.hostname)
  carry(near, far)
  carry(far, near)
})
await new Promise<void>(done => proxy.listen(0, '127.0.0.1', () => done()))
const name = `distance_${crypto.randomUUID().slice(0, 8)}`
const admins = new Bun.SQL(values.postgres, { max: 1 })
await admins.unsafe(`CREATE DATABASE ${name}`)
const location = new URL(values.postgres)
location.pathname = name
location.host = `127.0.0.1:${(proxy.address() as { port: number }).port}`
const folder = mkdtempSync(join(tmpdir(), 'cadre-distance-'))
const hub = await serve([join(resolve(values.root), 'hub.ts'), 'serve', '--port', '0'], {
  CADRE_HOME: folder,
  CADRE_HUB_DATABASE: location.href,
  CADRE_HUB_POOL: values.pool,
  CADRE_ADMIN_PASSWORD: 'bench',
  CADRE_LOG_LEVEL: 'error',
})

const stranger = new HubClient(hub.url, null)
const { token } = await stranger.call(CreateSession, { username: 'admin', password: 'bench' })
const admin = new HubClient(hub.url, token)
const realm_id = (await admin.call(ListRealms, {})).realms[0]!.id
const text =
  'name: "@admin/t"\nversion: 1.0.0\nphases: [{ name: p, agent: exec, commands: [{ name: c, run: "true" }] }]\n'
const files = [{ path: 'team.yml', content_base64: Buffer.from(text).toString('base64') }]
const { name: team } = await admin.call(PublishTeam, { files })
await admin.call(AddTeam, { realm_id, team })
const { token: secret } = await admin.call(GenerateToken, { type: 'realm', name: 'bench', realm_ids: [realm_id] })

const times = new Map<string, number[]>()
const failures = new Map<string, number>()
let isMeasured = false
let isOver = false

async function timed<T>(call: string, work: () => Promise<T>): Promise<T | null> {
  const start = performance.now()
  try {
    const result = await work()
    if (isMeasured) times.set(call, [...(times.get(call) ?? []), performance.now() - start])
    return result
  } catch (error) {
    const code = (error as { code?: string }).code ?? String(error)
    if (isMeasured) failures.set(`${call}: ${code}`, (failures.get(`${call}: ${code}`) ?? 0) + 1)
    await Bun.sleep(200)
    return null
  }
}

const options = { timeout: TIMEOUT_MS }
let newest = ''

async function daemonWorks(n: number): Promise<void> {
  const daemon = new DaemonClient(
    hub.url,
    secret,
    () => ({}),
    () => {},
  )
  const agents = [{ name: 'exec', version: '1.0.0' }]
  const { daemon_id } = await daemon.call(Register, { name: `d${n}`, agents }, options)
  const epoch = crypto.randomUUID()
  let seq = 0
  while (!isOver) {
    const polled = await timed('daemons/poll', () => daemon.call(Poll, { daemon_id, slots: 1 }, options))
    const [job] = (polled?.jobs ?? []) as { job_id: string; lease_id: string; run_id: string }[]
    if (!job) {
      await Bun.sleep(100)
      continue
    }
    const { job_id, lease_id, run_id } = job
    const taken = await timed('daemons/ack', () =>
      daemon.call(Ack, { daemon_id, job_id, lease_id, status: 'accepted' }, options),
    )
    if (!taken) continue
    const place = {
      run_id,
      run_name: null,
      root_run_id: run_id,
      parent_run_id: null,
      parent_phase: null,
      call_depth: 0,
    }
    const what = { call_path: [team], tree_key: '', team, version: '1.0.0', reason: null, error: null, workspace: null }
    const state = { state: 'completed', inputs: {}, outputs: {}, started_at: 1_000, completed_at: 2_000 }
    const change = { seq: seq + 1, kind: 'run', run_id, attempt: 1, run: { ...place, ...what, ...state } }
    const body = { daemon_id, epoch, from_seq: seq + 1, changes: [change] }
    if (await timed('runs/sync', () => daemon.call(Sync, body, options))) seq++
    newest = run_id
  }
}

async function personReads(): Promise<void> {
  while (!isOver) {
    await timed('runs/list', () => admin.call(ListHubRuns, { realm_id }, options))
    if (newest) await timed('runs/tree', () => admin.call(GetTree, { run_id: newest }, options))
  }
}

const dispatched = async () => void (await admin.call(DispatchRun, { realm_id, team, inputs: {} }, options))

async function personDispatches(): Promise<void> {
  while (!isOver) await timed('dispatch/run', dispatched)
}

const many = (count: string, work: (n: number) => Promise<void>) =>
  Array.from({ length: Number(count) }, (_, n) => work(n))
for (let n = 0; n < Number(values.waiting); n += 50) await Promise.all(many('50', dispatched))
const working = [
  ...many(values.daemons, daemonWorks),
  ...many(values.readers, personReads),
  ...many(values.dispatchers, personDispatches),
]
await Bun.sleep(3_000)
delayMs = Number(values.delay)
await Bun.sleep(WARM_UP_MS)
isMeasured = true
await Bun.sleep(Number(values.seconds) * 1_000)
isOver = true
isMeasured = false
delayMs = 0

const at = (all: number[], part: number) => `${Math.round(all[Math.floor(all.length * part)] ?? 0)} ms`.padStart(10)
const row = (call: string, unsorted: number[]) => {
  const all = unsorted.toSorted((a, b) => a - b)
  const rate = `${(all.length / Number(values.seconds)).toFixed(1)}/s`.padStart(9)
  console.log(`${call.padEnd(16)}${at(all, 0.5)}${at(all, 0.95)}${at(all, 0.999)}${rate}`)
}
console.log(`+${values.delay} ms to PostgreSQL, a pool of ${values.pool}, ${values.daemons} daemons\n`)
console.log(`${''.padEnd(16)}       p50       p95     p99.9`)
for (const [call, all] of times) row(call, all)
row('all', [...times.values()].flat())
for (const [failure, count] of failures) console.log(`${count} × ${failure}`)
await Promise.race([Promise.all(working), Bun.sleep(5_000)])
await hub.stop()
proxy.close()
await admins.unsafe(`DROP DATABASE ${name} WITH (FORCE)`)
await admins.close()
rmSync(folder, { recursive: true, force: true })
process.exit()
