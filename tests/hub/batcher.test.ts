// Runs that are dispatched at the same moment share a transaction, and none of them pays for another.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { count, eq, inArray } from 'drizzle-orm'
import { Batcher } from '../../lib/hub/queue/batcher.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub

beforeAll(async () => {
  hub = await startTestHub()
  await hub.addTeam(
    'name: "@admin/t"\nversion: 1.0.0\nphases: [{ name: p, agent: exec, commands: [{ name: c, run: "true" }] }]\n',
  )
})
afterAll(() => hub.stop())

/**
 * Does numbers together once `ends` has come, and records which. A negative one cannot be done, and with 0 nobody knows what
 * was done.
 */
function doing(maxSize: number, concurrency = 1, ends: Promise<void> = Promise.resolve()) {
  const groups: number[][] = []
  const batcher = new Batcher<number, string>({
    maxSize,
    concurrency,
    async work(numbers) {
      groups.push(numbers)
      await ends
      await Bun.sleep(1)
      if (numbers.includes(0)) throw new Error('the connection was lost')
      if (numbers.some(number => number < 0)) throw new Error(`cannot do ${numbers}`)
      return numbers.map(number => `did ${number}`)
    },
    isOfOne: error => (error as Error).message.startsWith('cannot do'),
  })
  return { groups, batcher }
}

test('what is asked for in one turn is done together, and what comes meanwhile is done next', async () => {
  const { groups, batcher } = doing(3)
  const first = [1, 2, 3, 4].map(number => batcher.do(number))
  await first[0]
  const later = batcher.do(5)
  expect<string[]>(await Promise.all([...first, later])).toEqual(['did 1', 'did 2', 'did 3', 'did 4', 'did 5'])
  expect(groups).toEqual([
    [1, 2, 3],
    [4, 5],
  ])
  expect(await batcher.do(6)).toBe('did 6')
})

test('one that cannot be done keeps no other from being done', async () => {
  const { groups, batcher } = doing(10)
  const said = await Promise.allSettled([1, -2, 3].map(number => batcher.do(number)))
  expect(said.map(each => (each.status === 'fulfilled' ? each.value : each.reason.message))).toEqual([
    'did 1',
    'cannot do -2',
    'did 3',
  ])
  expect(groups).toEqual([[1, -2, 3], [1], [-2], [3]])
})

test('what may have been done is not done again', async () => {
  const { groups, batcher } = doing(10)
  const said = await Promise.allSettled([1, 0, 3].map(number => batcher.do(number)))
  expect(said.map(each => (each.status === 'fulfilled' ? each.value : each.reason.message))).toEqual(
    Array(3).fill('the connection was lost'),
  )
  expect(groups).toEqual([[1, 0, 3]])
  expect(await batcher.do(4)).toBe('did 4')
})

test('groups are done side by side, as many as may be', async () => {
  const ends = Promise.withResolvers<void>()
  const { groups, batcher } = doing(2, 2, ends.promise)
  const all = Promise.all([1, 2, 3, 4, 5].map(number => batcher.do(number)))
  await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
  expect(groups).toEqual([
    [1, 2],
    [3, 4],
  ])
  ends.resolve()
  expect(await all).toHaveLength(5)
  expect(groups.at(-1)).toEqual([5])
})

const dispatch = (token: string, more: object = {}) =>
  hub.call(token, 'dispatch/run', { realm_id: hub.realm, team: '@admin/t', ...more })

test('two hundred runs that are dispatched at once are two hundred runs, each with its job and its audit entry', async () => {
  const names = Array.from({ length: 200 }, (_, at) => `run ${at}`)
  const replies = await Promise.all(names.map(run_name => dispatch(hub.admin, { run_name })))
  expect(replies.map(({ status }) => status)).toEqual(names.map(() => 201))
  const told = replies.map(({ data }) => data)
  const { runs, jobs, audit, db } = hub.store
  const ids = told.map(({ run_id }) => run_id)
  const rows = await db.select().from(runs).where(inArray(runs.run_id, ids))
  const nameOf = new Map(rows.map(row => [row.run_id, row.run_name]))
  expect(ids.map(id => nameOf.get(id))).toEqual(names)
  const queued = await db.select().from(jobs).where(inArray(jobs.run_id, ids))
  expect(new Map(queued.map(job => [job.run_id, job.id]))).toEqual(
    new Map(told.map(({ run_id, job_id }) => [run_id, job_id])),
  )
  // Jobs of one moment are delivered in the order of their ids, and runs have theirs in the order in which they came.
  const inTurn = queued.toSorted((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1))
  if (hub.store.dialect === 'sqlite') expect(inTurn.map(job => job.run_id)).toEqual(ids.toSorted())
  const targets = ids.map(id => `@admin/t@1.0.0 as ${id}`)
  const [entries] = await db.select({ count: count() }).from(audit).where(inArray(audit.target, targets))
  expect(Number(entries!.count)).toBe(200)
})

test('a token that is revoked among many queues nothing more, and the others are not refused', async () => {
  const { token, id } = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'leaver' })
  const calls = Array.from({ length: 120 }, (_, at) =>
    dispatch(at % 2 ? token : hub.admin, { run_name: `leaving ${at}` }),
  )
  const revoked = hub.ok(hub.admin, 'auth/revoke_token', { id })
  const late = await revoked.then(() => Promise.all([dispatch(token), dispatch(hub.admin)]))
  expect(late.map(({ status }) => status)).toEqual([401, 201])
  const statuses = (await Promise.all(calls)).map(({ status }) => status)
  expect(statuses.filter((_, at) => at % 2 === 0)).toEqual(Array(60).fill(201))
  expect(statuses.filter((_, at) => at % 2 === 1).every(status => status === 201 || status === 401)).toBe(true)
  const { runs, db } = hub.store
  const rows = await db.select().from(runs).where(eq(runs.team, '@admin/t'))
  const left = rows.filter(({ run_name }) => /^leaving \d+$/.test(run_name ?? ''))
  expect(left).toHaveLength(statuses.filter(status => status === 201).length)
})
