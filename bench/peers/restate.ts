// Measures 1,000 small runs that each make a GET and store its reply, in Restate and in the engine, in turn, and prints the
// medians. bench/peers.sh starts it, with a folder in which Restate is installed.
//
//   bun bench/peers/restate.ts FOLDER

import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import http from '../../agents/http.ts'
import { testEngine } from '../../tests/support/engine.ts'

const ROUNDS = 5
const ITEMS = 1_000
const PATIENCE_MS = 60_000
const [folder] = process.argv.slice(2) as [string]
const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('body\n') })
const url = String(server.url)

const freePort = () => {
  using taken = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  return taken.port
}

async function answers(address: string, init: RequestInit = {}): Promise<Response> {
  const until = performance.now() + PATIENCE_MS
  for (;;) {
    const reply = await fetch(address, init).catch(() => null)
    if (reply?.ok) return reply
    if (performance.now() > until) throw new Error(`${address}: ${reply ? await reply.text() : 'no answer'}`)
    await Bun.sleep(100)
  }
}

/** A server of Restate with the service, and what measures one round in seconds. */
async function restate() {
  const [ingress, admin, fabric, port] = [freePort(), freePort(), freePort(), freePort()]
  const sdk = join(folder, 'node_modules/@restatedev/restate-sdk/dist/index.js')
  const quiet = { cwd: folder, stdout: 'ignore', stderr: 'ignore' } as const
  const service = Bun.spawn(['node', 'restate-service.mjs', String(port), sdk], quiet)
  // The command of the package is a script that would not pass on the signal.
  const [binary] = new Bun.Glob('node_modules/@restatedev/restate-server-*/bin/restate-server').scanSync(folder)
  const program = Bun.spawn([join(folder, binary!), '--base-dir', join(folder, 'data')], {
    ...quiet,
    env: {
      ...process.env,
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
      RESTATE_BIND_ADDRESS: `127.0.0.1:${fabric}`,
      RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${fabric}`,
    },
  })
  const json = (body: object) => ({
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  await answers(`http://127.0.0.1:${admin}/deployments`, json({ uri: `http://127.0.0.1:${port}` }))
  await answers(`http://127.0.0.1:${ingress}/restate/health`)
  let rounds = 0
  return {
    async measure(): Promise<number> {
      const at = join(folder, `round-${++rounds}`)
      mkdirSync(at)
      const began = performance.now()
      await answers(`http://127.0.0.1:${ingress}/fetcher/each`, json({ url, folder: at, items: ITEMS }))
      const took = performance.now() - began
      if (readdirSync(at).length !== ITEMS) throw new Error(`Restate stored ${readdirSync(at).length} files`)
      return took
    },
    async stop() {
      service.kill()
      program.kill()
      await Promise.all([service.exited, program.exited])
    },
  }
}

const TEAM = {
  'team.yml': `
name: "@local/map"
version: 1.0.0
inputs: [{ name: items, type: list, required: true }]
phases:
  - { name: each, type: map, items: "{{ inputs.items }}", team: ./one, concurrency: 16 }
`,
  'one/team.yml': `
name: "@local/one"
version: 1.0.0
phases: [{ name: get, agent: http, sources: [{ name: body.txt, url: "${url}" }] }]
`,
}

async function ours(round: number): Promise<number> {
  const home = join(folder, `home-${round}`)
  mkdirSync(home)
  const t = await testEngine({ agents: { http }, home, grown: true })
  const start = await t.prepare(TEAM, { items: Array.from({ length: ITEMS }, (_, item) => item) })
  const began = performance.now()
  const { state } = await t.engine.ended((await start()).run_id)
  const took = performance.now() - began
  await t.close()
  const files = [...new Bun.Glob('runs/*/files/get/body.txt').scanSync(home)].length
  if (state !== 'completed' || files !== ITEMS) throw new Error(`the engine: ${state}, ${files} files`)
  rmSync(home, { recursive: true })
  return took
}

const median = (all: number[]) => Math.round(all.toSorted((a, b) => a - b)[all.length >> 1]!)
const peer = await restate()
try {
  // The first round of each warms it up.
  const took: { peer: number[]; ours: number[] } = { peer: [], ours: [] }
  for (let round = 0; round <= ROUNDS; round++) {
    const [its, own] = [await peer.measure(), await ours(round)]
    if (round === 0) continue
    took.peer.push(its)
    took.ours.push(own)
  }
  const [its, own] = [median(took.peer), median(took.ours)]
  console.log(`1,000 GETs with a file each: Restate ${its} ms, cadre ${own} ms, ${(own / its).toFixed(2)} ×`)
} finally {
  await Promise.all([peer.stop(), server.stop(true)])
}
