// The teams of "Calling an API" in docs/write-a-team.md, against a server that loses replies and has many large pages, and that
// of "Lists and files".

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const PAGES = 4
const kept = new Map<string, unknown>()
let posts = 0
let asked = 0
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname === '/tasks') {
      const page = Number(searchParams.get('page'))
      return Response.json({ pages: PAGES, tasks: [{ id: `${page}a` }, { id: `${page}b` }] })
    }
    if (pathname === '/events') {
      const page = Number(searchParams.get('after') || 1)
      const next = page < PAGES ? `${page + 1}` : null
      return Response.json({ next, ids: [page * 10, page * 10 + 1] })
    }
    if (pathname === '/all') {
      const task = (id: number) => ({ id, late: id % 100 === 0, text: 'x'.repeat(2_000) })
      return Response.json({ tasks: Array.from({ length: 1_000 }, (_, id) => task(id)) })
    }
    if (pathname === '/exports/42') {
      asked += 1
      return Response.json({ state: asked > 0 ? 'done' : 'running', url: new URL('/exports/42.csv', request.url).href })
    }
    if (pathname.startsWith('/customers/')) {
      return pathname.endsWith('2') ? new Response('property tier is locked', { status: 400 }) : Response.json({})
    }
    if (pathname === '/exports/42.csv') return new Response('a,b\n1,2\n')
    posts += 1
    const key = request.headers.get('idempotency-key')!
    const isFirst = !kept.has(key)
    if (isFirst) kept.set(key, await request.json())
    // Written, but the reply is lost on the way.
    return isFirst ? new Response(null, { status: 502 }) : Response.json({ key }, { status: 201 })
  },
})

const document = readFileSync(join(import.meta.dir, '../../docs/write-a-team.md'), 'utf8')
const fences = Array.from(document.matchAll(/^```\w+ (\S+\/\S+\.(?:yml|txt))\n([\s\S]*?)^```$/gm), ([, path, text]) => [
  path!,
  text!.replaceAll('https://api.example.com/', server.url.href).replace('every: 30s', 'every: 1ms'),
])
const teams = files(Object.fromEntries(fences))

let daemon: RunningDaemon
beforeAll(async () => {
  daemon = await spawnDaemon()
})
afterAll(() => server.stop(true))

async function run(team: string, inputs: object = {}) {
  const { run_id } = await daemon.call('/v1/runs/start', { path: join(teams, team), inputs })
  return daemon.ended(run_id)
}

test('each record is written once, although the reply to each was lost', async () => {
  const records = [{ id: 1 }, { id: 2 }, { id: 3 }]
  expect(await run('post-each', { records })).toMatchObject({ state: 'completed', error: null })
  // The items go at the same time, so they come in any order.
  expect([...kept].sort()).toEqual(records.map(record => [`record-${record.id}`, record]))
  expect(posts).toBe(6)
})

test('all pages become one list, in order', async () => {
  const { outputs } = await run('pages')
  const ids = Array.from({ length: PAGES }, (_, at) => [`${at + 1}a`, `${at + 1}b`]).flat()
  expect(outputs).toEqual({ tasks: ids.map(id => ({ id })) })
})

test('a team that calls itself follows the cursor of each page', async () => {
  expect((await run('follow')).outputs).toEqual({ ids: [10, 11, 20, 21, 30, 31, 40, 41] })
})

test('a report says which records were refused, and why', async () => {
  const { run_id, state } = await run('refused', { customers: [{ id: 'c1' }, { id: 'c2' }, { id: 'c3' }] })
  expect(state).toBe('completed')
  const report = () =>
    readFileSync(join(daemon.home, 'runs', run_id, 'files/refused/refused.csv'), 'utf8').split(/\r?\n/)
  expect(report()).toEqual(['key,error.message', expect.stringMatching(/^c2,.*HTTP 400: property tier is locked$/), ''])
})

test('an export is downloaded when it is ready', async () => {
  asked = -1
  const { run_id, state } = await run('export')
  expect(state).toBe('completed')
  const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })
  expect(phases[0].turns).toMatchObject([
    { turn: 1, state: 'completed' },
    { turn: 2, state: 'completed' },
  ])
  expect(await Bun.file(join(daemon.home, 'runs', run_id, 'files/download/export.csv')).text()).toBe('a,b\n1,2\n')
})

test('customers are sent at the pace of the limit', async () => {
  kept.clear()
  const customers = Array.from({ length: 45 }, (_, id) => ({ id: 500 + id }))
  expect(await run('customers', { customers })).toMatchObject({ state: 'completed', error: null })
  expect(kept.size).toBe(45)
}, 60_000)

test('a file has a reply that is too large for `json`, and is picked from', async () => {
  expect((await run('late')).outputs).toEqual({ late: [0, 100, 200, 300, 400, 500, 600, 700, 800, 900] })
})

test('a list above 1 MiB is written part by part', async () => {
  const all = Array.from({ length: 102 }, (_, at) => ({ id: 1_000 + at, text: 'x'.repeat(at < 100 ? 9_500 : 80_000) }))
  const path = join(folder(), 'records.json')
  writeFileSync(path, JSON.stringify(all))
  kept.clear()
  expect(await run('many', { records: path })).toMatchObject({ state: 'completed', error: null })
  expect(kept.size).toBe(all.length)
}, 120_000)

test('a CSV is filtered, and a template filled for each of its rows', async () => {
  const invoices = join(folder(), 'invoices.csv')
  writeFileSync(invoices, 'id,customer,days\r\n7,"Smith, Inc",45\r\n8,Jones,3\r\n')
  const { run_id, state, outputs } = await run('overdue', { invoices })
  expect([state, outputs?.overdue]).toEqual(['completed', 1])
  const letter = join(daemon.home, 'runs', run_id, String(outputs?.letter))
  expect(readFileSync(letter, 'utf8')).toBe('Smith, Inc owes invoice 7, 45 days late\n')
})
