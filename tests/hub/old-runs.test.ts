// How a hub deletes old runs: in transactions of so many rows as take a moment, from the bottom of a tree up.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { nextSize } from '../../lib/hub/core/batch-size.ts'
import type { Hub } from '../../lib/hub/core/hub.ts'
import { deleteOldRuns } from '../../lib/hub/reports/old-runs.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

const ID = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`

/** A tree of a top run and `below` runs with `lines` lines each. */
async function tree(first: number, below: number, lines: number, end: number | null): Promise<string> {
  const { runs, logs, phases, write } = hub.store
  const root_run_id = ID(first)
  const common = { realm_id: hub.realm, call_path: ['t'], team: 't', inputs: {}, attempt: 0, created_at: 1 }
  const ids = Array.from({ length: below + 1 }, (_, n) => ID(first + n))
  await write(async tx => {
    for (const [n, run_id] of ids.entries()) {
      const place = { run_id, root_run_id, parent_run_id: n === 0 ? null : root_run_id, call_depth: Math.min(n, 1) }
      const state = end === null ? 'running' : 'completed'
      await tx.insert(runs).values({ ...common, ...place, tree_key: `${n}`, state, completed_at: end })
      const phase = { name: 'a', type: 'agent', state, attempt: 0, depends_on: [], text: '', files: [] }
      await tx.insert(phases).values({ run_id, index: 0, ...phase })
      for (let seq = 1; seq <= lines; seq++) {
        await tx.insert(logs).values({ run_id, seq, at: 1, stream: 'stdout', text: 'x' })
      }
    }
  })
  return root_run_id
}

const counts = async () => {
  const { db, runs, logs, phases } = hub.store
  const [all, lines, rows] = [
    await db.select().from(runs),
    await db.select().from(logs),
    await db.select().from(phases),
  ]
  return { runs: all.length, logs: lines.length, phases: rows.length }
}
const rows = async () => Object.values(await counts()).reduce((sum, each) => sum + each, 0)

test('a transaction deletes no more rows than it is told, and the top run last', async () => {
  const { db, runs } = hub.store
  const root = await tree(1, 30, 3, 1_000)
  await tree(100, 2, 1, 5_000)
  await tree(200, 2, 1, null)
  const kept = 2 * (3 + 3 + 3)
  const before = await rows()
  expect(before).toBe(31 * 5 + kept)
  let [left, steps] = [before, 0]
  for (; left > kept; steps++) {
    expect(await db.select().from(runs).where(eq(runs.run_id, root))).toHaveLength(1)
    const deleted = await deleteOldRuns({ store: hub.store } as Hub, 2_000, 10)
    const now = await rows()
    expect(deleted).toBe(left - now)
    expect(deleted).toBeWithin(1, 11)
    left = now
  }
  expect(steps).toBeGreaterThanOrEqual((31 * 5) / 10)
  expect(await deleteOldRuns({ store: hub.store } as Hub, 2_000, 10)).toBe(0)
  expect(await counts()).toEqual({ runs: 6, logs: 6, phases: 6 })
})

test('the number of rows follows what they take, on any machine', () => {
  for (const msPerRow of [0.01, 0.1, 1, 4]) {
    let size = 50
    const took: number[] = []
    for (let n = 0; n < 30; n++) {
      took.push(size * msPerRow)
      size = nextSize(size, size * msPerRow)
    }
    expect({ msPerRow, most: Math.max(...took.slice(10)) < 50 }).toEqual({ msPerRow, most: true })
    // One that waited for others does not decide for long.
    let after = nextSize(size, 5_000)
    for (let n = 0; n < 5; n++) after = nextSize(after, after * msPerRow)
    expect(Math.abs(after - size)).toBeLessThanOrEqual(size / 4)
  }
})
