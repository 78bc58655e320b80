// Deliveries of hooks that come several times, at once, and to daemons that die: each has one firing and one run.

import { afterAll, expect, test } from 'bun:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { bundled } from '../support/chaos-bundle.ts'
import { files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { rowsOf } from '../support/home.ts'
import { post, SECRET, signed } from '../support/hooks.ts'
import { killedAt, walkOfKills } from '../support/kill-walk.ts'
import { randomFrom, seedOf } from '../support/random.ts'

const program = await bundled('hook-process.ts')
afterAll(() => program.remove())

const SLOW = Boolean(process.env.CADRE_SLOW_TESTS)
const AT_ONCE = 32
const DELIVERIES = SLOW ? 1_000 : 120
const TIMES = 3

const TEAM = `name: "@local/brief"
version: 1.0.0
inputs: [{ name: n, type: string }]
phases: [{ name: ask, type: gate, when: "false", review: { prompt: "Go on?" } }]
`

test('each of many deliveries that come again and again, at once, has one run', async () => {
  const daemon = await spawnDaemon({})
  const team = `${files({ 'brief/team.yml': TEAM })}/brief`
  const hook = { name: 'many', kind: 'hook', team, scheme: 'github', secret: SECRET, inputs: { n: '{{ body.n }}' } }
  const { url } = await daemon.call('/v1/triggers/add', hook, { authorization: `Bearer ${daemon.token}` })
  const random = randomFrom(seedOf('deliveries'))
  const left = Array.from({ length: DELIVERIES * TIMES }, (_, n) => `d-${n % DELIVERIES}`)
  left.sort(() => random() - 0.5)
  const runs = new Map<string, Set<string>>()
  const sendAll = async () => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) {
      const body = JSON.stringify({ n: id })
      const reply = await post(url, body, signed(body, id))
      if (reply.status === 429) {
        left.unshift(id)
        await sleep(Number(reply.headers.get('retry-after')) * 1_000)
        continue
      }
      expect([reply.status, reply.body.data.state]).toEqual([202, 'started'])
      runs.set(id, (runs.get(id) ?? new Set()).add(reply.body.data.run_id))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, sendAll))
  expect(runs.size).toBe(DELIVERIES)
  for (const [id, its] of runs) expect([id, its.size]).toEqual([id, 1])
  const rows = rowsOf<{ occasion: string; run_id: string; deliveries: number; inputs: string }>(
    daemon.home,
    'SELECT occasion, run_id, deliveries, inputs FROM firings JOIN runs ON runs.id = run_id',
  )
  expect(rows).toHaveLength(DELIVERIES)
  for (const { occasion, run_id, deliveries, inputs } of rows) {
    expect([occasion, [...runs.get(occasion)!], deliveries]).toEqual([occasion, [run_id], TIMES])
    expect(inputs).toContain(`"${occasion}"`)
  }
  expect(rowsOf<{ n: number }>(daemon.home, 'SELECT count(*) AS n FROM runs')).toEqual([{ n: DELIVERIES }])
  await daemon.stop()
}, 120_000)

test('wherever a daemon dies, a delivery that comes again gets the first run', async () => {
  const writes = await walkOfKills(
    async n => {
      const home = folder()
      const died = await killedAt(n, home, program.program)
      expect(await killedAt(0, home, program.program)).toBe(false)
      const found = rowsOf<{ occasion: string; state: string }>(
        home,
        'SELECT occasion, state FROM firings ORDER BY occasion',
      )
      expect(found).toEqual(['d-1', 'd-2', 'd-3'].map(occasion => ({ occasion, state: 'started' })))
      const [runs] = rowsOf<{ n: number }>(
        home,
        'SELECT count(*) AS n FROM runs WHERE id IN (SELECT run_id FROM firings)',
      )
      const [all] = rowsOf<{ n: number }>(home, 'SELECT count(*) AS n FROM runs')
      expect([n, runs, all]).toEqual([n, { n: 3 }, { n: 3 }])
      expect(rowsOf(home, 'SELECT 1 FROM hook_bodies')).toHaveLength(3)
      return died
    },
    SLOW ? 1 : 5,
  )
  console.log(`hook killed at its writes: ${writes}`)
  expect(writes).toBeGreaterThanOrEqual(10)
}, 120_000)
