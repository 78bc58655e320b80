// Measures the hub against floors in one run. Each server has its own process, and so has the load generator: wrk if it
// is installed, otherwise autocannon, which uses more processor time than the hub and therefore affects the result. The
// floors are Bun.serve with a JSON body, the same with one indexed read, and Elysia with a TypeBox body and one indexed
// token look-up. The ratios to the last floor matter, because they do not depend on the machine. Results are the best
// of `--rounds`.
//
//   bun bench/hub.ts [--rounds 3] [--seconds 4] [--connections 64] [--only NAME] [--profile FOLDER]

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { HubClient } from '../lib/daemon/link/hub-client.ts'
import { GenerateToken } from '../lib/wire/calls/auth.ts'
import { Heartbeat, Register } from '../lib/wire/calls/daemon-link.ts'
import { ListRealms } from '../lib/wire/calls/realms.ts'
import { CreateSession } from '../lib/wire/calls/session.ts'
import { type Server, serve } from './server.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '4' },
    connections: { type: 'string', default: '64' },
    only: { type: 'string' },
    profile: { type: 'string' },
  },
})

const folder = mkdtempSync(join(tmpdir(), 'cadre-bench-'))

interface Measure {
  perSecond: number
  p99: number
}

interface Load {
  url: string
  token: string
  body: object
}

/** Runs a load generator and returns its output. */
async function run(command: string[]): Promise<string> {
  const child = Bun.spawn(command, { stdout: 'pipe', stderr: 'pipe' })
  const [text, said] = await Promise.all([child.stdout.text(), child.stderr.text()])
  if ((await child.exited) !== 0) throw new Error(said || text)
  return text
}

const UNITS: Record<string, number> = { us: 0.001, ms: 1, s: 1_000 }

/** Measures with wrk, which takes the method and body from a Lua script and prints its results as text. */
async function wrk({ url, token, body }: Load, seconds: string): Promise<Measure> {
  const script = join(folder, 'post.lua')
  await Bun.write(
    script,
    `wrk.method = "POST"
wrk.body = [==[${JSON.stringify(body)}]==]
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer ${token}"
`,
  )
  const options = ['-t', '1', '-c', values.connections, '-d', `${seconds}s`, '-s', script, '--latency']
  const text = await run(['wrk', ...options, url])
  const rate = /Requests\/sec:\s+([\d.]+)/.exec(text)
  const slow = /99%\s+([\d.]+)(us|ms|s)/.exec(text)
  if (!rate || !slow || /Non-2xx|Socket errors/.test(text)) throw new Error(`${url}: ${text}`)
  return { perSecond: Number(rate[1]), p99: Number(slow[1]) * UNITS[slow[2]!]! }
}

async function autocannon({ url, token, body }: Load, seconds: string): Promise<Measure> {
  const program = Bun.fileURLToPath(import.meta.resolve('autocannon'))
  const options = ['--json', '--connections', values.connections, '--duration', seconds, '--method', 'POST']
  const headers = ['content-type=application/json', `authorization=Bearer ${token}`].flatMap(each => [
    '--headers',
    each,
  ])
  const text = await run(['node', program, ...options, ...headers, '--body', JSON.stringify(body), url])
  const result = JSON.parse(text)
  if (result.non2xx + result.errors + result.timeouts > 0 || result['2xx'] === 0) throw new Error(`${url}: ${text}`)
  return { perSecond: result.requests.average, p99: result.latency.p99 }
}

const fire = Bun.which('wrk') ? wrk : autocannon

/**
 * The best result of each load. Every round measures all loads, so that other activity of the machine affects all of
 * them alike.
 */
async function best(loads: Map<string, Load>): Promise<Map<string, Measure>> {
  const most = new Map<string, Measure>()
  for (const load of loads.values()) await fire(load, '1')
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [name, load] of loads) {
      const { perSecond, p99 } = await fire(load, values.seconds)
      const before = most.get(name) ?? { perSecond: 0, p99: Number.POSITIVE_INFINITY }
      most.set(name, { perSecond: Math.max(perSecond, before.perSecond), p99: Math.min(p99, before.p99) })
    }
  }
  return most
}

/** Starts a hub with an account that has 20 tokens, and a daemon in a realm. */
async function hub(): Promise<Server & { loads: Record<string, Omit<Load, 'url'> & { path: string }> }> {
  const profile = values.profile ? ['--cpu-prof', '--cpu-prof-dir', values.profile] : []
  const server = await serve([...profile, join(import.meta.dir, '../hub.ts'), 'serve', '--port', '0'], {
    CADRE_HOME: folder,
    CADRE_ADMIN_PASSWORD: 'bench',
    CADRE_HUB_KEY: 'bench',
    CADRE_LOG_LEVEL: 'error',
  })
  const { token: session } = await new HubClient(server.url, null).call(CreateSession, {
    username: 'admin',
    password: 'bench',
  })
  const admin = new HubClient(server.url, session)
  const { realms } = await admin.call(ListRealms, {})
  const realm_ids = [realms[0]!.id]
  const { token: realm } = await admin.call(GenerateToken, { type: 'realm', name: 'bench', realm_ids })
  const { token: user } = await admin.call(GenerateToken, { type: 'user', name: 'bench' })
  for (let n = 0; n < 18; n++) await admin.call(GenerateToken, { type: 'user', name: `bench ${n}` })
  const daemon = new HubClient(server.url, realm)
  const { daemon_id } = await daemon.call(Register, { name: 'bench' })
  const { teams_version } = await daemon.call(Heartbeat, { daemon_id })
  return {
    ...server,
    loads: {
      heartbeat: { path: 'daemons/heartbeat', token: realm, body: { daemon_id, teams_version } },
      acl: { path: 'auth/acl', token: realm, body: { daemon_id } },
      'token listing': { path: 'auth/get_tokens', token: user, body: { limit: 50 } },
    },
  }
}

const FLOORS = { bare: 'Bun.serve', read: 'Bun.serve, one indexed read', elysia: 'Elysia, body, token look-up' }

const servers: Server[] = []
const loads = new Map<string, Load>()
for (const [name, about] of Object.entries(FLOORS)) {
  const token = 'of the floor'
  const server = await serve([join(import.meta.dir, 'floors.ts'), name, join(folder, `${name}.db`), token])
  servers.push(server)
  loads.set(`floor: ${about}`, { url: server.url, token, body: { daemon_id: crypto.randomUUID() } })
}
const measured = await hub()
servers.push(measured)
for (const [name, { path, ...load }] of Object.entries(measured.loads)) {
  if (!values.only || values.only === name) loads.set(`hub: ${name}`, { url: `${measured.url}/v1/${path}`, ...load })
}

const results = await best(loads)
const floor = results.get(`floor: ${FLOORS.elysia}`)!
for (const [name, { perSecond, p99 }] of results) {
  const ratio = `${Math.round((100 * perSecond) / floor.perSecond)} %`
  console.log(
    `${name.padEnd(34)} ${`${Math.round(perSecond)}/s`.padStart(9)} ${ratio.padStart(6)}  p99 ${p99.toFixed(1)} ms`,
  )
}
for (const server of servers) await server.stop()
rmSync(folder, { recursive: true, force: true })
