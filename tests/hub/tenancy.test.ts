// Users, orgs, scopes, realms and their members, over real HTTP.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { hubApp } from '../../hub.ts'
import { createHub } from '../../lib/hub/serve.ts'
import { createLog } from '../../lib/log/log.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
let org: number
let realm: string

type Made = Awaited<ReturnType<TestHub['account']>>

beforeAll(async () => {
  hub = await startTestHub()
  org = (await hub.ok(hub.admin, 'orgs/create', { slug: 'acme', display_name: 'Acme' })).id
  realm = (await hub.ok(hub.admin, 'realms/create', { org_id: String(org), slug: 'prod', name: 'Production' })).id
})
afterAll(() => hub.stop())

test('the first start made an account, an org, a scope and a realm of its name', async () => {
  const detail = await hub.ok(hub.admin, 'orgs/get_by_id', { org_id: 1 })
  expect(detail).toMatchObject({
    id: 1,
    slug: 'admin',
    display_name: 'admin',
    my_role: 'owner',
    members: [{ user_id: 1, username: 'admin' }],
    scopes: [{ id: 1, slug: 'admin', display_name: 'admin', member_count: 1, team_count: 0 }],
  })
  expect(await hub.ok(hub.admin, 'realms/get', { realm_id: hub.realm })).toMatchObject({ org_id: 1, slug: 'admin' })
})

describe('orgs', () => {
  test('are unique by slug, and renamed by their admins', async () => {
    expect((await hub.call(hub.admin, 'orgs/create', { slug: 'acme', display_name: 'x' })).status).toBe(409)
    expect((await hub.call(hub.admin, 'orgs/create', { slug: 'new', display_name: 'x' })).status).toBe(400)
    expect((await hub.call(hub.admin, 'orgs/create', { slug: 'Upper', display_name: 'x' })).status).toBe(400)
    expect(await hub.ok(hub.admin, 'orgs/update', { org_id: org, display_name: 'Acme Inc.' })).toMatchObject({
      slug: 'acme',
    })
    expect((await hub.call(hub.admin, 'orgs/update', { org_id: org, slug: 'admin' })).status).toBe(409)
  })
  test('the last owner stays; only owners make owners', async () => {
    const add = (token: string, username: string, role: string) =>
      hub.call(token, 'orgs/add_member', { org_id: org, username, role })
    expect((await add(hub.admin, 'admin', 'member')).status).toBe(409)
    expect((await hub.call(hub.admin, 'orgs/remove_member', { org_id: org, username: 'admin' })).status).toBe(409)
    const ann = await hub.account('ann')
    await hub.account('abe')
    expect((await add(hub.admin, 'ann', 'admin')).status).toBe(200)
    expect((await add(ann.token, 'abe', 'admin')).status).toBe(200)
    expect((await add(ann.token, 'abe', 'owner')).status).toBe(403)
    expect((await add(ann.token, 'admin', 'member')).status).toBe(403)
    expect((await add(ann.token, 'nobody', 'member')).status).toBe(404)
    // An org's admin is admin of its realms without being a member there.
    expect(await hub.ok(ann.token, 'realms/get', { realm_id: realm })).toMatchObject({ my_role: 'admin' })
  })
  test('are named by an integer or its decimal string, everywhere', async () => {
    const get = async (org_id: unknown) => (await hub.call(hub.admin, 'orgs/get_by_id', { org_id })).status
    expect(await Promise.all([org, String(org), 2 ** 31 - 1, '2147483647', '4294967297', 999, '999'].map(get))).toEqual(
      [200, 200, 404, 404, 404, 404, 404],
    )
    for (const wrong of [0, -1, 1.5, '0', '01', '1.0', '-1', '+1', ' 1', '', 'acme', null, true]) {
      expect([wrong, await get(wrong)]).toEqual([wrong, 400])
    }
  })
  test('a grant names them, and realms, by their ids', async () => {
    for (const domains of [
      { orgs: [0] },
      { orgs: [2 ** 40] },
      { orgs: ['1'] },
      { realms: ['x'] },
      { realms: ['\0'] },
    ]) {
      const token = { type: 'user', name: 'x', permissions: { domains, access: { orgs: ['read'] } } }
      expect([domains, (await hub.call(hub.admin, 'auth/generate_token', token)).status]).toEqual([domains, 400])
    }
  })
  test('lists are paged, and have only what is one’s own', async () => {
    const ann = (await hub.ok(null, 'session/create', { username: 'ann', password: 'password of a test' })).token
    expect(await hub.ok(ann, 'orgs/list')).toMatchObject({ orgs: [{ slug: 'acme', my_role: 'admin' }], total: 1 })
    expect((await hub.ok(hub.admin, 'orgs/list', { limit: 1, offset: 1 })).orgs).toHaveLength(1)
    for (const bad of [{ limit: 0 }, { limit: 101 }, { offset: -1 }, { limit: '5' }]) {
      expect((await hub.call(hub.admin, 'orgs/list', bad)).status).toBe(400)
    }
  })
  test('deleting one takes what it holds, but not over live runs', async () => {
    const { id } = await hub.ok(hub.admin, 'orgs/create', { slug: 'brief', display_name: 'x' })
    const made = await hub.ok(hub.admin, 'realms/create', { org_id: id, slug: 'r', name: 'x' })
    const run_id = crypto.randomUUID()
    const { runs } = hub.store
    const place = {
      root_run_id: run_id,
      call_path: ['t'],
      call_depth: 0,
      tree_key: '',
      team: 't',
      inputs: {},
      attempt: 1,
    }
    await hub.store.write(tx =>
      tx.insert(runs).values({ run_id, realm_id: made.id, ...place, state: 'running', created_at: 1 }),
    )
    expect((await hub.call(hub.admin, 'orgs/delete', { org_id: id })).status).toBe(409)
    expect((await hub.call(hub.admin, 'realms/delete', { realm_id: made.id })).status).toBe(409)
    // A newer daemon may have more states.
    await hub.store.write(tx => tx.update(runs).set({ state: 'asleep' }))
    expect((await hub.call(hub.admin, 'orgs/delete', { org_id: id })).status).toBe(409)
    expect((await hub.call(hub.admin, 'realms/delete', { realm_id: made.id })).status).toBe(409)
    await hub.store.write(tx => tx.update(runs).set({ state: 'completed', completed_at: 2 }))
    await hub.ok(hub.admin, 'orgs/delete', { org_id: id })
    expect((await hub.call(hub.admin, 'realms/get', { realm_id: made.id })).status).toBe(404)
  })
})

