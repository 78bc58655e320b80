// Measures whether the hub and the daemon respond during the heaviest work that a caller may request. A separate
// process calls `GET /health` repeatedly during each task. The slowest reply counts. It exits with 1 when one took 250 ms
// or more, or when a task was not what it says.
//
//   bun bench/health.ts [--only NAME,NAME]

import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runChange } from '../tests/support/sync.ts'
import { type Server, serve } from './server.ts'

const GOAL_MS = 250
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

/**
 * Calls `<url>/health` until it is stopped, then prints the slowest reply in milliseconds and the number of replies.
 */
const ASKER = `
  let slowest = 0, count = 0, going = true
  for (const event of ['data', 'end']) process.stdin.once(event, () => { going = false })
  await fetch(process.argv[1] + '/health')
  console.log('ready')
  while (going) {
    const asked = performance.now()
    const reply = await fetch(process.argv[1] + '/health')
    await reply.arrayBuffer()
    if (reply.status !== 200) throw new Error('/health answered ' + reply.status)
    slowest = Math.max(slowest, performance.now() - asked)
    count++
    await Bun.sleep(2)
  }
  console.log(JSON.stringify({ slowest, count }))
`

/** Runs `work` while /health is called, and prints the result. */
async function during(name: string, { url }: Server, work: () => Promise<string>): Promise<void> {
  if (only && !only.includes(name)) return
  const asker = Bun.spawn([process.execPath, '-e', ASKER, url], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  const words = asker.stdout.getReader()
  await words.read()
  const started = performance.now()
  const about = await work()
  const took = Math.round(performance.now() - started)
  asker.stdin.write('enough\n')
  await asker.stdin.end()
  const { slowest, count } = JSON.parse(new TextDecoder().decode((await words.read()).value))
  const isMissed = slowest >= GOAL_MS
  if (isMissed) process.exitCode = 1
  const end = `goal < ${GOAL_MS} ms${isMissed ? '  MISSED' : ''}`
  console.log(
    `${name.padEnd(12)} ${`${Math.round(slowest)} ms`.padStart(8)}  ${about}, ${took} ms, ${count} answers  ${end}`,
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

const tree = crypto.randomUUID()
const child = crypto.randomUUID()
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

await during('sync', hub, async () => {
  const text = 'x'.repeat(1_000)
  const changeOf = (n: number) =>
    runChange(crypto.randomUUID(), { inputs: { text }, started_at: n, state: 'completed', completed_at: n + 1 })
  const sizeOf = (count: number) => JSON.stringify(batch(3, numbers(count).map(changeOf))).length
  // All have nearly the same size.
  const count = Math.floor((SYNC_BYTES - 10_000) / (sizeOf(1_000) / 1_000))
  const body = batch(3, numbers(count).map(changeOf))
  const mebibytes = JSON.stringify(body).length / 1_048_576
  expect(`nearly 4 MiB to sync, got ${mebibytes}`, mebibytes > 3.9 && mebibytes <= 4)
  await sync(body)
  return `a batch of ${count} runs, ${mebibytes.toFixed(2)} MiB`
})

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

const daemon = await serve([join(root, 'daemon.ts'), '--home', join(folder, 'daemon'), 'serve', '--port', '0'], {
  HOME: folder,
  CADRE_LOG_LEVEL: 'error',
})
const place = join(folder, 'team')
const text = 'abcdefgh'.repeat(40_000)
await Bun.write(
  join(place, 'team.yml'),
  `name: "@local/worst"
version: 1.0.0
inputs: [{ name: text, type: string, required: true }, { name: list, type: list, required: true }]
phases:
  - { name: a, agent: exec, when: "inputs.list.all(i, inputs.list.all(k, i + k != -1))", commands: [{ name: c, run: "true" }] }
  - { name: b, agent: exec, when: "inputs.list.all(i, !inputs.text.contains(string(i) + 'never'))", commands: [{ name: c, run: "true" }] }
`,
)
await during('expression', daemon, async () => {
  const start = { path: place, inputs: { text, list: numbers(5_000) } }
  const runs = await Promise.all(numbers(4).map(() => call(daemon.url, 'runs/start', start)))
  const states: string[] = []
  for (const { status, data } of runs) {
    expectStatus('runs/start', { status, data }, 200, 201)
    for (;;) {
      const { state, completed_at } = (await call(daemon.url, 'runs/get', { run_id: data.run_id })).data
      if (completed_at !== null) {
        states.push(state)
        break
      }
      await Bun.sleep(20)
    }
  }
  return `4 runs of expressions that reach the limit (${states.join(', ')})`
})
await daemon.stop()
rmSync(folder, { recursive: true, force: true })
