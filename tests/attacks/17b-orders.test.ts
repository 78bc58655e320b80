// Orders of a hub reach the runs that the hub was told of, and no other run of the machine, whatever the hub knows.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { type HostileHub, jobOf, runOrder, startHostileHub } from '../support/hostile-hub.ts'

const GATE = (name: string) => `name: "${name}"
version: 1.0.0
phases: [{ name: ask, type: gate, review: { prompt: May it? } }]
`

let hub: HostileHub
let daemon: RunningDaemon
let local: { run_id: string; review_id: string }

beforeAll(async () => {
  hub = startHostileHub()
  daemon = await spawnDaemon({ env: hub.env })
  const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': GATE('@local/gate') }) })
  local = { run_id, review_id: await reviewOf(run_id) }
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
})

async function reviewOf(run_id: string): Promise<string> {
  const find = async () => (await daemon.call('/v1/reviews/list', { run_id })).reviews[0]?.id as string | undefined
  return until(find, 'the review')
}
const record = (run_id: string) => daemon.call('/v1/runs/get', { run_id })

async function answerTo(kind: string, payload: object, run_id: string) {
  const job = jobOf(kind, payload, { run_id })
  hub.deliver(job)
  return hub.outcome(job.job_id)
}
const decision = (review_id: string) => ({ review_id, decision: 'approve', by: 'mallory' })

test('an order about a run of which the hub was not told is answered not_found, and changes nothing', async () => {
  const before = await record(local.run_id)
  for (const [kind, payload] of [
    ['decide', decision(local.review_id)],
    ['cancel', {}],
    ['cancel', { reason: 'superseded' }],
    ['resume', {}],
    ['resume', { from_phase: 'ask' }],
  ] as const) {
    const { status, error } = await answerTo(kind, payload, local.run_id)
    expect([kind, status]).toEqual([kind, 'failed'])
    expect(error).toContain('not_found')
  }
  expect(await record(local.run_id)).toEqual(before)
  expect((await daemon.call('/v1/reviews/list', { run_id: local.run_id })).reviews).toMatchObject([
    { state: 'pending' },
  ])
})

test('an order that names a run of the hub does not reach the review of another', async () => {
  const job = jobOf('run', runOrder(hub.publish('@acme/gate', GATE('@acme/gate'))))
  hub.deliver(job)
  const own = await until(
    async () => (await daemon.post('/v1/runs/get', { run_id: job.run_id })).status === 200 && reviewOf(job.run_id),
    'the run',
  )
  expect(await answerTo('decide', decision(local.review_id), job.run_id)).toMatchObject({ status: 'failed' })
  expect(await record(local.run_id)).toMatchObject({ state: 'awaiting_input' })
  expect(await answerTo('decide', decision(own), job.run_id)).toMatchObject({ status: 'done' })
  expect(await daemon.ended(job.run_id)).toMatchObject({ state: 'completed' })
})

test('what is not there and what the hub was not told of get the same answer', async () => {
  const unknown = { run_id: Bun.randomUUIDv7() as string, review_id: crypto.randomUUID() as string }
  const said = async (kind: string, { run_id, review_id }: typeof unknown) => {
    const { error = '' } = await answerTo(kind, kind === 'decide' ? decision(review_id) : {}, run_id)
    return error.replaceAll(run_id, 'RUN').replaceAll(review_id, 'REVIEW')
  }
  for (const kind of ['decide', 'cancel', 'resume']) expect(await said(kind, local)).toBe(await said(kind, unknown))
})

test('a dispatch under the id of a run of this machine is refused, and the hub does not hear how that run ends', async () => {
  const team = hub.publish('@acme/other', GATE('@acme/other'))
  const { status, error } = await answerTo('run', runOrder(team), local.run_id)
  expect(status).toBe('failed')
  expect(error).toContain('is taken here')
  await daemon.call('/v1/runs/cancel', { run_id: local.run_id })
  await daemon.ended(local.run_id)
  expect(hub.answers.filter(({ status }) => status === 'accepted').length).toBe(1)
  expect(hub.changes.filter(({ run_id }) => run_id === local.run_id)).toEqual([])
})