describe('scopes', () => {
  test('are told with how many members and teams they have', async () => {
    const counted = await hub.ok(hub.admin, 'orgs/create', { slug: 'counted', display_name: 'C' })
    await hub.account('cam')
    for (const slug of ['none', 'some', 'many']) {
      const scope = await hub.ok(hub.admin, 'scopes/create', { org_id: counted.id, slug })
      if (slug === 'many') await hub.ok(hub.admin, 'scopes/add_member', { scope_id: scope.id, username: 'cam' })
    }
    for (const team of ['@some/a@1.0.0', '@some/a@1.1.0', '@many/a@1.0.0', '@many/b@1.0.0', '@many/c@1.0.0']) {
      const [, scope, version] = team.split('@')
      const text = `name: "@${scope}"\nversion: ${version}\nphases:\n  - { name: say, agent: http, sources: [{ name: a, url: "https://example.com/" }] }\n`
      await hub.ok(hub.admin, 'teams/publish', { files: [{ path: 'team.yml', content_base64: btoa(text) }] })
    }
    await hub.ok(hub.admin, 'teams/yank', { team: '@many/c@1.0.0' })
    const { scopes } = await hub.ok(hub.admin, 'orgs/get_by_id', { org_id: counted.id })
    const counts = scopes.map((scope: { slug: string; member_count: number; team_count: number }) => [
      scope.slug,
      scope.member_count,
      scope.team_count,
    ])
    expect(counts).toEqual([
      ['many', 2, 2],
      ['none', 1, 0],
      ['some', 1, 1],
    ])
  })
  test('members publish, others of the org only see', async () => {
    const scope = await hub.ok(hub.admin, 'scopes/create', { org_id: org, slug: 'tools' })
    expect(scope).toMatchObject({ slug: 'tools', display_name: 'tools', org_id: org })
    const sam = await hub.account('sam')
    await hub.ok(hub.admin, 'orgs/add_member', { org_id: org, username: 'sam', role: 'member' })
    expect(await hub.ok(sam.token, 'scopes/get', { scope_id: scope.id })).toMatchObject({ my_role: 'org' })
    expect(
      (await hub.call(sam.token, 'teams/publish', { scope: 'tools', files: [{ path: 'a', content_base64: '' }] }))
        .status,
    ).toBe(403)
    await hub.ok(hub.admin, 'scopes/add_member', { scope_id: scope.id, username: 'sam' })
    expect(await hub.ok(sam.token, 'scopes/get', { scope_id: scope.id })).toMatchObject({ my_role: 'member' })
    expect((await hub.call(hub.admin, 'scopes/remove_member', { scope_id: scope.id, username: 'admin' })).status).toBe(
      409,
    )
    await hub.ok(hub.admin, 'scopes/delete', { scope_id: scope.id })
  })
  test.each(['local', 'admin', 'api', 'new', 'settings', '-a', 'a_b', ''])('the slug %p is refused', async slug => {
    expect((await hub.call(hub.admin, 'scopes/create', { org_id: org, slug })).status).toBe(400)
  })
})

