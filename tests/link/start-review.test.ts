// A dispatched run whose environment asks for an approval: the hub shows the review, who may decide there, and why it waits.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
let daemon: RunningDaemon
beforeAll(async () => {
  hub = await startTestHub()
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const home = folder()
  const settings = { environments: { production: { review: ['admin'] }, guarded: { review: ['grace'] } } }
  writeFileSync(join(home, 'settings.yml'), JSON.stringify(settings), { mode: 0o600 })
  daemon = await spawnDaemon({
    home,
    env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'one' },
  })
  await hub.addTeam(
    'name: "@admin/t"\nversion: 1.0.0\nphases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]\n',
  )
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
})

const dispatch = async (environment: string) =>
  (await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/t', environment })).run_id as string
const asked = (run_id: string, kind: string) =>
  until(async () => {
    const { reviews } = await hub.ok(hub.admin, 'reviews/list', { run_id, state: 'pending' })
    return reviews.find((each: { kind: string }) => each.kind === kind)
  }, `the ${kind} of ${run_id}`)
const inState = (run_id: string, state: string) =>
  until(async () => {
    const run = await hub.ok(hub.admin, 'runs/get', { run_id })
    return run.state === state && run
  }, `run ${run_id} ${state}`)

test('it is approved at the hub, by those whom the environment names', async () => {
  const run_id = await dispatch('production')
  const review = await asked(run_id, 'start')
  expect(review).toMatchObject({
    ...{ phase: null, kind: 'start', reviewers: ['admin'], form: [], reason: 'review' },
    prompt: 'Run @admin/t@1.0.0 in the environment production?',
  })
  expect((await inState(run_id, 'awaiting_input')).environment).toBe('production')
  const { text, next } = await hub.ok(hub.admin, 'runs/why', { run_id })
  expect(text).toContain(
    'of @admin/t in the environment production waits for an approval before anything of it begins, by admin.',
  )
  expect(next).toContainEqual(['decide', review.id])
  const key = (await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'asker' })).token
  const env = { CADRE_API_KEY: key }
  const { stdout } = await command(['runs', '--hub', hub.url], { home: folder(), env })
  expect(stdout.split('\n').find(each => each.includes(run_id))).toMatch(/@admin\/t in production +\S/)
  const { phases } = await hub.ok(hub.admin, 'runs/phases', { run_id })
  expect(phases.filter((each: { state: string }) => each.state !== 'pending')).toEqual([])
  const wrong = await hub.call(hub.admin, 'reviews/decide', { review_id: review.id, decision: 'retry' })
  expect([wrong.status, wrong.error.message]).toEqual([400, expect.stringContaining('must be one of approve, reject')])
  await hub.ok(hub.admin, 'reviews/decide', { review_id: review.id, decision: 'approve' })
  const gate = await asked(run_id, 'gate')
  await hub.ok(hub.admin, 'reviews/decide', { review_id: gate.id, decision: 'approve' })
  await inState(run_id, 'completed')
  const { reviews } = await hub.ok(hub.admin, 'reviews/list', { run_id, state: 'decided' })
  expect(reviews).toContainEqual(
    expect.objectContaining({ kind: 'start', phase: null, decision: 'approve', decided_by: 'admin' }),
  )
}, 30_000)

test('others may not decide, and a rejection ends the run', async () => {
  const guarded = await dispatch('guarded')
  const review = await asked(guarded, 'start')
  const refused = await hub.call(hub.admin, 'reviews/decide', { review_id: review.id, decision: 'approve' })
  expect([refused.status, refused.error.message]).toEqual([403, expect.stringContaining('this review is for grace')])
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id: guarded })
  await inState(guarded, 'cancelled')
  const run_id = await dispatch('production')
  const { id } = await asked(run_id, 'start')
  await hub.ok(hub.admin, 'reviews/decide', { review_id: id, decision: 'reject', comment: 'not now' })
  const run = await inState(run_id, 'cancelled')
  expect(run).toMatchObject({ reason: 'rejected', error: { message: 'rejected by admin: not now' } })
}, 30_000)
