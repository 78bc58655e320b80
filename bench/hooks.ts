// Measures an accepted delivery of a hook over HTTP, from the request to the answer, with 32 senders at once in another
// process than the daemon: deliveries that start runs, and repetitions. The floor is a transaction of one row, made by 32
// at once in one process, which is what has to be on the disk before any answer.
//
//   bun bench/hooks.ts [--deliveries 2000]

import { createHmac } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Daemon } from '../lib/daemon/runs/daemon.ts'
import { startRun } from '../lib/daemon/runs/start-run.ts'
import { createLog } from '../lib/log/log.ts'
import { serve } from './server.ts'

const { values } = parseArgs({ options: { deliveries: { type: 'string', default: '2000' } } })
const DELIVERIES = Number(values.deliveries)
const AT_ONCE = 32
/** Each takes only so many requests a second. */
const HOOKS = Math.ceil(DELIVERIES / 200)
const SECRET = 'the secret of this hook'
const TEAM = `name: "@local/bench"
version: 1.0.0
inputs: [{ name: n, type: number }]
phases: [{ name: ask, type: gate, when: "false", review: { prompt: "Go on?" } }]
`

const home = mkdtempSync(join(tmpdir(), 'cadre-bench-hooks-'))

/** What each of `DELIVERIES` took, in milliseconds, by the share of them that took no longer. */
async function measure(what: string, work: (n: number) => Promise<unknown>, floor?: number): Promise<number> {
  const took: number[] = []
  let next = 0
  const began = performance.now()
  const one = async () => {
    while (next < DELIVERIES) {
      const n = next++
      const from = performance.now()
      await work(n)
      took.push(performance.now() - from)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, one))
  const rate = (DELIVERIES / (performance.now() - began)) * 1_000
  took.sort((a, b) => a - b)
  const [p50, p99] = [0.5, 0.99].map(share => took[Math.ceil(took.length * share) - 1]!) as [number, number]
  const times = floor === undefined ? '' : `  p99 is ${(p99 / floor).toFixed(1)} × the floor`
  const ms = (value: number) => `${value.toFixed(1)} ms`.padStart(9)
  console.log(`${what.padEnd(38)} p50 ${ms(p50)}  p99 ${ms(p99)}  ${rate.toFixed(0).padStart(5)}/s${times}`)
  return p99
}

const [served, alone] = [join(home, 'served'), join(home, 'alone')]
const path = join(home, 'team')
mkdirSync(path)
writeFileSync(join(path, 'team.yml'), TEAM)
const server = await serve([join(import.meta.dir, '../daemon.ts'), '--home', served, 'serve', '--port', '0'])

async function call<T>(name: string, body: object): Promise<T> {
  const token = readFileSync(join(served, 'token'), 'utf8').trim()
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
  const reply = await fetch(`${server.url}/v1/${name}`, { method: 'POST', headers, body: JSON.stringify(body) })
  const { data } = (await reply.json()) as { data: T }
  if (!reply.ok) throw new Error(`${name} answered ${reply.status}`)
  return data
}

try {
  const daemon = await Daemon.open({ home: alone, log: createLog({ level: 'error' }), env: {} })
  await daemon.openRuns.recover()
  const urls: string[] = []
  for (let n = 0; n < HOOKS; n++) {
    const hook = { name: `bench-${n}`, kind: 'hook', team: path, scheme: 'github', secret: SECRET }
    urls.push((await call<{ url: string }>('triggers/add', { ...hook, inputs: { n: '{{ body.n }}' } })).url)
  }
  daemon.db.run('CREATE TABLE floor (id TEXT PRIMARY KEY, text TEXT)')
  const insert = daemon.db.query('INSERT INTO floor VALUES (?, ?)')

  const send = async (id: string, n: number): Promise<void> => {
    const body = JSON.stringify({ n })
    const signature = createHmac('sha256', SECRET).update(body).digest('hex')
    const headers = {
      'content-type': 'application/json',
      'x-github-delivery': id,
      'x-hub-signature-256': `sha256=${signature}`,
    }
    const reply = await fetch(urls[n % HOOKS]!, { method: 'POST', body, headers })
    if (reply.status !== 202) throw new Error(`answered ${reply.status}: ${await reply.text()}`)
    await reply.arrayBuffer()
  }
  const settled = async () => {
    while ((await call<{ total: number }>('runs/list', { state: 'running', limit: 1 })).total > 0) await Bun.sleep(50)
  }

  const text = 'x'.repeat(500)
  const floorOf = (round: string) =>
    measure('floor: a transaction of one row', n => daemon.engine.commit(() => insert.run(`${round} ${n}`, text)))
  await floorOf('warm')
  for (let n = 0; n < 200; n++) await send(`warm-${n}`, n)
  const origin = { local: true, actor: 'local:bench' }
  const start = (n: number) => startRun(daemon, { path, inputs: { n } }, origin)
  await measure('a start of the same run, without HTTP', start, await floorOf('start'))
  while (daemon.engine.load.runs > 0) await Bun.sleep(50)
  await measure('a delivery that starts a run', n => send(`d-${n}`, n), await floorOf('first'))
  await settled()
  await measure('a delivery that comes again', n => send(`d-${n}`, n), await floorOf('again'))
  await settled()
  await daemon.close()
} finally {
  await server.stop()
  rmSync(home, { recursive: true, force: true })
}