describe('realms', () => {
  test('an invitation admits one account, once, for two weeks', async () => {
    const invite = (extra: object = {}) => hub.ok(hub.admin, 'realms/invite', { realm_id: realm, ...extra })
    const first = await invite({ role: 'operator' })
    expect(first.expires_at - Date.now()).toBeWithin(13.9 * 86_400_000, 14.1 * 86_400_000)
    const accept = { token: first.token, username: 'newcomer', password: 'long enough' }
    expect(await hub.ok(null, 'realms/accept_invite', accept)).toMatchObject({ realm_id: realm, role: 'operator' })
    const again = await hub.call(null, 'realms/accept_invite', { ...accept, username: 'second' })
    expect(again).toMatchObject({ status: 410, error: { code: 'expired' } })
    const { token } = await hub.ok(null, 'session/create', { username: 'newcomer', password: 'long enough' })
    expect(await hub.ok(token, 'realms/get', { realm_id: realm })).toMatchObject({ my_role: 'operator' })
    expect((await hub.ok(token, 'orgs/list')).total).toBe(1)

    const named = await invite({ username: 'ivy' })
    const ivy = await hub.account('ivy')
    expect((await hub.call(token, 'realms/accept_invite', { token: named.token })).status).toBe(403)
    await hub.ok(ivy.token, 'realms/accept_invite', { token: named.token })
    const late = await invite()
    await hub.skew(15 * 86_400_000)
    expect((await hub.call(ivy.token, 'realms/accept_invite', { token: late.token })).status).toBe(410)
    await hub.skew(0)
    expect((await hub.call(ivy.token, 'realms/accept_invite', { token: 'nothing' })).status).toBe(404)
    expect((await hub.call(null, 'realms/accept_invite', { token: late.token })).status).toBe(400)
  })
  test('an invitation never lowers a role, and its token is no credential', async () => {
    const { token } = await hub.ok(hub.admin, 'realms/invite', { realm_id: realm })
    expect((await hub.call(token, 'auth/whoami')).status).toBe(401)
    await hub.ok(hub.admin, 'realms/accept_invite', { token })
    expect(await hub.ok(hub.admin, 'realms/members', { realm_id: realm })).toMatchObject({
      members: expect.arrayContaining([{ user_id: 1, username: 'admin', role: 'admin' }]),
    })
  })
  test('the last admin stays', async () => {
    const set = (role: string) => hub.call(hub.admin, 'realms/add_member', { realm_id: realm, username: 'admin', role })
    expect((await set('member')).status).toBe(409)
    expect((await hub.call(hub.admin, 'realms/remove_member', { realm_id: realm, username: 'admin' })).status).toBe(409)
  })
  test('teams are listed once', async () => {
    await hub.ok(hub.admin, 'scopes/create', { org_id: org, slug: 'acme' })
    for (const team of ['@acme/b', '@acme/a', '@acme/b'])
      await hub.ok(hub.admin, 'realms/add_team', { realm_id: realm, team })
    expect(await hub.ok(hub.admin, 'realms/teams', { realm_id: realm })).toMatchObject({
      teams: [{ team: '@acme/a' }, { team: '@acme/b' }],
      total: 2,
    })
    await hub.ok(hub.admin, 'realms/remove_team', { realm_id: realm, team: '@acme/a' })
    expect((await hub.call(hub.admin, 'realms/remove_team', { realm_id: realm, team: '@acme/a' })).status).toBe(404)
  })
})

