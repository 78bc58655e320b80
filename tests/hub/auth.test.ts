// Sessions, tokens, and what realm tokens reach, over real HTTP.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { decoyHash, hashPassword } from '../../lib/hub/access/accounts.ts'
import type { Hub } from '../../lib/hub/core/hub.ts'
import { ADMIN_PASSWORD, AGAIN, startTestHub, type TestHub } from '../support/hub.ts'
import { statementsOf } from '../support/statements.ts'
import { tablesOf } from '../support/tables.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

describe('sessions', () => {
  test('sign in, act, sign out', async () => {
    const made = await hub.ok(null, 'session/create', { username: 'admin', password: ADMIN_PASSWORD })
    expect(made.token).toMatch(/^cadre_tok_[0-9A-Za-z]{49}$/)
    expect(made.expires_at).toBeGreaterThan(Date.now() + 29 * 86_400_000)
    expect(await hub.ok(made.token, 'auth/whoami')).toMatchObject({
      type: 'user',
      kind: 'session',
      user: { id: 1, username: 'admin' },
      permissions: { domains: { orgs: '*', realms: '*' } },
    })
    await hub.ok(made.token, 'session/delete')
    expect(await hub.call(made.token, 'auth/whoami')).toMatchObject({ status: 401, error: { code: 'unauthorized' } })
  })
  test('a text that is no token is refused before the database is asked', async () => {
    const asked = async (token: string) => {
      const texts = await statementsOf(hub.store.db, async () => {
        expect(await hub.call(token, 'auth/whoami')).toMatchObject({ status: 401, error: { code: 'unauthorized' } })
      })
      return texts.filter(text => text.includes('tokens')).length
    }
    const { token } = await hub.ok(null, 'session/create', { username: 'admin', password: ADMIN_PASSWORD })
    await hub.ok(token, 'session/delete')
    expect(await asked(`${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`)).toBe(0)
    if (!AGAIN) expect(await asked(token)).toBeGreaterThan(0)
  })
  test('a wrong password and an unknown name answer alike', async () => {
    const wrong = await hub.call(null, 'session/create', { username: 'admin', password: 'nope' })
    const unknown = await hub.call(null, 'session/create', { username: 'nobody', password: 'nope' })
    expect(wrong.status).toBe(401)
    expect(wrong.error).toEqual(unknown.error)
  })
  test('an unknown name is checked against a hash of the same form as the others', async () => {
    const cost = { passwordCost: { memoryCost: 64, timeCost: 3 } } as Hub
    const [hash, decoy] = [await hashPassword(cost, 'one'), decoyHash(cost)]
    const form = (text: string) => text.split('$').map((part, n) => (n < 4 ? part : part.length))
    expect(form(decoy)).toEqual(form(hash))
    expect(await Bun.password.verify('one', hash)).toBe(true)
    expect(await Bun.password.verify('one', decoy)).toBe(false)
  })
  test('a suspended account is out at once', async () => {
    const { token, id } = await hub.account('gone')
    await hub.ok(hub.admin, 'users/suspend', { user_id: id })
    expect((await hub.call(token, 'auth/whoami')).status).toBe(401)
    const again = await hub.call(null, 'session/create', { username: 'gone', password: 'password of a test' })
    expect(again.status).toBe(401)
  })
})

