// What acts for a person ends with that person's role: webhooks, invitations and realm tokens ask for it at each use.
// Others see that, and can take a webhook over.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { roleIn } from '../../lib/hub/access/decision.ts'
import { hasRole } from '../../lib/hub/access/owners.ts'
import { ROLES } from '../../lib/wire/access.ts'
import { until } from '../support/bounded.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { runChange } from '../support/sync.ts'

let hub: TestHub
let daemon: { token: string; daemon_id: string }
let seq = 0
let people = 0
const epoch = crypto.randomUUID()
/** The paths at which messages arrived. */
const got: string[] = []
const receiver = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch(request) {
    got.push(new URL(request.url).pathname)
    return new Response()
  },
})

beforeAll(async () => {
  hub = await startTestHub()
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/t' })
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  daemon = { token, daemon_id: (await hub.ok(token, 'daemons/register', { name: 'd' })).daemon_id }
})
afterAll(async () => {
  await receiver.stop(true)
  await hub.stop()
})

async function fail(): Promise<void> {
  const ended = { state: 'failed', completed_at: 2_000 }
  const changes = [{ ...runChange(crypto.randomUUID(), ended), seq: ++seq }]
  await hub.ok(daemon.token, 'runs/sync', { daemon_id: daemon.daemon_id, epoch, from_seq: seq, protocol: 1, changes })
  await hub.sendWebhooks()
}

const setRole = (username: string, role: string) =>
  hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username, role })

let name: string
let ann: { token: string; id: number }
let hook: string

/** A realm admin with a webhook, and one of the site admin, which shows when messages have been sent. */
beforeEach(async () => {
  name = `ann${++people}`
  ann = await hub.account(name)
  await setRole(name, 'admin')
  const webhooks = (await hub.ok(hub.admin, 'realms/webhooks', { realm_id: hub.realm })).webhooks
  for (const { id } of webhooks) await hub.ok(hub.admin, 'realms/remove_webhook', { realm_id: hub.realm, id })
  const add = (token: string, path: string) =>
    hub.ok(token, 'realms/add_webhook', {
      realm_id: hub.realm,
      url: `http://127.0.0.1:${receiver.port}/${path}`,
      events: ['run.failed'],
    })
  hook = (await add(ann.token, name)).id
  await add(hub.admin, 'witness')
  got.length = 0
  await fail()
  await until(() => got.includes(`/${name}`) && got.includes('/witness'), 'both messages')
  got.length = 0
})

/** Reports a failed run, and waits until the webhook of the site admin was told. */
async function told(): Promise<boolean> {
  const before = got.filter(path => path === '/witness').length
  await fail()
  await until(() => got.filter(path => path === '/witness').length > before, 'the message to the witness')
  await Bun.sleep(50)
  return got.includes(`/${name}`)
}

const listed = async () =>
  (await hub.ok(hub.admin, 'realms/webhooks', { realm_id: hub.realm })).webhooks.find(
    (each: { id: string }) => each.id === hook,
  )

describe('a webhook delivers nothing', () => {
  const losses: [string, () => Promise<unknown>][] = [
    [
      'once its owner was removed',
      () => hub.ok(hub.admin, 'realms/remove_member', { realm_id: hub.realm, username: name }),
    ],
    ['once its owner has a lower role', () => setRole(name, 'operator')],
    ['while its owner is suspended', () => hub.ok(hub.admin, 'users/suspend', { user_id: ann.id })],
    ['once the account of its owner was deleted', () => hub.ok(hub.admin, 'users/delete', { user_id: ann.id })],
    [
      'once its owner was removed from the org',
      () => hub.ok(hub.admin, 'orgs/remove_member', { org_id: 1, username: name }),
    ],
  ]
  test.each(losses)('%s, and lists say so', async (_, lose) => {
    expect(await listed()).toMatchObject({ owner: name, state: 'active', reason: null })
    await lose()
    expect(await listed()).toMatchObject({ state: 'stopped', reason: 'owner_lost_role' })
    expect(await told()).toBe(false)
    const sent = await hub.ok(hub.admin, 'realms/webhook_deliveries', { realm_id: hub.realm, webhook_id: hook })
    expect(sent.total).toBe(1)
  })

  test('that was due when its owner lost the role', async () => {
    const { webhookDeliveries } = hub.store
    const { db } = hub.store
    const [row] = (await db.select().from(webhookDeliveries)).filter(({ webhook_id }) => webhook_id === hook)
    await setRole(name, 'member')
    const due = { id: 'msg_due', state: 'waiting' as const, attempts: 0, next_at: 1, finished_at: null }
    await hub.store.write(tx => tx.insert(webhookDeliveries).values({ ...row!, ...due }))
    expect(await told()).toBe(false)
    await hub.ok(hub.admin, 'realms/webhook_take_over', { realm_id: hub.realm, id: hook })
    await until(() => got.includes(`/${name}`), 'the message that waited')
  })
})