describe('invitations', () => {
  const accept = (token: string, username: string) =>
    hub.call(null, 'realms/accept_invite', { token, username, password: 'long enough' })
  const open = async (realm_id: string) =>
    (await hub.ok(hub.admin, 'realms/invitations', { realm_id })).invitations.map((each: { id: string }) => each.id)

  test('are listed while they can be accepted, without their secret', async () => {
    const { id: realm_id } = await hub.ok(hub.admin, 'realms/create', { org_id: org, slug: 'listed', name: 'L' })
    const made = await hub.ok(hub.admin, 'realms/invite', { realm_id, role: 'operator', username: 'lia' })
    const { id, expires_at } = made
    expect(await hub.ok(hub.admin, 'realms/invitations', { realm_id })).toEqual({
      invitations: [
        {
          id,
          realm_id,
          role: 'operator',
          username: 'lia',
          expires_at,
          created_by: 'admin',
          created_at: expect.any(Number),
        },
      ],
      total: 1,
    })
    const other = await hub.ok(hub.admin, 'realms/invite', { realm_id })
    expect(await hub.ok(hub.admin, 'realms/invitations', { realm_id, limit: 1 })).toMatchObject({ total: 2 })
    expect((await accept(made.token, 'lia')).status).toBe(200)
    expect(await open(realm_id)).toEqual([other.id])
    await hub.skew(14 * 86_400_000)
    expect(await open(realm_id)).toEqual([])
    await hub.skew(0)
    expect(await hub.call(hub.admin, 'realms/revoke_invite', { id })).toMatchObject({
      status: 409,
      error: { message: expect.stringContaining('realms/remove_member') },
    })
  })
  test('are dead once revoked', async () => {
    const { id, token } = await hub.ok(hub.admin, 'realms/invite', { realm_id: realm })
    expect(await open(realm)).toContain(id)
    for (const _ of ['once', 'again']) {
      expect(await hub.ok(hub.admin, 'realms/revoke_invite', { id })).toEqual({ id, realm_id: realm })
    }
    expect(await open(realm)).not.toContain(id)
    expect(await accept(token, 'too-late')).toMatchObject({ status: 410, error: { code: 'expired' } })
    expect((await hub.call(hub.admin, 'users/get', { username: 'too-late' })).status).toBe(404)
    const { audit } = await hub.ok(hub.admin, 'audit/list', { org_id: org, action: 'realms/revoke_invite' })
    expect(audit).toMatchObject([{ target: id, realm_id: realm, username: 'admin' }])
  })
  test.each([
    ['is suspended', (user: Made) => ['users/suspend', { user_id: user.id }]],
    ['is deleted', (user: Made) => ['users/delete', { user_id: user.id }]],
    ['is taken out', () => ['realms/remove_member', { realm_id: realm, username: 'maker' }]],
    ['leaves the org', () => ['orgs/remove_member', { org_id: org, username: 'maker' }]],
    ['is admin no longer', () => ['realms/add_member', { realm_id: realm, username: 'maker', role: 'operator' }]],
  ] as [string, (user: Made) => [string, object]][])('are dead once their maker %s', async (why, end) => {
    const { users } = hub.store
    const maker = await hub.account('maker')
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: realm, username: 'maker', role: 'admin' })
    const { id, token } = await hub.ok(maker.token, 'realms/invite', { realm_id: realm, role: 'admin' })
    expect(await open(realm)).toContain(id)
    const [path, body] = end(maker)
    await hub.ok(hub.admin, path, body)
    expect([why, await open(realm)]).toEqual([why, expect.not.arrayContaining([id])])
    expect(await accept(token, 'puppet')).toMatchObject({ status: 410, error: { code: 'expired' } })
    expect((await hub.call(hub.admin, 'users/get', { username: 'puppet' })).status).toBe(404)
    const renamed = { username: `maker who ${why}` }
    await hub.store.write(tx => tx.update(users).set(renamed).where(eq(users.id, maker.id)))
  })
})