describe('tokens', () => {
  test('plaintext once; the listing has metadata only', async () => {
    const { token: session } = await hub.account('lister')
    const made = await hub.call(session, 'auth/generate_token', { type: 'user', name: 'ci' })
    expect(made.status).toBe(201)
    expect(made.data).toMatchObject({ name: 'ci', type: 'user', realm_ids: [], expires_at: null })
    const { tokens, total } = await hub.ok(made.data.token, 'auth/get_tokens', { limit: 1, offset: 0 })
    expect(total).toBe(2)
    expect(tokens).toHaveLength(1)
    expect(tokens[0]).toMatchObject({
      id: made.data.id,
      name: 'ci',
      type: 'user',
      kind: 'durable',
      permissions: { org_ids: [], access: 'admin' },
      revoked_at: null,
    })
    expect(new Date(tokens[0].created_at).toISOString()).toBe(tokens[0].created_at)
    expect(JSON.stringify(tokens)).not.toContain(made.data.token.slice(12, 40))
    expect(Object.keys(tokens[0])).not.toContain('hash')
  })
  test('the resolved orgs and the use of a token are told', async () => {
    await hub.flush()
    const { tokens } = await hub.ok(hub.admin, 'auth/get_tokens')
    expect(tokens[0].permissions).toEqual({ org_ids: [1], access: 'admin' })
    expect(tokens[0].last_used_at).not.toBeNull()
  })
  test('rotation kills the old secret, revocation the token', async () => {
    const { token: session } = await hub.account('rotator')
    const made = await hub.ok(session, 'auth/generate_token', { type: 'user', name: 'a' })
    const { token } = await hub.ok(session, 'auth/rotate_token', { id: made.id })
    expect((await hub.call(made.token, 'auth/whoami')).status).toBe(401)
    expect((await hub.call(token, 'auth/whoami')).status).toBe(200)
    await hub.ok(session, 'auth/revoke_token', { id: made.id })
    expect((await hub.call(token, 'auth/whoami')).status).toBe(401)
    expect((await hub.call(session, 'auth/rotate_token', { id: made.id })).status).toBe(409)
  })
  test('a token without grants may still revoke itself', async () => {
    const { token: session } = await hub.account('bare')
    const made = await hub.ok(session, 'auth/generate_token', { type: 'user', name: 'a', permissions: { access: {} } })
    expect((await hub.call(made.token, 'auth/get_tokens')).status).toBe(403)
    await hub.ok(made.token, 'auth/revoke_token', { id: made.id })
    expect((await hub.call(made.token, 'auth/whoami')).status).toBe(401)
  })
  test('expiry', async () => {
    const { token: session } = await hub.account('short')
    const made = await hub.ok(session, 'auth/generate_token', { type: 'user', name: 'a', expires_in_days: 1 })
    await hub.skew(25 * 3_600_000)
    expect((await hub.call(made.token, 'auth/whoami')).status).toBe(401)
    await hub.skew(0)
  })
  test('minting never exceeds the minter, nor does rotating', async () => {
    const { token: session } = await hub.account('minter')
    const strong = await hub.ok(session, 'auth/generate_token', { type: 'user', name: 'strong' })
    const permissions = { domains: { orgs: [1] }, access: { tokens: ['write'], runs: ['read'] } }
    const weak = await hub.ok(session, 'auth/generate_token', { type: 'user', name: 'weak', permissions })
    const mint = (wanted: unknown) =>
      hub.call(weak.token, 'auth/generate_token', { type: 'user', name: 'x', permissions: wanted })
    expect((await mint({ domains: { orgs: [1] }, access: { runs: ['read'] } })).status).toBe(201)
    expect((await mint({ domains: { orgs: [1, 2] }, access: {} })).status).toBe(403)
    expect((await mint({ domains: { orgs: '*' }, access: {} })).status).toBe(403)
    expect((await mint({ access: { runs: ['write'] } })).status).toBe(403)
    expect((await hub.call(weak.token, 'auth/rotate_token', { id: strong.id })).status).toBe(403)
    const copy = await hub.ok(weak.token, 'auth/generate_token', { type: 'user', name: 'copy' })
    expect(copy.permissions).toEqual(permissions)
  })
  test('another user’s token does not exist', async () => {
    const { token } = await hub.account('stranger')
    expect((await hub.call(token, 'auth/revoke_token', { id: 1 })).status).toBe(404)
    expect((await hub.call(token, 'auth/rotate_token', { id: 1 })).status).toBe(404)
  })
  test.each([
    ['a realm token with permissions', { type: 'realm', name: 'x', permissions: { access: {} } }, '/permissions'],
    ['a realm token without realms', { type: 'realm', name: 'x' }, '/realm_ids'],
    ['a user token with realms', { type: 'user', name: 'x', realm_ids: [crypto.randomUUID()] }, '/realm_ids'],
    [
      'an unknown entity',
      { type: 'user', name: 'x', permissions: { access: { moon: ['read'] } } },
      '/permissions/access/moon',
    ],
    ['a coerced number', { type: 'user', name: 'x', expires_in_days: '3' }, '/expires_in_days'],
  ])('%s is refused', async (_, body, path) => {
    const reply = await hub.call(hub.admin, 'auth/generate_token', body)
    expect(reply.status).toBe(400)
    expect(reply.error.details!.map(detail => detail.path)).toContain(path)
  })
  test('garbage, other prefixes and broken checksums are 401', async () => {
    const good = hub.admin
    const flipped = good.slice(0, -1) + (good.endsWith('a') ? 'b' : 'a')
    for (const token of ['x', 'cadre_tok_', 'ghp_abc', flipped, `${good}x`, good.replace('_tok_', '_dt_')]) {
      const reply = await hub.call(token, 'auth/whoami')
      expect(reply).toMatchObject({ status: 401, error: { code: 'unauthorized' } })
      expect(reply.headers.get('www-authenticate')).toBe('Bearer')
    }
  })
})

