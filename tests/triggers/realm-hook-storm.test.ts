// Deliveries to hooks of a realm that come several times, at once, to hub processes that die: each has one firing and one
// run. On SQLite one hub serves, and on PostgreSQL two.

import { describe, expect, test } from 'bun:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { post, SECRET, signed } from '../support/hooks.ts'
import { randomFrom, seedOf } from '../support/random.ts'
import { DATABASES, type HubProcess, publish, rowsIn, signedIn, startHub, stop } from '../support/served-hubs.ts'

const SLOW = Boolean(process.env.CADRE_SLOW_TESTS)
const DELIVERIES = SLOW ? 1_000 : 150
/** So many of them come again. */
const REPEATED = Math.round(DELIVERIES * 0.3)
const MOST_TIMES = 5
const AT_ONCE = 32

const TEAM = `name: "@admin/brief"
version: 1.0.0
inputs: [{ name: n, type: string }]
phases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]
`

/** A hook on a new realm's team, as the path of its address. */
async function addHook({ url }: HubProcess, fields: object): Promise<string> {
  const { call, realm_id } = await signedIn(() => url)
  await publish(call, realm_id, '@admin/brief', TEAM)
  const hook = { realm_id, name: 'many', kind: 'hook', team: '@admin/brief', scheme: 'github', secret: SECRET }
  return (await call('triggers/add', { ...hook, ...fields })).url
}

describe.each(DATABASES)('on $name', ({ hubs: count, open }) => {
  test('each of many deliveries that come again and again, at once, has one run', async () => {
    await using database = await open()
    const hubs = await Promise.all(Array.from({ length: count }, () => startHub(database.location)))
    const path = await addHook(hubs[0]!, { inputs: { n: '{{ body.n }}' } })
    const random = randomFrom(seedOf('deliveries of a realm'))
    const times = new Map<string, number>()
    for (let n = 0; n < DELIVERIES; n++) times.set(`d-${n}`, n < REPEATED ? 2 + random.below(MOST_TIMES - 1) : 1)
    const left = [...times].flatMap(([id, count]) => Array.from({ length: count }, () => id))
    left.sort(() => random() - 0.5)
    const runs = new Map<string, Set<string>>()
    const took: number[] = []
    const sendAll = async () => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) {
        const body = JSON.stringify({ n: id })
        const begun = performance.now()
        const reply = await post(random.of(hubs).url + path, body, signed(body, id))
        if (reply.status === 429) {
          left.unshift(id)
          await sleep(Number(reply.headers.get('retry-after')) * 1_000)
          continue
        }
        took.push(performance.now() - begun)
        expect([reply.status, reply.text]).toEqual([202, expect.stringContaining('"state":"started"')])
        runs.set(id, (runs.get(id) ?? new Set()).add(reply.body.data.run_id))
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, sendAll))
    await stop(hubs)
    took.sort((one, other) => one - other)
    const at = (part: number) => Math.round(took[Math.floor(took.length * part)]!)
    console.log(`${took.length} deliveries at ${count} hubs: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`)
    const rows = await rowsIn(database.location)
    expect([rows.firings.length, rows.runs.length]).toEqual([DELIVERIES, DELIVERIES])
    for (const { occasion, run_id, deliveries } of rows.firings) {
      expect([occasion, [...runs.get(occasion)!], deliveries]).toEqual([occasion, [run_id!], times.get(occasion)!])
    }
    const known = new Set(rows.runs.map(({ run_id }) => run_id))
    expect(rows.firings.every(({ run_id }) => known.has(run_id!))).toBe(true)
  }, 240_000)

  test('a hub that is killed between the commit and the answer: the repetition gets the first run', async () => {
    await using database = await open()
    const first = await startHub(database.location)
    const path = await addHook(first, {})
    await stop([first])
    const body = '{"n":"1"}'
    const doomed = await startHub(database.location, { CADRE_FAILPOINT: '1' })
    const lost = await post(doomed.url + path, body, signed(body, 'd-1')).catch(() => null)
    expect([lost, await doomed.child.exited]).toEqual([null, 137])
    const committed = await rowsIn(database.location)
    expect(committed.firings).toMatchObject([{ occasion: 'd-1', state: 'started', deliveries: 1 }])
    const next = await startHub(database.location)
    const again = await post(next.url + path, body, signed(body, 'd-1'))
    const { run_id } = committed.firings[0]!
    expect([again.status, again.body.data]).toMatchObject([202, { state: 'started', duplicate: true, run_id }])
    await stop([next])
    expect((await rowsIn(database.location)).runs).toHaveLength(1)
  }, 60_000)
})