describe('the last one stays', () => {
  let id: number
  let scope: number
  let own: string
  let una: { token: string; id: number }
  let udo: { token: string; id: number }
  const remove = (token: string, username: string) => hub.call(token, 'orgs/remove_member', { org_id: id, username })
  const refused = (what: string) => ({ status: 409, error: { message: expect.stringContaining(`the last ${what}`) } })

  beforeAll(async () => {
    id = (await hub.ok(hub.admin, 'orgs/create', { slug: 'led', display_name: 'Led' })).id
    una = await hub.account('una')
    udo = await hub.account('udo')
    await hub.ok(hub.admin, 'orgs/add_member', { org_id: id, username: 'una', role: 'admin' })
    scope = (await hub.ok(una.token, 'scopes/create', { org_id: id, slug: 'led' })).id
    own = (await hub.ok(una.token, 'realms/create', { org_id: id, slug: 'ones-own', name: 'R' })).id
  })

  test('whoever leaves an org leaves no scope and no realm of it without a head', async () => {
    expect(await remove(hub.admin, 'una')).toMatchObject(refused('owner of scope led'))
    await hub.ok(hub.admin, 'scopes/add_member', { scope_id: scope, username: 'udo', role: 'owned' })
    expect(await remove(hub.admin, 'una')).toMatchObject(refused('admin of realm ones-own'))
    expect((await hub.ok(hub.admin, 'realms/members', { realm_id: own })).total).toBe(1)
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: own, username: 'udo', role: 'admin' })
    expect((await remove(hub.admin, 'una')).status).toBe(200)
    expect((await hub.call(una.token, 'realms/get', { realm_id: own })).status).toBe(404)
  })
  test('who is suspended does not count, though suspending asks nobody', async () => {
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: own, username: 'una', role: 'admin' })
    await hub.ok(hub.admin, 'scopes/add_member', { scope_id: scope, username: 'una', role: 'owned' })
    await hub.ok(hub.admin, 'orgs/add_member', { org_id: id, username: 'udo', role: 'owner' })
    await hub.ok(hub.admin, 'users/suspend', { user_id: udo.id })
    const member = { realm_id: own, username: 'una' }
    expect(await remove(hub.admin, 'admin')).toMatchObject(refused('owner of org led'))
    expect(await hub.call(hub.admin, 'realms/add_member', { ...member, role: 'operator' })).toMatchObject(
      refused('admin of realm ones-own'),
    )
    expect(await hub.call(hub.admin, 'realms/remove_member', member)).toMatchObject(refused('admin of realm ones-own'))
    expect(
      await hub.call(hub.admin, 'scopes/add_member', { scope_id: scope, username: 'una', role: 'member' }),
    ).toMatchObject(refused('owner of scope led'))
    await hub.ok(hub.admin, 'users/suspend', { user_id: udo.id, suspended: false })
    expect((await hub.call(hub.admin, 'realms/remove_member', member)).status).toBe(200)
  })
  test('two who remove each other at the same moment leave one', async () => {
    for (let round = 0; round < 5; round++) {
      for (const username of ['una', 'udo']) {
        await hub.ok(hub.admin, 'orgs/add_member', { org_id: id, username, role: 'owner' })
        await hub.ok(hub.admin, 'realms/add_member', { realm_id: own, username, role: 'admin' })
        await hub.ok(hub.admin, 'scopes/add_member', { scope_id: scope, username, role: 'owned' })
      }
      await hub.call(udo.token, 'orgs/remove_member', { org_id: id, username: 'admin' })
      const statuses = await Promise.all([remove(una.token, 'udo'), remove(udo.token, 'una')])
      expect(statuses.map(({ status }) => status).sort()).toEqual([200, 404])
      const { members } = await hub.ok(hub.admin, 'orgs/get_by_id', { org_id: id })
      expect(members.filter((member: { role: string }) => member.role === 'owner')).toHaveLength(1)
    }
  })
})