describe('realms/webhook_take_over', () => {
  test('makes another admin the owner, and messages go out again', async () => {
    await hub.ok(hub.admin, 'realms/remove_member', { realm_id: hub.realm, username: name })
    const taken = await hub.ok(hub.admin, 'realms/webhook_take_over', { webhook_id: hook })
    expect(taken).toMatchObject({ id: hook, owner: 'admin', state: 'active', reason: null })
    expect(taken).not.toHaveProperty('secret')
    expect(await told()).toBe(true)
    const { audit } = await hub.ok(hub.admin, 'audit/list', { action: 'realms/webhook_take_over', limit: 1 })
    expect(audit[0]).toMatchObject({ username: 'admin', target: hook, realm_id: hub.realm })
  })

  test('is for admins of the realm, and tells nobody else that there is a webhook', async () => {
    const stranger = await hub.account(`eve${people}`)
    const missing = crypto.randomUUID()
    const take = (token: string, body: object) => hub.call(token, 'realms/webhook_take_over', body)
    const [there, not] = [await take(stranger.token, { id: hook }), await take(stranger.token, { id: missing })]
    expect([there.status, not.status]).toEqual([404, 404])
    expect(there.error.message.replace(hook, missing)).toBe(not.error.message)
    await setRole(`eve${people}`, 'operator')
    expect((await take(stranger.token, { realm_id: hub.realm, id: hook })).status).toBe(403)
    expect((await take(hub.admin, { realm_id: hub.realm, id: missing })).status).toBe(404)
    expect((await take(hub.admin, { id: missing, webhook_id: hook })).status).toBe(400)
    expect(await listed()).toMatchObject({ owner: name })
  })
})

describe('removing and suspending', () => {
  test('list what the account owns', async () => {
    const token = await hub.realmToken(ann.token, hub.realm)
    const invitation = await hub.ok(ann.token, 'realms/invite', { realm_id: hub.realm, username: 'guest' })
    const all = {
      webhooks: [{ id: hook, realm_id: hub.realm, name: `http://127.0.0.1:${receiver.port}/${name}` }],
      tokens: [{ id: String(token.id), realm_id: hub.realm, name: 'enrol' }],
      triggers: [],
      invitations: [{ id: invitation.id, realm_id: hub.realm, name: 'guest' }],
    }
    expect((await hub.ok(hub.admin, 'users/suspend', { user_id: ann.id })).owns).toEqual(all)
    await hub.ok(hub.admin, 'users/suspend', { user_id: ann.id, suspended: false })
    const gone = await hub.ok(hub.admin, 'realms/remove_member', { realm_id: hub.realm, username: name })
    expect(gone.owns).toEqual(all)
  })

  test('end invitations and realm tokens too', async () => {
    const { token: enrolling } = await hub.realmToken(ann.token, hub.realm)
    const { token } = await hub.ok(ann.token, 'realms/invite', { realm_id: hub.realm })
    await hub.ok(hub.admin, 'realms/remove_member', { realm_id: hub.realm, username: name })
    const guest = await hub.account(`guest${people}`)
    expect((await hub.call(guest.token, 'realms/accept_invite', { token })).status).toBe(410)
    expect((await hub.call(enrolling, 'daemons/register', { name: 'x', realm_id: hub.realm })).status).toBe(403)
  })
})

test('the condition in the database is the decision of the hub, for every standing', async () => {
  const { store } = hub
  const { users, orgMembers, realmMembers, webhooks } = store
  const orgRoles = [null, 'member', 'admin', 'owner'] as const
  const realmRoles = [null, ...ROLES.realm]
  for (const siteAdmin of [false, true]) {
    for (const org of orgRoles) {
      for (const own of realmRoles) {
        const { id } = await hub.account(`p${++people}`)
        await store.write(async tx => {
          await tx.update(users).set({ site_admin: siteAdmin }).where(eq(users.id, id))
          if (org) await tx.insert(orgMembers).values({ org_id: 1, user_id: id, role: org })
          if (own) await tx.insert(realmMembers).values({ realm_id: hub.realm, user_id: id, role: own })
          await tx.update(webhooks).set({ created_by: id }).where(eq(webhooks.id, hook))
        })
        const role = roleIn('realm', { siteAdmin, org, own })
        for (const need of ROLES.realm) {
          const found = await store.db
            .select({ id: webhooks.id })
            .from(webhooks)
            .where(hasRole(store, webhooks.created_by, webhooks.realm_id, need))
          const expected = role !== null && ROLES.realm.indexOf(role) >= ROLES.realm.indexOf(need)
          expect(
            found.some(each => each.id === hook),
            `${siteAdmin} ${org} ${own} for ${need}`,
          ).toBe(expected)
        }
      }
    }
  }
}, 60_000)
