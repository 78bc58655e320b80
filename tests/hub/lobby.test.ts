// Polls that wait: a dispatch wakes as many as there is work for, and work that appears in any way finds one.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

/** Longer than any of these tests takes. */
const WAIT_MS = 30_000

let hub: TestHub
let token: string
const TEAM =
  'name: "@admin/waits"\nversion: 1.0.0\nphases:\n  - { name: ask, type: gate, review: { prompt: "Go on?" } }\n'

beforeAll(async () => {
  hub = await startTestHub()
  token = (await hub.realmToken(hub.admin, hub.realm)).token
  await hub.addTeam(TEAM)
})
afterAll(() => hub.stop())

const dispatch = (more: object = {}) =>
  hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/waits', ...more })

interface Poll {
  daemon_id: string
  /** The runs that it got; null while it waits. */
  runs: string[] | null
  ended: Promise<void>
}

/** A daemon with a poll that waits. */
async function poll(offer: object = {}): Promise<Poll> {
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'waits', ...offer })
  const started: Poll = { daemon_id, runs: null, ended: Promise.resolve() }
  started.ended = hub.call(token, 'daemons/poll', { daemon_id, slots: 1, wait_ms: WAIT_MS }).then(async ({ data }) => {
    // At the end of a test its daemons leave, and the polls that still wait are refused.
    const jobs = data?.jobs ?? []
    started.runs = jobs.map(({ run_id }: { run_id: string }) => run_id)
    for (const { job_id, lease_id } of jobs)
      await hub.ok(token, 'daemons/ack', { daemon_id, job_id, lease_id, status: 'accepted' })
  })
  return started
}

/** Waits for the polls, too: a hub that stops would cut them off. */
const leave = async (polls: Poll[]) => {
  for (const { daemon_id } of polls) await hub.ok(token, 'daemons/deregister', { daemon_id })
  await Promise.all(polls.map(({ ended }) => ended))
}

test('each run reaches one of the polls that wait, and the others wait on', async () => {
  const polls = await Promise.all(Array.from({ length: 30 }, () => poll()))
  const runs = await Promise.all(Array.from({ length: 10 }, () => dispatch()))
  const busy = () => polls.filter(({ runs }) => runs !== null)
  await until(() => busy().length === 10, 'ten polls with a run')
  const taken = busy().flatMap(({ runs }) => runs)
  expect(taken.sort()).toEqual(runs.map(({ run_id }) => run_id).sort())
  await leave(polls)
  expect(polls.filter(({ runs }) => runs!.length === 0)).toHaveLength(20)
}, 120_000)

test('a run goes past polls whose daemons lack what it needs, also when one gets it while it waits', async () => {
  const polls = await Promise.all(Array.from({ length: 5 }, () => poll({ labels: { zone: 'a' } })))
  const fits = await poll({ labels: { zone: 'b' } })
  const first = await dispatch({ requires: { labels: { zone: 'b' } } })
  await fits.ended
  expect(fits.runs).toEqual([first.run_id])
  const second = await dispatch({ requires: { labels: { zone: 'c' } } })
  const { daemon_id } = polls[3]!
  await hub.ok(token, 'daemons/heartbeat', { daemon_id, labels: { zone: 'c' } })
  await polls[3]!.ended
  expect(polls[3]!.runs).toEqual([second.run_id])
  await leave([...polls, fits])
}, 120_000)

test('orders reach the poll of the daemon that has the run, although others wait', async () => {
  const mine = await poll()
  const { run_id } = await dispatch()
  await mine.ended
  const others = await Promise.all(Array.from({ length: 5 }, () => poll()))
  const { daemon_id } = mine
  const order = hub.ok(token, 'daemons/poll', { daemon_id, slots: 0, wait_ms: WAIT_MS })
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id })
  expect((await order).jobs).toMatchObject([{ kind: 'cancel', run_id }])
  await leave([mine, ...others])
}, 120_000)
