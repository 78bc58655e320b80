// What webhooks of a realm are told of its triggers, and when it is told only once.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { MINUTE, type RealmTriggerHub, realmTriggers } from '../support/realm-triggers.ts'

interface Message {
  type: string
  data: Record<string, unknown>
}

let hub: TestHub
let t: RealmTriggerHub
const got: Message[] = []
/** A message may come twice, which its id says: here while the test moves the clock beyond the time of its sender. */
const ids = new Set<string | null>()
const receiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const message = (await request.json()) as Message
    const id = request.headers.get('webhook-id')
    if (!ids.has(id)) got.push(message)
    ids.add(id)
    return new Response()
  },
})

beforeAll(async () => {
  t = await realmTriggers(startTestHub)
  hub = t.hub
  await hub.ok(hub.admin, 'realms/add_webhook', {
    realm_id: hub.realm,
    url: `http://127.0.0.1:${receiver.port}/`,
    events: ['trigger.refused', 'trigger.broken', 'trigger.skipped'],
  })
})
afterAll(async () => {
  await receiver.stop(true)
  await hub.stop()
})

/** The messages about a trigger, once there are so many. */
const told = ({ id }: { id: string }, count: number): Promise<Message[]> =>
  until(async () => {
    await hub.sendWebhooks()
    const of = got.filter(({ data }) => data.trigger_id === id)
    return of.length >= count && of
  }, `${count} messages`)

test('the first occasion that another run holds is told, and again after one that started', async () => {
  const added = await t.schedule()
  await t.slot()
  const first = await t.firing(added, { state: 'started' })
  for (let n = 2; n < 5; n++) {
    await t.slot()
    await t.fired(added, n)
  }
  await t.end(first.run_id)
  await t.slot()
  await t.fired(added, 5)
  await t.later(30 * MINUTE)
  await t.firing(added, { reason: 'missed' })
  const messages = await told(added, 2)
  expect(messages.map(({ type, data }) => [type, data.reason])).toEqual([
    ['trigger.skipped', 'overlap'],
    ['trigger.skipped', 'missed'],
  ])
  expect(messages[0]!.data).toMatchObject({
    ...{ trigger_id: added.id, name: added.name, kind: 'schedule', realm_id: hub.realm, team: t.team, owner: 'admin' },
    ...{ state: 'skipped', detail: `run ${first.run_id} has not ended` },
  })
  await t.remove(added)
})

test('each refusal is told, and that a trigger is broken once, before an occasion says so', async () => {
  const added = await t.schedule()
  await t.person('owner')
  const { token } = await hub.ok(null, 'session/create', { username: 'owner', password: 'password of a test' })
  await hub.ok(token, 'triggers/update', { trigger_id: added.id, owner: 'me' })
  await hub.ok(hub.admin, 'realms/remove_member', { realm_id: hub.realm, username: 'owner' })
  for (let n = 1; n < 3; n++) {
    await t.slot()
    await t.fired(added, n)
  }
  const messages = await told(added, 3)
  expect(messages.map(({ type }) => type).sort()).toEqual(['trigger.broken', 'trigger.refused', 'trigger.refused'])
  expect(messages.find(({ type }) => type === 'trigger.broken')!.data.problem).toMatchObject({ reason: 'owner' })
  const { audit } = await hub.ok(hub.admin, 'audit/list', { org_id: 1, limit: 100 })
  const broken = audit.filter(({ action }: { action: string }) => action === 'triggers/broken')
  expect(broken).toMatchObject([{ target: `${added.name}: owner`, username: null, realm_id: hub.realm }])

  // The role is back: the trigger is mended by itself, and goes on from then.
  await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username: 'owner', role: 'operator' })
  await t.slot()
  await t.firing(added, { state: 'started' })
  expect((await t.call('get', { trigger_id: added.id })).state).toBe('active')
  await t.remove(added)
})