describe('users', () => {
  test('are made by site admins, seen by those who share an org', async () => {
    const made = await hub.ok(hub.admin, 'users/create', { username: 'uma', password: 'long enough' })
    expect(made).not.toHaveProperty('password_hash')
    expect((await hub.call(hub.admin, 'users/create', { username: 'uma', password: 'long enough' })).status).toBe(409)
    const { token } = await hub.ok(null, 'session/create', { username: 'uma', password: 'long enough' })
    expect(await hub.ok(token, 'users/get')).toMatchObject({ username: 'uma' })
    expect((await hub.call(token, 'users/get', { username: 'admin' })).status).toBe(404)
    await hub.ok(hub.admin, 'orgs/add_member', { org_id: org, username: 'uma', role: 'member' })
    expect(await hub.ok(token, 'users/get', { username: 'admin' })).toMatchObject({ id: 1 })
    expect((await hub.call(token, 'users/list')).status).toBe(403)
  })
  test('one that may not be seen is looked for with as many statements as one that is missing', async () => {
    const pat = await hub.account('pat')
    const quin = await hub.account('quin')
    let statements = 0
    const db = new Proxy(hub.store.db, {
      get(target, key) {
        if (key === 'select') statements++
        return Reflect.get(target, key)
      },
    })
    const watched = createHub({ store: { ...hub.store, db }, log: createLog({ write: () => {} }), home: folder() })
    const app = hubApp(watched)
    const get = async (body: object) => {
      const headers = { authorization: `Bearer ${pat.token}`, 'content-type': 'application/json' }
      const request = new Request('http://localhost/v1/users/get', {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      statements = 0
      return [(await app.handle(request)).status, statements]
    }
    await get({})
    for (const [theirs, none] of [
      [{ username: 'quin' }, { username: 'none' }],
      [{ user_id: quin.id }, { user_id: 1_000_000 }],
      [
        { user_id: quin.id, username: 'quin' },
        { user_id: 1_000_000, username: 'none' },
      ],
    ] as const) {
      const [[foreign, asked], [missing, askedToo]] = [await get(theirs), await get(none)]
      expect([theirs, foreign, missing]).toEqual([theirs, 404, 404])
      expect(asked).toBeGreaterThan(0)
      expect([theirs, askedToo]).toEqual([theirs, asked])
    }
    await watched.lastSeen.close()
  })
  test('a new password ends the other sessions', async () => {
    const vic = await hub.account('vic')
    const other = (await hub.ok(null, 'session/create', { username: 'vic', password: 'password of a test' })).token
    const change = (password: string) =>
      hub.call(vic.token, 'users/change_password', { password, new_password: 'another one' })
    expect((await change('wrong')).status).toBe(403)
    expect((await change('password of a test')).status).toBe(200)
    expect((await hub.call(other, 'auth/whoami')).status).toBe(401)
    expect((await hub.call(vic.token, 'auth/whoami')).status).toBe(200)
    await hub.ok(null, 'session/create', { username: 'vic', password: 'another one' })
  })
  test('a password that a site admin sets ends the sessions, too', async () => {
    const wil = await hub.account('wil')
    await hub.ok(hub.admin, 'users/update', { user_id: wil.id, password: 'another one' })
    expect((await hub.call(wil.token, 'auth/whoami')).status).toBe(401)
    await hub.ok(null, 'session/create', { username: 'wil', password: 'another one' })
  })
  test('revoke_tokens ends the durable tokens too, but not the one that asks', async () => {
    const tim = await hub.account('tim')
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: realm, username: 'tim', role: 'member' })
    const mint = async () => [
      (await hub.ok(tim.token, 'auth/generate_token', { type: 'user', name: 'x' })).token as string,
      (await hub.realmToken(tim.token, realm)).token,
    ]
    const statuses = (tokens: string[]) =>
      Promise.all(tokens.map(async token => (await hub.call(token, 'auth/whoami')).status))
    const kept = await mint()
    const change = { password: 'password of a test', new_password: 'another one' }
    await hub.ok(tim.token, 'users/change_password', change)
    expect(await statuses([tim.token, ...kept])).toEqual([200, 200, 200])
    const back = { password: 'another one', new_password: 'password of a test', revoke_tokens: true }
    await hub.ok(tim.token, 'users/change_password', back)
    expect(await statuses([tim.token, ...kept])).toEqual([200, 401, 401])
    const more = await mint()
    await hub.ok(hub.admin, 'users/update', { user_id: tim.id, revoke_tokens: true })
    expect(await statuses([tim.token, ...more, hub.admin])).toEqual([401, 401, 401, 200])
    await hub.ok(null, 'session/create', { username: 'tim', password: 'password of a test' })
  })
  test('who is deleted is gone, with tokens, sessions and memberships; the name stays taken', async () => {
    const xena = await hub.account('xena')
    const durable = await hub.ok(xena.token, 'auth/generate_token', { type: 'user', name: 'x' })
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: realm, username: 'xena', role: 'operator' })
    const enrolled = await hub.realmToken(xena.token, realm)
    const scope = await hub.ok(hub.admin, 'scopes/create', { org_id: org, slug: 'xenas' })
    await hub.ok(hub.admin, 'scopes/add_member', { scope_id: scope.id, username: 'xena' })
    expect(await hub.ok(hub.admin, 'users/delete', { user_id: xena.id })).toEqual({ id: xena.id })
    for (const token of [xena.token, durable.token, enrolled.token]) {
      expect((await hub.call(token, 'auth/whoami')).status).toBe(401)
    }
    const again = { username: 'xena', password: 'password of a test' }
    expect((await hub.call(null, 'session/create', again)).status).toBe(401)
    expect((await hub.call(hub.admin, 'users/create', again)).status).toBe(409)
    for (const [path, body] of [
      ['users/get', { user_id: xena.id }],
      ['users/get', { username: 'xena' }],
      ['users/update', { user_id: xena.id, password: 'long enough' }],
      ['users/suspend', { user_id: xena.id, suspended: false }],
      ['users/delete', { user_id: xena.id }],
      ['realms/add_member', { realm_id: realm, username: 'xena', role: 'member' }],
      ['orgs/add_member', { org_id: org, username: 'xena', role: 'member' }],
    ] as const) {
      expect([path, (await hub.call(hub.admin, path, body)).status]).toEqual([path, 404])
    }
    const listed = await Promise.all([
      hub.ok(hub.admin, 'users/list', { limit: 100 }),
      hub.ok(hub.admin, 'orgs/get_by_id', { org_id: org }),
      hub.ok(hub.admin, 'scopes/get', { scope_id: scope.id }),
      hub.ok(hub.admin, 'realms/members', { realm_id: realm }),
    ])
    expect(JSON.stringify(listed)).not.toContain('"xena"')
    const { audit } = await hub.ok(hub.admin, 'audit/list', { action: 'users/delete' })
    expect(audit[0]).toMatchObject({ action: 'users/delete', target: 'xena', username: 'admin' })
  })
  test('who leads something alone cannot be deleted until another does', async () => {
    const yuri = await hub.account('yuri')
    const zora = await hub.account('zora')
    const { id } = await hub.ok(hub.admin, 'orgs/create', { slug: 'yuris', display_name: 'Y' })
    await hub.ok(hub.admin, 'orgs/add_member', { org_id: id, username: 'yuri', role: 'owner' })
    await hub.ok(yuri.token, 'orgs/remove_member', { org_id: id, username: 'admin' })
    const scope_id = (await hub.ok(yuri.token, 'scopes/create', { org_id: id, slug: 'yuris' })).id
    const realm_id = (await hub.ok(yuri.token, 'realms/create', { org_id: id, slug: 'r', name: 'R' })).id
    const remove = (user_id: number) => hub.call(hub.admin, 'users/delete', { user_id })
    const last = (what: string) => ({ status: 409, error: { message: expect.stringContaining(`the last ${what}`) } })
    expect(await remove(yuri.id)).toMatchObject(last('owner of org yuris'))
    await hub.ok(hub.admin, 'orgs/add_member', { org_id: id, username: 'zora', role: 'owner' })
    expect(await remove(yuri.id)).toMatchObject(last('owner of scope yuris'))
    await hub.ok(hub.admin, 'scopes/add_member', { scope_id, username: 'zora', role: 'owned' })
    expect(await remove(yuri.id)).toMatchObject(last('admin of realm r'))
    expect((await hub.call(yuri.token, 'auth/whoami')).status).toBe(200)
    await hub.ok(hub.admin, 'realms/add_member', { realm_id, username: 'zora', role: 'admin' })
    expect((await remove(yuri.id)).status).toBe(200)
    expect(await remove(zora.id)).toMatchObject(last('owner of org yuris'))
    expect(await remove(1)).toMatchObject(last('site admin'))
  })
  test('the last site admin stays', async () => {
    expect((await hub.call(hub.admin, 'users/suspend', { user_id: 1 })).status).toBe(409)
    expect((await hub.call(hub.admin, 'users/update', { user_id: 1, site_admin: false })).status).toBe(409)
  })
})

