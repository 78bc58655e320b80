// Lived time and the limits that count it: a pause adds next to nothing, and a result that is there comes first.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { startGroup } from '../lib/agent/commands/processes.ts'
import { Limit, LivedCount, limitSignal, livedMs, MOST_A_LOOK_MS } from '../lib/lived-time.ts'
import { until } from './support/bounded.ts'
import { folder } from './support/folder.ts'

/** Holds the event loop, as a pause of the process does: the clock goes on, and what comes waits in the kernel. */
const hold = (ms: number) => Bun.sleepSync(ms)

test('it counts what passes between looks, and of a pause no more than a look adds', () => {
  const steps = fc.array(fc.oneof(fc.nat(MOST_A_LOOK_MS), fc.integer({ min: -86_400_000, max: 86_400_000_000 })))
  fc.assert(
    fc.property(fc.integer({ min: -1e9, max: 1e9 }), steps, (start, passed) => {
      const count = new LivedCount(start)
      let now = start
      let [seen, lived] = [start, 0]
      for (const ms of passed) {
        now += ms
        const before = lived
        lived = count.at(now)
        const forward = Math.max(0, now - seen)
        expect(lived - before).toBe(Math.min(forward, MOST_A_LOOK_MS))
        seen = Math.max(seen, now)
      }
    }),
  )
})

test('a limit expires when its time was lived, and neither before nor once it was ended', async () => {
  const since = performance.now()
  const expired: [string, number][] = []
  const of = (name: string, ms: number) => new Limit(ms, () => expired.push([name, performance.now() - since]))
  const ended = of('ended', 50)
  of('short', 50)
  of('long', 200)
  of('never', Number.POSITIVE_INFINITY).end()
  const far = of('far', 1e12)
  ended.end()
  expect(far.left).toBeWithin(1e12 - 1_000, 1e12 + 1)
  await until(() => expired.length === 2, 'both limits expire')
  far.end()
  expect(expired.map(([name]) => name)).toEqual(['short', 'long'])
  expect(expired[0]![1]).toBeGreaterThanOrEqual(49)
  expect(expired[1]![1]).toBeGreaterThanOrEqual(199)
})

test('a pause uses up little of a limit', async () => {
  const limit = new Limit(30_000, () => {})
  hold(3_500)
  expect(limit.left).toBeWithin(30_000 - MOST_A_LOOK_MS - 500, 30_001)
  limit.end()
  expect(livedMs()).toBeLessThan(performance.now())
})

test('a reply and the end of a command that came during a pause win over their limits', async () => {
  const server = new Worker(
    `data:text/javascript,const s = Bun.serve({ port: 0, async fetch() { await Bun.sleep(300); return new Response("yes") } });
     postMessage(s.port)`,
  )
  const port = await new Promise(resolve => (server.onmessage = ({ data }) => resolve(data)))
  const outcomes: string[] = []
  using over = limitSignal(1_000)
  const reply = fetch(`http://127.0.0.1:${port}/`, { signal: over.signal }).then(async each =>
    outcomes.push(await each.text()),
  )
  const place = folder()
  const group = startGroup(['sh', '-c', 'sleep 0.3; exit 7'], {
    ...{ cwd: place, env: { PATH: process.env.PATH! }, runId: 'r', folder: null },
  })
  const limit = new Limit(1_000, () => outcomes.push('late'))
  const exit = group.child.exited.then(code => {
    limit.end()
    outcomes.push(String(code))
  })
  await Bun.sleep(100)
  hold(2_500)
  await Promise.all([reply, exit])
  group.close()
  server.terminate()
  expect(outcomes.toSorted()).toEqual(['7', 'yes'])
})

test('what does not come expires soon after a pause', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const limit = new Limit(1_000, resolve)
  hold(2_500)
  const since = performance.now()
  await promise
  expect(limit.left).toBe(0)
  expect(performance.now() - since).toBeLessThan(5_000)
})
