// What a hub has a daemon do stands in the audit log of its home, under the name of the person who asked the hub.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

setDefaultTimeout(60_000)

const TEAM = `
name: "@admin/asks"
version: 1.0.0
inputs: [{ name: title, type: string }]
phases: [{ name: ask, type: gate, review: { prompt: "Go on?", reviewers: [any] } }]
`

let hub: TestHub
let daemon: RunningDaemon
beforeAll(async () => {
  hub = await startTestHub()
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  daemon = await spawnDaemon({ env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token } })
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
})

test('an enrolment, a dispatched run and each order have an entry with the user of the hub', async () => {
  const team = await hub.addTeam(TEAM)
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team, inputs: { title: 'xyzzy' } })
  const state = (wanted: string) =>
    until(
      async () => (await hub.call(hub.admin, 'runs/get', { run_id })).data?.state === wanted,
      `the state ${wanted}`,
      30_000,
    )
  await state('awaiting_input')
  const { reviews } = await hub.ok(hub.admin, 'reviews/list', { state: 'pending' })
  await hub.ok(hub.admin, 'reviews/decide', { review_id: reviews[0].id, decision: 'reject' })
  await state('failed')
  await hub.ok(hub.admin, 'dispatch/resume', { run_id })
  await state('awaiting_input')
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id })
  await state('cancelled')
  const remote = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'remote' })
  const asked = await daemon.post(
    '/v1/runs/start',
    { team, inputs: { title: 'xyzzy' } },
    { authorization: `Bearer ${remote.token}` },
  )
  expect(asked.status).toBe(200)
  const mine = { authorization: `Bearer ${daemon.token}` }
  const { audit } = await daemon.call('/v1/audit/list', {}, mine)
  expect(audit.toReversed()).toMatchObject([
    { actor: expect.stringMatching(/^local:/), action: 'hub/enrol', target: hub.url },
    { actor: 'hub:admin', action: 'runs/start', target: `@admin/asks@1.0.0 as ${run_id}, inputs title` },
    { actor: 'hub:admin', action: 'reviews/decide', target: `${reviews[0].id}: reject, run ${run_id}` },
    { actor: 'hub:admin', action: 'runs/resume', target: run_id },
    { actor: 'hub:admin', action: 'runs/cancel', target: run_id },
    { actor: 'hub:admin', action: 'runs/start' },
  ])
  expect(JSON.stringify(audit)).not.toContain('xyzzy')
  // The log of the home is nobody's elsewhere, not even for a site admin of the hub.
  const { status } = await daemon.post('/v1/audit/list', {}, { authorization: `Bearer ${remote.token}` })
  expect(status).toBe(403)
})