test('a session that is used lives on; a durable token keeps its end', async () => {
  const day = 86_400_000
  const ends = async (token: string) => (await hub.ok(token, 'auth/whoami')).expires_at
  const session = (await hub.account('slider')).token
  const mint = { type: 'user', name: 'fixed', expires_in_days: 30 }
  const durable = (await hub.ok(session, 'auth/generate_token', mint)).token
  const before = [await ends(session), await ends(durable)]
  await hub.skew(29 * day)
  await ends(session)
  await ends(durable)
  await hub.flush()
  await hub.skew(58 * day)
  expect((await ends(session)) - before[0]).toBeGreaterThan(28 * day)
  expect((await hub.call(durable, 'auth/whoami')).status).toBe(401)
  await hub.skew(0)
})

describe('realm tokens', () => {
  test('are minted by members only, and reach only their own routes', async () => {
    const stranger = await hub.account('outsider')
    const mint = { type: 'realm', name: 'd', realm_ids: [hub.realm] }
    expect((await hub.call(stranger.token, 'auth/generate_token', mint)).status).toBe(404)
    const made = await hub.call(hub.admin, 'auth/generate_token', mint)
    expect(made.status).toBe(201)
    expect(made.data.token).toMatch(/^cadre_dt_/)
    expect(made.data.realm_ids).toEqual([hub.realm])
    for (const path of ['orgs/list', 'auth/get_tokens', 'realms/list', 'runs/list', 'dispatch/queue']) {
      expect(await hub.call(made.data.token, path)).toMatchObject({ status: 403, error: { code: 'forbidden' } })
    }
    expect(await hub.ok(made.data.token, 'auth/whoami')).toMatchObject({ type: 'realm', user: null })
  })
  test('acl: who may call, with which key', async () => {
    const org = await hub.ok(hub.admin, 'orgs/create', { slug: 'acl-org', display_name: 'A' })
    const realm = await hub.ok(hub.admin, 'realms/create', { org_id: org.id, slug: 'r', name: 'R' })
    const member = await hub.account('acl-member')
    const org_admin = await hub.account('acl-admin')
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: realm.id, username: 'acl-member', role: 'member' })
    await hub.ok(hub.admin, 'orgs/add_member', { org_id: org.id, username: 'acl-admin', role: 'admin' })
    const { token } = await hub.realmToken(member.token, realm.id)
    const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'd' })
    const acl = await hub.ok(token, 'auth/acl', { daemon_id })
    expect(acl).toEqual({
      realm_id: realm.id,
      allowed: ['acl-admin', 'acl-member', 'admin'],
      dispatch_public_key: expect.stringContaining('BEGIN PUBLIC KEY'),
      daemon_id,
    })
    expect(org_admin.id).toBeGreaterThan(0)
    const refused = [
      await hub.call(hub.admin, 'auth/acl', { daemon_id }),
      await hub.call(token, 'auth/acl', { daemon_id, realm_id: hub.realm }),
    ]
    for (const reply of refused) expect(reply).toMatchObject({ status: 403, error: { code: 'forbidden' } })
    expect((await hub.call(token, 'auth/acl', { daemon_id: crypto.randomUUID() })).status).toBe(404)
    const other = await hub.realmToken(hub.admin, hub.realm)
    expect((await hub.call(other.token, 'auth/acl', { daemon_id })).status).toBe(403)
    const both = await hub.realmToken(hub.admin, hub.realm, realm.id)
    expect((await hub.call(both.token, 'auth/acl', { daemon_id })).status).toBe(400)
    // The minter left: the token is worth nothing any more.
    await hub.ok(hub.admin, 'orgs/remove_member', { org_id: org.id, username: 'acl-member' })
    expect((await hub.call(token, 'auth/acl', { daemon_id })).status).toBe(403)
    expect((await hub.call(token, 'daemons/heartbeat', { daemon_id })).status).toBe(403)
  })
})

