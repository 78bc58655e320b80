// Measures whether the hub and the daemon respond during the heaviest work that a caller, a command or a vendor may cause.
// A separate process calls `GET /health` repeatedly during each task. It exits with 1 when more than one reply in a hundred
// took 100 ms, when the server of a flood needed 250 MiB, when a cancel took 5 s, or when a task was not what it says.
//
//   bun bench/health.ts [--only NAME,NAME]

import { Database } from 'bun:sqlite'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runChange } from '../tests/support/sync.ts'
import { ASKER } from './asker.ts'
import { type Server, serve } from './server.ts'

const MIB = 1_048_576
const GOAL_MS = 100
const CANCEL_MS = 5_000
const MEMORY = 250 * MIB
const TREE = 100_000
/** The largest body that runs/sync takes. */
const SYNC_BYTES = 4 * 1_048_576
const { values } = parseArgs({ options: { only: { type: 'string' } } })
const only = values.only?.split(',')
const folder = mkdtempSync(join(tmpdir(), 'cadre-bench-'))
const root = join(import.meta.dir, '..')
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

interface Reply {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: the data of all calls.
  data: any
}

async function call(url: string, path: string, body: object, token?: string): Promise<Reply> {
  const reply = await fetch(`${url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  })
  const { data, error } = (await reply.json()) as { data: unknown; error: unknown }
  return { status: reply.status, data: data ?? error }
}

/** The memory of a process in bytes, where the system tells it. */
function memoryOf({ pid }: Server): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1_024
  } catch {
    return 0
  }
}

/** Runs `work` while /health is called, and prints the result. `small`: the server must stay small. */
async function during(
  name: string,
  server: Server,
  work: () => Promise<string>,
  { small = false } = {},
): Promise<void> {
  const { url } = server
  if (only && !only.includes(name)) return
  const asker = Bun.spawn([process.execPath, '-e', ASKER, url], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  const words = asker.stdout.getReader()
  await words.read()
  let memory = 0
  const look = setInterval(() => {
    memory = Math.max(memory, memoryOf(server))
  }, 50)
  const started = performance.now()
  const about = await work()
  clearInterval(look)
  const took = Math.round(performance.now() - started)
  asker.stdin.write('enough\n')
  await asker.stdin.end()
  const { p99, slowest, count } = JSON.parse(new TextDecoder().decode((await words.read()).value))
  const isMissed = p99 >= GOAL_MS || (small && memory >= MEMORY)
  if (isMissed) process.exitCode = 1
  const goal = `goal < ${GOAL_MS} ms${small ? `, < ${MEMORY / MIB} MiB` : ''}${isMissed ? '  MISSED' : ''}`
  const size = `${Math.round(memory / MIB)} MiB`
  console.log(
    `${name.padEnd(12)} p99 ${`${Math.round(p99)} ms`.padStart(7)}, slowest ${`${Math.round(slowest)} ms`.padStart(7)}, ${size.padStart(7)}  ${about}, ${took} ms, ${count} answers  ${goal}`,
  )
}

function expectStatus(name: string, { status, data }: Reply, ...fine: number[]): void {
  if (!fine.includes(status)) throw new Error(`${name} answered ${status}: ${JSON.stringify(data)}`)
}

function expect(what: string, isSo: boolean): void {
  if (!isSo) throw new Error(`expected ${what}`)
}

// The hub

const home = join(folder, 'hub')
const startHub = () =>
  serve([join(root, 'hub.ts'), 'serve', '--port', '0'], {
    CADRE_HOME: home,
    CADRE_ADMIN_PASSWORD: 'bench',
    CADRE_HUB_KEY: 'bench',
    CADRE_LOG_LEVEL: 'error',
  })
let hub = await startHub()
const { token: admin } = (await call(hub.url, 'session/create', { username: 'admin', password: 'bench' })).data
const realm_id = (await call(hub.url, 'realms/list', {}, admin)).data.realms[0].id
const realm = (
  await call(hub.url, 'auth/generate_token', { type: 'realm', name: 'bench', realm_ids: [realm_id] }, admin)
).data.token
await call(hub.url, 'realms/add_team', { realm_id, team: '@admin/t' }, admin)
const { daemon_id } = (await call(hub.url, 'daemons/register', { name: 'bench' }, realm)).data
const epoch = crypto.randomUUID()

const leaf = (name: string, phases: number) =>
  `name: "${name}"\nversion: 1.0.0\nphases:\n${numbers(phases)
    .map(n => `  - { name: p${n}, agent: exec, when: "'a' != 'b'", commands: [{ name: c, run: "echo ${n}" }] }\n`)
    .join('')}`
const file = (path: string, content: string | Uint8Array) => ({
  path,
  content_base64: Buffer.from(content).toString('base64'),
})

await during('publish', hub, async () => {
  const teams = numbers(50)
  const phases = teams.map(n => `  - { name: s${n}, type: team, team: ./t${n} }\n`).join('')
  const files = [
    file('team.yml', `name: "@admin/heavy"\nversion: 1.0.0\nphases:\n${phases}`),
    ...teams.map(n => file(`t${n}/team.yml`, leaf(`@admin/t${n}`, 100))),
    ...numbers(10).map(n => file(`data${n}.bin`, crypto.getRandomValues(new Uint8Array(65_536)).toBase64().repeat(11))),
  ]
  const size = files.reduce((sum, { content_base64 }) => sum + Buffer.from(content_base64, 'base64').length, 0)
  expect('10 MB to publish', size >= 10_000_000)
  expectStatus('teams/publish', await call(hub.url, 'teams/publish', { files }, admin), 200)
  return `a package of ${size} bytes, published`
})

await during('sign-in', hub, async () => {
  const guesses = numbers(200).map(n =>
    call(hub.url, 'session/create', { username: `nobody${n % 40}`, password: `guess ${n}` }),
  )
  for (const reply of await Promise.all(guesses)) expectStatus('session/create', reply, 401, 429)
  return '200 wrong passwords at once'
})

const tree = Bun.randomUUIDv7()
const child = Bun.randomUUIDv7()
const batch = (from_seq: number, changes: object[]) => ({
  daemon_id,
  epoch,
  protocol: 1,
  from_seq,
  changes: changes.map((each, n) => ({ seq: from_seq + n, ...each })),
})
/** Reports changes, all of which the hub must take. */
async function sync(body: ReturnType<typeof batch>): Promise<void> {
  const reply = await call(hub.url, 'runs/sync', body, realm)
  expectStatus('runs/sync', reply, 200)
  expect(`none rejected, got ${JSON.stringify(reply.data.rejected).slice(0, 200)}`, reply.data.rejected.length === 0)
}
const below = {
  root_run_id: tree,
  parent_run_id: tree,
  parent_phase: 'each',
  call_path: ['@admin/t', '@admin/t'],
  call_depth: 1,
  tree_key: '000000000',
}
await sync(batch(1, [runChange(tree), runChange(child, { ...below, run_name: '0' })]))

// The memory of this part is that of a hub that did nothing else.
await hub.stop()
hub = await startHub()

await during(
  'sync',
  hub,
  async () => {
    const text = 'x'.repeat(1_000)
    const changeOf = (n: number) =>
      runChange(Bun.randomUUIDv7(), { inputs: { text }, started_at: n, state: 'completed', completed_at: n + 1 })
    const sizeOf = (count: number) => JSON.stringify(batch(3, numbers(count).map(changeOf))).length
    // All have nearly the same size.
    const count = Math.floor((SYNC_BYTES - 10_000) / (sizeOf(1_000) / 1_000))
    const body = batch(3, numbers(count).map(changeOf))
    const mebibytes = JSON.stringify(body).length / 1_048_576
    expect(`nearly 4 MiB to sync, got ${mebibytes}`, mebibytes > 3.9 && mebibytes <= 4)
    await sync(body)
    return `a batch of ${count} runs, ${mebibytes.toFixed(2)} MiB`
  },
  { small: true },
)

await hub.stop()
const db = new Database(join(home, 'hub.db'))
const columns = db.query<{ name: string }, []>("SELECT name FROM pragma_table_info('runs')").all()
const copied: Record<string, string> = {
  run_id: "run_id || '-' || n",
  tree_key: "substr(tree_key, 1, 3) || printf('%06d', n)",
  run_name: "'item ' || n",
}
db.run(
  `WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${TREE - 2})
   INSERT INTO runs (${columns.map(({ name }) => name).join(', ')})
   SELECT ${columns.map(({ name }) => copied[name] ?? name).join(', ')} FROM runs, n WHERE run_id = '${child}'`,
)
db.close()
hub = await startHub()

await during('tree', hub, async () => {
  const reply = await call(hub.url, 'runs/tree', { run_id: tree }, admin)
  expectStatus('runs/tree', reply, 200)
  expect(`${TREE} runs, got ${reply.data.runs.length}`, reply.data.runs.length === TREE)
  return `a tree of ${reply.data.runs.length} runs`
})
await hub.stop()

// The daemon

/** A text that `^(a|a)*$` takes for ever to refuse, and one that is nested as deep as it is long. */
const UNENDING = `${'a'.repeat(200_000)}!`
const NESTED = '> '.repeat(32_768)

const vendor = Bun.serve({
  port: 0,
  async fetch(request) {
    if (!request.url.endsWith('/chat/completions')) return new Response('ok')
    const message = { role: 'assistant', content: JSON.stringify({ word: UNENDING }) }
    const usage = { prompt_tokens: 1, completion_tokens: 1 }
    return Response.json({ model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }], usage })
  },
})
const address = `http://127.0.0.1:${vendor.port}`
const settings = {
  agents: {
    llm: { provider: 'openai', model: 'm', base_url: `${address}/v1` },
    chat: { channels: { ops: `${address}/hook` } },
  },
}
const place = join(folder, 'daemon')
await Bun.write(join(place, 'settings.yml'), JSON.stringify(settings))
chmodSync(join(place, 'settings.yml'), 0o600)
const startDaemon = () =>
  serve([join(root, 'daemon.ts'), '--home', place, 'serve', '--port', '0'], { HOME: folder, CADRE_LOG_LEVEL: 'error' })
let daemon = await startDaemon()

/** Writes a team and returns its folder. */
async function team(name: string, text: string): Promise<string> {
  const path = join(folder, 'teams', name)
  await Bun.write(join(path, 'team.yml'), `name: "@local/${name}"\nversion: 1.0.0\n${text}`)
  return path
}

async function started(start: object): Promise<string> {
  const reply = await call(daemon.url, 'runs/start', start)
  expectStatus('runs/start', reply, 200, 201)
  return reply.data.run_id
}

/** The state in which a run ended. */
async function ended(run_id: string): Promise<string> {
  for (;;) {
    const { state, completed_at } = (await call(daemon.url, 'runs/get', { run_id })).data
    if (completed_at !== null) return state
    await Bun.sleep(20)
  }
}

const numberedPhases = (commands: readonly string[]) =>
  `phases:\n${commands
    .map((run, n) => `  - { name: p${n}, agent: exec, commands: [{ name: c, run: ${JSON.stringify(run)} }] }\n`)
    .join('')}`

// A first run loads what runs need.
await ended(await started({ path: await team('first', numberedPhases(['true'])) }))

const expressions = `inputs: [{ name: text, type: string, required: true }, { name: list, type: list, required: true }]
phases:
  - { name: a, agent: exec, when: "inputs.list.all(i, inputs.list.all(k, i + k != -1))", commands: [{ name: c, run: "true" }] }
  - { name: b, agent: exec, when: "inputs.list.all(i, !inputs.text.contains(string(i) + 'never'))", commands: [{ name: c, run: "true" }] }
`
await during('expression', daemon, async () => {
  const path = await team('worst', expressions)
  const start = { path, inputs: { text: 'abcdefgh'.repeat(40_000), list: numbers(5_000) } }
  const runs = await Promise.all(numbers(4).map(() => started(start)))
  const states = await Promise.all(runs.map(ended))
  return `4 runs of expressions that reach the limit (${states.join(', ')})`
})

await during('json', daemon, async () => {
  const inputs = 'inputs: [{ name: list, type: list, required: true }]\n'
  const path = await team('lists', inputs + numberedPhases(['true']))
  const lists: unknown[] = [numbers(250_000).map(() => []), [JSON.parse('['.repeat(100) + ']'.repeat(100))]]
  const runs = [...lists, ...lists].map(async list => {
    const { status } = await call(daemon.url, 'runs/start', { path, inputs: { list } })
    expect(`an answer, got ${status}`, status < 500)
  })
  await Promise.all(runs)
  return '4 bodies of many and of deep lists'
})

await during('regex', daemon, async () => {
  const schema = `{ type: object, required: [word], properties: { word: { type: string, pattern: "^(a|a)*$" } } }`
  const source = `{ name: out.json, prompt: go, schema: ${schema} }`
  const path = await team('regex', `phases:\n  - { name: p, agent: llm, action: complete, sources: [${source}] }\n`)
  return `a pattern of a schema that never ends, on ${UNENDING.length} characters (${await ended(await started({ path }))})`
})

await during('markdown', daemon, async () => {
  const inputs = 'inputs: [{ name: text, type: string, required: true }]\n'
  const phases = `${numberedPhases(['true'])}  - { name: tell, agent: chat, depends_on: [p0], message: "{{ inputs.text }}" }\n`
  const path = await team('markdown', inputs + phases)
  return `a message that is nested ${NESTED.length / 2} deep (${await ended(await started({ path, inputs: { text: NESTED } }))})`
})

/** Runs commands, and cancels the run after `ms` if it has not ended. */
async function flood(commands: readonly string[], ms: number): Promise<string> {
  const run_id = await started({ path: await team('flood', numberedPhases(commands)) })
  const isOver = await Promise.race([ended(run_id).then(() => true), Bun.sleep(ms).then(() => false)])
  if (isOver) return `it ${await ended(run_id)}`
  const asked = performance.now()
  expectStatus('runs/cancel', await call(daemon.url, 'runs/cancel', { run_id }), 200)
  const state = await ended(run_id)
  const took = Math.round(performance.now() - asked)
  if (took >= CANCEL_MS) process.exitCode = 1
  return `${state} after ${took} ms (goal < ${CANCEL_MS} ms${took < CANCEL_MS ? '' : '  MISSED'})`
}

// What earlier tasks needed is not the memory of a flood.
await daemon.stop()
daemon = await startDaemon()
const small = { small: true }
await during('flood', daemon, async () => `8 commands that print: ${await flood(Array(8).fill('yes'), 15_000)}`, small)
const long = 'head -c 100000000 /dev/zero | tr "\\0" x; echo'
await during('long lines', daemon, async () => `4 lines of 100 MB: ${await flood(Array(4).fill(long), 120_000)}`, small)
const much = "yes 'a line of the usual length, as a program of the usual kind prints it' | head -c 1000000000"
await during('gigabyte', daemon, async () => `1 GB of lines: ${await flood([much], 120_000)}`, small)

await daemon.stop()
await vendor.stop(true)
rmSync(folder, { recursive: true, force: true })