test('who creates or joins a realm is a member of its org', async () => {
  const { token } = await hub.account('xia')
  const { id } = await hub.ok(hub.admin, 'orgs/create', { slug: 'xias', display_name: 'X' })
  await hub.ok(hub.admin, 'orgs/add_member', { org_id: id, username: 'xia', role: 'owner' })
  await hub.ok(token, 'orgs/remove_member', { org_id: id, username: 'admin' })
  await hub.ok(hub.admin, 'realms/create', { org_id: id, slug: 'r', name: 'R' })
  const { members } = await hub.ok(token, 'orgs/get_by_id', { org_id: id })
  expect(members).toContainEqual({ user_id: 1, username: 'admin', role: 'member' })
})

test('one’s role is told with every org, scope and realm', async () => {
  const yan = await hub.account('yan')
  const listed = async () => ({
    orgs: (await hub.ok(yan.token, 'orgs/list')).orgs.map((each: { my_role: string }) => each.my_role),
    scopes: (await hub.ok(yan.token, 'scopes/list')).scopes.map((each: { my_role: string }) => each.my_role),
    realms: (await hub.ok(yan.token, 'realms/list')).realms.map((each: { my_role: string }) => each.my_role),
  })
  expect(await listed()).toEqual({ orgs: [], scopes: [], realms: [] })
  await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username: 'yan', role: 'operator' })
  expect(await listed()).toEqual({ orgs: ['member'], scopes: ['org'], realms: ['operator'] })
  await hub.ok(hub.admin, 'orgs/add_member', { org_id: 1, username: 'yan', role: 'admin' })
  expect(await listed()).toEqual({ orgs: ['admin'], scopes: ['owned'], realms: ['admin'] })
})