test('no password and no token is in the log or in any table', async () => {
  const passwords = ['canary: made', 'canary: set', 'canary: own', 'canary: invited', 'canary: wrong']
  const [made, set, own, invited, wrong] = passwords as [string, string, string, string, string]
  const signIn = async (username: string, password: string) =>
    (await hub.ok(null, 'session/create', { username, password })).token
  const realm_id = hub.realm
  const { id } = await hub.ok(hub.admin, 'users/create', { username: 'canary', password: made })
  const sessions = [await signIn('canary', made)]
  await hub.ok(hub.admin, 'users/update', { user_id: id, password: set })
  sessions.push(await signIn('canary', set))
  await hub.ok(sessions[1]!, 'users/change_password', { password: set, new_password: own })
  sessions.push(await signIn('canary', own))
  expect((await hub.call(null, 'session/create', { username: 'canary', password: wrong })).status).toBe(401)
  const invitation = await hub.ok(hub.admin, 'realms/invite', { realm_id })
  const unused = await hub.ok(hub.admin, 'realms/invite', { realm_id })
  const guest = { token: invitation.token, username: 'canaries-guest', password: invited }
  await hub.ok(null, 'realms/accept_invite', guest)
  sessions.push(await signIn('canaries-guest', invited))
  const durable = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'secret' })
  const renewed = await hub.ok(hub.admin, 'auth/rotate_token', { id: durable.id })
  const realm = await hub.realmToken(hub.admin, realm_id)
  const { daemon_id } = await hub.ok(realm.token, 'daemons/register', { name: 'canary' })
  const dispatched = await hub.ok(hub.admin, 'dispatch/tokens/mint', { daemon_id, action: 'execute' })
  for (const token of [renewed.token, realm.token]) await hub.ok(token, 'auth/whoami')
  for (const token of [durable.token, 'no token']) expect((await hub.call(token, 'auth/whoami')).status).toBe(401)
  await hub.flush()

  const tokens = [
    hub.admin,
    ...sessions,
    ...[invitation, unused, durable, renewed, realm, dispatched].map(x => x.token),
  ]
  for (const token of tokens) expect(token.length).toBeGreaterThan(40)
  const tables = await tablesOf(hub.store)
  expect(Object.keys(tables).length).toBeGreaterThan(15)
  const places = [...Object.entries(tables), ['the log', await hub.log()] as const]
  for (const [place, rows] of places) {
    const text = JSON.stringify(rows)
    const found = [ADMIN_PASSWORD, ...passwords, ...tokens].filter(secret => text.includes(secret))
    expect([place, found]).toEqual([place, []])
  }
  // What was looked at is what was written.
  expect(JSON.stringify(tables.users)).toContain('canaries-guest')
  expect(JSON.stringify(tables.audit)).toContain('canaries-guest')
})
