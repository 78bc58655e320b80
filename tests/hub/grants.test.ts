// What narrows a token besides its levels, which the matrix walks: the domains of its grant, and what its owner still is.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { ENTITIES } from '../../lib/wire/grants.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { expected, USER, type UserRoute } from './matrix/specification.ts'
import { contents, makeWorld, type World } from './matrix/world.ts'

let hub: TestHub
let world: World
beforeAll(async () => {
  hub = await startTestHub()
  world = await makeWorld(hub)
})
afterAll(() => hub.stop())

const access = Object.fromEntries(ENTITIES.map(entity => [entity, ['admin']]))
const everything = Object.fromEntries(ENTITIES.map(entity => [entity, 'admin' as const]))

async function within(session: string, domains: object): Promise<string> {
  const permissions = { domains, access }
  return (await hub.ok(session, 'auth/generate_token', { type: 'user', name: 'x', permissions })).token
}

const ofScope = (need: UserRoute['need']) => need !== null && typeof need === 'object' && 'scope' in need

/** POST routes that need a role on an object, with a body that names the own one. */
const onObjects = () =>
  Object.entries(USER)
    .filter(([, { method, need }]) => method === 'POST' && typeof need === 'object' && need !== null)
    .map(([key, route]): [string, UserRoute, object] => [
      key.split(' ')[0]!,
      route,
      route.body(world.ids.own, world.mine.site.own),
    ])

test('what is outside the domains is not there, for the site admin too', async () => {
  const elsewhere = await within(hub.admin, { orgs: [999_999], realms: [crypto.randomUUID()] })
  const nowhere = await within(hub.admin, {})
  const before = await contents(hub)
  for (const token of [elsewhere, nowhere]) {
    for (const [path, { need }, body] of onObjects()) {
      if (ofScope(need)) continue
      expect([path, (await hub.call(token, path, body)).status]).toEqual([path, 404])
    }
    for (const path of ['orgs', 'realms', 'daemons', 'runs', 'reviews', 'audit']) {
      expect([path, (await hub.ok(token, `${path}/list`)).total]).toEqual([path, 0])
    }
  }
  expect(await contents(hub)).toBe(before)
})

test('scopes and teams need no domain: their membership decides', async () => {
  const nowhere = await within(world.sessions.owner, {})
  const stranger = await within(world.sessions.stranger, { orgs: '*', realms: '*' })
  let asked = 0
  for (const [path, { need, pass }, body] of onObjects()) {
    if (!ofScope(need)) continue
    expect([path, (await hub.call(nowhere, path, body)).status]).toEqual([path, pass])
    expect([path, (await hub.call(stranger, path, body)).status]).toEqual([path, 404])
    asked++
  }
  expect(asked).toBeGreaterThan(5)
  for (const path of ['scopes', 'teams']) {
    expect([path, (await hub.ok(nowhere, `${path}/list`)).total]).toEqual([path, 1])
    expect([path, (await hub.ok(stranger, `${path}/list`)).total]).toEqual([path, 0])
  }
  const scope = { org_id: world.ids.own.org, slug: 'more' }
  expect((await hub.call(nowhere, 'scopes/create', scope)).status).toBe(404)
})

test('a token that may write accounts sets no password, not even that of its owner, who could then sign in', async () => {
  const permissions = { domains: { orgs: '*' }, access: { users: ['write'] } }
  const minted = { type: 'user', name: 'writer', permissions }
  const { token } = await hub.ok(hub.admin, 'auth/generate_token', minted)
  const password = 'chosen by a token'
  for (const more of [{}, { revoke_tokens: true }]) {
    expect((await hub.call(token, 'users/update', { user_id: 1, password, ...more })).status).toBe(403)
  }
  expect((await hub.call(null, 'session/create', { username: 'admin', password })).status).toBe(401)
})

test('an empty list of levels is refused', async () => {
  for (const levels of [[], ['read', 'read'], ['none']]) {
    const token = { type: 'user', name: 'x', permissions: { domains: {}, access: { runs: levels } } }
    expect(await hub.call(world.sessions.owner, 'auth/generate_token', token)).toMatchObject({
      status: 400,
      error: { code: 'invalid_request' },
    })
  }
})

test('a listed realm is reached, its org is not; a listed org is reached with all its realms', async () => {
  const { org, realm } = world.ids.own
  const ofRealm = await within(world.sessions.owner, { realms: [realm] })
  const ofOrg = await within(world.sessions.owner, { orgs: [org] })
  for (const [path, { need, pass }, body] of onObjects()) {
    if (path === 'daemons/remove') continue
    const reached = ofScope(need) || (need !== null && typeof need === 'object' && 'realm' in need)
    const due = reached ? pass : 404
    expect([path, (await hub.call(ofRealm, path, body)).status]).toEqual([path, due])
    expect([path, (await hub.call(ofOrg, path, body)).status]).toEqual([path, pass])
  }
  expect((await hub.ok(ofRealm, 'realms/list')).total).toBe(1)
  expect((await hub.ok(ofRealm, 'orgs/list')).total).toBe(0)
})

test('a role that is too low on a visible object is 403 and says what would pass', async () => {
  const roles = {
    org: ['member', 'admin', 'owner'],
    scope: ['org', 'member', 'owned'],
    realm: ['member', 'operator', 'admin'],
  }
  let refused = 0
  for (const [path, route, body] of onObjects()) {
    if (expected(route, 'member', everything, 'own') === 'pass') continue
    const [[kind, least]] = Object.entries(route.need as object) as [[keyof typeof roles, string]]
    const enough = roles[kind].slice(roles[kind].indexOf(least)).join(' or ')
    const reply = await hub.call(world.sessions.member, path, body)
    expect([path, reply.status, reply.error.message]).toEqual([path, 403, expect.stringContaining(`takes ${enough}`)])
    refused++
  }
  expect(refused).toBeGreaterThan(25)
})

test('losing a role, a membership or the account shrinks a token at once', async () => {
  const { realm: realm_id, org: org_id } = world.ids.own
  const leaver = await hub.account('leaver')
  const set = (role: string) =>
    hub.ok(world.sessions.owner, 'realms/add_member', { realm_id, username: 'leaver', role })
  await set('operator')
  const token = await within(leaver.token, { realms: '*', orgs: '*' })
  const add = async () => (await hub.call(token, 'realms/add_team', { realm_id, team: world.ids.own.team })).status
  expect(await add()).toBe(200)
  await set('member')
  expect(await add()).toBe(403)
  await hub.ok(world.sessions.owner, 'realms/remove_member', { realm_id, username: 'leaver' })
  expect(await add()).toBe(404)
  await set('operator')
  expect(await add()).toBe(200)
  await hub.ok(world.sessions.owner, 'orgs/remove_member', { org_id, username: 'leaver' })
  expect(await add()).toBe(404)
  await hub.ok(hub.admin, 'users/suspend', { user_id: leaver.id })
  expect(await add()).toBe(401)
  await hub.ok(hub.admin, 'users/suspend', { user_id: leaver.id, suspended: false })
  expect(await add()).toBe(404)
})