test('realm tokens are in the audit log of the realm’s org, and its admins may revoke them', async () => {
  const other = await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug: 'audited', name: 'A' })
  const zoe = await hub.account('zoe')
  const lead = await hub.account('lead')
  for (const realm_id of [realm, other.id]) {
    await hub.ok(hub.admin, 'realms/add_member', { realm_id, username: 'zoe', role: 'member' })
  }
  await hub.ok(hub.admin, 'realms/add_member', { realm_id: other.id, username: 'lead', role: 'admin' })
  const made = await hub.realmToken(zoe.token, realm, other.id)
  const { daemon_id } = await hub.ok(made.token, 'daemons/register', { name: 'd', realm_id: other.id })
  await hub.ok(hub.admin, 'dispatch/tokens/mint', { daemon_id, action: 'execute' })
  expect((await hub.ok(lead.token, 'auth/get_tokens', { realm_id: other.id })).tokens[0].id).toBe(made.id)
  await hub.ok(lead.token, 'auth/revoke_token', { id: made.id })
  expect((await hub.call(made.token, 'auth/whoami')).status).toBe(401)
  const { audit } = await hub.ok(hub.admin, 'audit/list', { org_id: 1, limit: 100 })
  for (const [action, target] of [
    ['auth/generate_token', String(made.id)],
    ['auth/revoke_token', String(made.id)],
    ['dispatch/tokens/mint', `execute on ${daemon_id}`],
  ]) {
    expect(audit).toContainEqual(expect.objectContaining({ action, target, realm_id: other.id }))
  }
})

test('a token whose realm is gone grants nothing', async () => {
  const { id } = await hub.ok(hub.admin, 'realms/create', { org_id: org, slug: 'brief', name: 'B' })
  const { token } = await hub.realmToken(hub.admin, id)
  await hub.ok(hub.admin, 'realms/delete', { realm_id: id })
  expect(await hub.call(token, 'daemons/register', { name: 'd' })).toMatchObject({
    status: 403,
    error: { code: 'forbidden', message: expect.stringContaining('deleted') },
  })
})

test('the audit log has what was done, by whom, and no secret', async () => {
  const { audit: entries, total } = await hub.ok(hub.admin, 'audit/list', { org_id: org, limit: 100 })
  expect(total).toBe(entries.length)
  const actions = new Set(entries.map((entry: { action: string }) => entry.action))
  for (const action of [
    'realms/create',
    'orgs/add_member',
    'scopes/create',
    'realms/invite',
    'realms/accept_invite',
    'realms/add_team',
  ]) {
    expect(actions).toContain(action)
  }
  expect(entries.every((entry: { at: number }) => entry.at > 0)).toBe(true)
  expect(entries.every((entry: { address: string }) => entry.address === '127.0.0.1')).toBe(true)
  expect(JSON.stringify(entries)).not.toContain('cadre_')
})
