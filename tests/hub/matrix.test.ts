// The authorization matrix: every route × credential × grant × own, foreign and missing object. A denied call changes
// nothing.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { getTableName, is, Table } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { ENTITIES, type Entity, LEVELS, type Level } from '../../lib/hub/grant.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

type Ask = Partial<Record<Entity, Level>>

const NONE = crypto.randomUUID()
const MANY = { name: 'x', lease_id: NONE, job_id: NONE, status: 'done', epoch: NONE, from_seq: 1, changes: [] }

/** What each route of user tokens asks, written down again from the specification, and a body that names `id`s. */
const USER: Record<string, [ask: Ask | null, body: (ids: Ids) => object]> = {
  'auth/generate_token': [{ tokens: 'write' }, ({ realm }) => ({ type: 'realm', name: 'x', realm_ids: [realm] })],
  'auth/get_tokens': [{ tokens: 'read' }, ({ realm }) => ({ realm_id: realm })],
  'auth/rotate_token': [{ tokens: 'write' }, () => ({ id: 999 })],
  'users/create': [{ users: 'write' }, () => ({ username: 'made', password: 'long enough' })],
  'users/get': [{ users: 'read' }, () => ({ username: 'nobody' })],
  'users/list': [{ users: 'read' }, () => ({})],
  'users/suspend': [{ users: 'admin' }, () => ({ user_id: 999 })],
  'users/update': [{ users: 'write' }, () => ({ user_id: 999 })],
  'orgs/create': [{ orgs: 'admin' }, () => ({ slug: 'made', display_name: 'x' })],
  'orgs/list': [{ orgs: 'read' }, () => ({})],
  'orgs/get_by_id': [{ orgs: 'read' }, ({ org }) => ({ org_id: org })],
  'orgs/update': [{ orgs: 'write' }, ({ org }) => ({ org_id: org, display_name: 'x' })],
  'orgs/delete': [{ orgs: 'admin' }, ({ org }) => ({ org_id: org })],
  'orgs/add_member': [{ orgs: 'write' }, ({ org }) => ({ org_id: org, username: 'admin', role: 'member' })],
  'orgs/remove_member': [{ orgs: 'write' }, ({ org }) => ({ org_id: org, username: 'admin' })],
  'scopes/create': [{ scopes: 'write' }, ({ org }) => ({ org_id: org, slug: 'made' })],
  'scopes/list': [{ scopes: 'read' }, () => ({})],
  'scopes/get': [{ scopes: 'read' }, ({ scope }) => ({ scope_id: scope })],
  'scopes/delete': [{ scopes: 'admin' }, ({ scope }) => ({ scope_id: scope })],
  'scopes/add_member': [{ scopes: 'write' }, ({ scope }) => ({ scope_id: scope, username: 'admin' })],
  'scopes/remove_member': [{ scopes: 'write' }, ({ scope }) => ({ scope_id: scope, username: 'admin' })],
  'realms/create': [{ realms: 'write' }, ({ org }) => ({ org_id: org, slug: 'made', name: 'x' })],
  'realms/list': [{ realms: 'read' }, () => ({})],
  'realms/get': [{ realms: 'read' }, ({ realm }) => ({ realm_id: realm })],
  'realms/members': [{ realms: 'read' }, ({ realm }) => ({ realm_id: realm })],
  'realms/teams': [{ realms: 'read' }, ({ realm }) => ({ realm_id: realm })],
  'realms/update': [{ realms: 'write' }, ({ realm }) => ({ realm_id: realm, name: 'x' })],
  'realms/delete': [{ realms: 'admin' }, ({ realm }) => ({ realm_id: realm })],
  'realms/invite': [{ realms: 'write' }, ({ realm }) => ({ realm_id: realm })],
  'realms/add_member': [{ realms: 'write' }, ({ realm }) => ({ realm_id: realm, username: 'admin', role: 'member' })],
  'realms/remove_member': [{ realms: 'write' }, ({ realm }) => ({ realm_id: realm, username: 'admin' })],
  'realms/add_team': [{ realms: 'write' }, ({ realm }) => ({ realm_id: realm, team: '@admin/x' })],
  'realms/remove_team': [{ realms: 'write' }, ({ realm }) => ({ realm_id: realm, team: '@admin/x' })],
  'daemons/list': [{ daemons: 'read' }, ({ realm }) => ({ realm_id: realm })],
  'daemons/get': [{ daemons: 'read' }, ({ daemon }) => ({ daemon_id: daemon })],
  'daemons/remove': [{ daemons: 'admin' }, ({ daemon }) => ({ daemon_id: daemon })],
  'dispatch/run': [{ runs: 'write', dispatch: 'write' }, ({ realm }) => ({ realm_id: realm, team: '@admin/x' })],
  'dispatch/cancel': [{ runs: 'write', dispatch: 'write' }, ({ run }) => ({ run_id: run })],
  'dispatch/resume': [{ runs: 'write', dispatch: 'write' }, ({ run }) => ({ run_id: run })],
  'dispatch/move': [{ runs: 'write', dispatch: 'write' }, ({ run, daemon }) => ({ run_id: run, daemon_id: daemon })],
  'dispatch/queue': [{ runs: 'read', dispatch: 'read' }, ({ realm }) => ({ realm_id: realm })],
  'dispatch/keys/get': [{ dispatch: 'read' }, ({ org }) => ({ org_id: String(org) })],
  'dispatch/keys/rotate': [{ dispatch: 'admin', orgs: 'admin' }, ({ org }) => ({ org_id: String(org) })],
  'dispatch/tokens/mint': [{ runs: 'read' }, ({ daemon }) => ({ daemon_id: daemon, action: 'access' })],
  'teams/publish': [{ teams: 'write' }, () => ({ scope: 'admin', files: [{ path: 'team.yml', content_base64: '' }] })],
  'teams/list': [{ teams: 'read' }, () => ({})],
  'teams/get': [{ teams: 'read' }, () => ({ team: '@admin/x' })],
  'teams/versions': [{ teams: 'read' }, () => ({ team: '@admin/x' })],
  'teams/yank': [{ teams: 'write' }, () => ({ team: '@admin/x@1.0.0' })],
  'runs/list': [{ runs: 'read', dispatch: 'read' }, ({ realm }) => ({ realm_id: realm })],
  'runs/get': [{ runs: 'read', dispatch: 'read' }, ({ run }) => ({ run_id: run })],
  'runs/tree': [{ runs: 'read', dispatch: 'read' }, ({ run }) => ({ run_id: run })],
  'runs/phases': [{ runs: 'read', dispatch: 'read' }, ({ run }) => ({ run_id: run })],
  'runs/logs': [{ runs: 'read', dispatch: 'read' }, ({ run }) => ({ run_id: run })],
  'runs/artifacts': [{ runs: 'read', dispatch: 'read' }, ({ run }) => ({ run_id: run })],
  'reviews/list': [{ runs: 'read', dispatch: 'read' }, ({ realm }) => ({ realm_id: realm })],
  'reviews/decide': [{ runs: 'write', dispatch: 'write' }, () => ({ review_id: NONE, decision: 'approve' })],
  'audit/list': [{ orgs: 'admin' }, ({ org }) => ({ org_id: org })],
  // Any user token, whatever its grant.
  'auth/revoke_token': [null, () => ({ id: 999 })],
  'session/delete': [null, () => ({})],
  'users/change_password': [null, () => ({ password: 'wrong', new_password: 'long enough' })],
}
const REALM = [
  'daemons/register',
  'daemons/heartbeat',
  'daemons/poll',
  'daemons/ack',
  'daemons/deregister',
  'runs/sync',
  'auth/acl',
]
const BOTH = ['auth/whoami', 'teams/download']
const OPEN = ['session/create', 'realms/accept_invite']

interface Ids {
  org: number
  scope: number
  realm: string
  daemon: string
  run: string
}

let hub: TestHub
let own: Ids
const missing: Ids = { org: 999, scope: 999, realm: NONE, daemon: NONE, run: NONE }
let stranger: string
let realmToken: string

beforeAll(async () => {
  hub = await startTestHub()
  realmToken = (await hub.realmToken(hub.admin, hub.realm)).token
  const { daemon_id: daemon } = await hub.ok(realmToken, 'daemons/register', { name: 'd' })
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/x' })
  const run = crypto.randomUUID()
  const { runs } = hub.store
  await hub.store.write(tx =>
    tx.insert(runs).values({
      run_id: run,
      realm_id: hub.realm,
      root_run_id: run,
      call_path: ['@admin/x'],
      call_depth: 0,
      tree_key: '',
      team: '@admin/x',
      state: 'running',
      inputs: {},
      attempt: 1,
      created_at: 1,
    }),
  )
  own = { org: 1, scope: 1, realm: hub.realm, daemon, run }
  stranger = (await hub.account('stranger')).token
})
afterAll(() => hub.stop())

async function patWith(session: string, access: object): Promise<string> {
  const permissions = { domains: { orgs: '*', realms: '*' }, access }
  return (await hub.ok(session, 'auth/generate_token', { type: 'user', name: 'x', permissions })).token
}

/** The whole database, but for what every call touches. */
async function contents(): Promise<string> {
  await hub.flush()
  const { store } = hub
  const parts: string[] = []
  for (const table of Object.values(store) as unknown[]) {
    if (!is(table, Table)) continue
    const rows = (await store.db.select().from(table as SQLiteTable)) as Record<string, unknown>[]
    const lines = rows.map(row => JSON.stringify({ ...row, last_used_at: 0, last_seen_at: 0 }))
    parts.push(getTableName(table), ...lines.sort())
  }
  expect(parts.length).toBeGreaterThan(40)
  return parts.join('\n')
}

test('the table has every route', () => {
  const declared = hub.routes.filter(({ method }) => method === 'POST').map(({ path }) => path.replace('/v1/', ''))
  expect([...Object.keys(USER), ...REALM, ...BOTH, ...OPEN].sort()).toEqual(declared.sort())
  expect(hub.routes.filter(({ method }) => method === 'GET').map(({ path }) => path)).toEqual([
    '/health',
    '/openapi',
    '/openapi/json',
    '/v1/runs/stream',
  ])
})

test('without a valid token every route but two answers 401, and realm tokens reach only theirs', async () => {
  const before = await contents()
  for (const path of [...Object.keys(USER), ...REALM, ...BOTH]) {
    expect([path, (await hub.call(null, path, MANY)).status]).toEqual([path, 401])
    expect([path, (await hub.call(`cadre_tok_${'0'.repeat(49)}`, path, MANY)).status]).toEqual([path, 401])
  }
  for (const path of Object.keys(USER)) {
    expect([path, (await hub.call(realmToken, path, USER[path]![1](own))).status]).toEqual([path, 403])
  }
  for (const path of REALM) {
    const status = path === 'auth/acl' ? 403 : 401
    expect([path, (await hub.call(hub.admin, path, { daemon_id: own.daemon, ...MANY })).status]).toEqual([path, status])
  }
  expect((await fetch(`${hub.url}/v1/runs/stream?run_id=${own.run}`)).status).toBe(401)
  expect(await contents()).toBe(before)
})

describe('grants', () => {
  test('whatever is absent is denied, for the site admin too', async () => {
    const tokens = new Map<Entity, string>()
    for (const entity of ENTITIES) {
      const others = ENTITIES.filter(each => each !== entity).map(each => [each, ['admin']])
      tokens.set(entity, await patWith(hub.admin, Object.fromEntries(others)))
    }
    const empty = await patWith(hub.admin, {})
    const before = await contents()
    for (const [path, [ask, body]] of Object.entries(USER)) {
      if (!ask) continue
      const entities = Object.keys(ask) as Entity[]
      const token = entities.length === 1 && path !== 'dispatch/tokens/mint' ? tokens.get(entities[0]!)! : empty
      const reply = await hub.call(token, path, body(own))
      expect([path, reply.status, reply.error.code]).toEqual([path, 403, 'forbidden'])
    }
    expect(await contents()).toBe(before)
  })
  test('a lower level is denied, the named one is enough to get to the object', async () => {
    for (const [path, [ask, body]] of Object.entries(USER)) {
      for (const [entity, level] of Object.entries(ask ?? {})) {
        const below = LEVELS.slice(0, LEVELS.indexOf(level))
        // Mutations of missing objects: 404 says that the grant was enough.
        const enough = await hub.call(await patWith(hub.admin, { [entity]: [level] }), path, body(missing))
        expect([path, entity, level, enough.status]).not.toEqual([path, entity, level, 403])
        if (below.length === 0) continue
        const denied = await hub.call(await patWith(hub.admin, { [entity]: below }), path, body(missing))
        expect([path, entity, below, denied.status]).toEqual([path, entity, below, 403])
      }
    }
  })
})

describe('objects', () => {
  const byObject = Object.entries(USER).filter(([path]) => !/^(users|session|auth\/(revoke|rotate))/.test(path))

  test('a foreign object and a missing one answer alike', async () => {
    const before = await contents()
    for (const [path, [, body]] of byObject) {
      const [foreign, absent] = [
        await hub.call(stranger, path, body(own)),
        await hub.call(stranger, path, body(missing)),
      ]
      expect([path, foreign.status, foreign.error?.code]).toEqual([path, absent.status, absent.error?.code])
      if (foreign.status === 200) {
        expect([path, foreign.data.total]).toEqual([path, 0])
        continue
      }
      expect([path, foreign.status]).toEqual([path, path === 'orgs/create' ? 403 : 404])
      const shape = (text: string) => text.replaceAll(/[0-9a-f-]{36}|\b\d+\b/g, '#')
      expect([path, shape(foreign.error.message)]).toEqual([path, shape(absent.error.message)])
    }
    expect(await contents()).toBe(before)
  })
  test('outside the domains of a token is foreign too, for the site admin as well', async () => {
    const permissions = {
      domains: { orgs: [999] },
      access: Object.fromEntries(ENTITIES.map(entity => [entity, ['admin']])),
    }
    const { token } = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'x', permissions })
    const before = await contents()
    for (const [path, [, body]] of byObject) {
      if (path === 'orgs/create') continue
      const reply = await hub.call(token, path, body(own))
      if (reply.status === 200) expect([path, reply.data.total]).toEqual([path, 0])
      else expect([path, reply.status]).toEqual([path, 404])
    }
    expect(await contents()).toBe(before)
  })
  test('a role that is too low on a visible object is 403 and says what would pass', async () => {
    const member = await hub.account('member')
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username: 'member', role: 'member' })
    const before = await contents()
    const needs: Record<string, string> = {
      'orgs/update': 'admin or owner',
      'orgs/delete': 'owner',
      'orgs/add_member': 'admin or owner',
      'scopes/create': 'admin or owner',
      'scopes/delete': 'owned',
      'scopes/add_member': 'owned',
      'teams/yank': 'member or owned',
      'teams/publish': 'member or owned',
      'realms/create': 'admin or owner',
      'realms/update': 'admin',
      'realms/delete': 'admin',
      'realms/invite': 'admin',
      'realms/add_member': 'admin',
      'realms/add_team': 'operator or admin',
      'realms/remove_team': 'operator or admin',
      'daemons/remove': 'admin',
      'dispatch/run': 'operator or admin',
      'dispatch/cancel': 'operator or admin',
      'dispatch/resume': 'operator or admin',
      'dispatch/move': 'operator or admin',
      'dispatch/keys/rotate': 'admin or owner',
      'auth/get_tokens': 'admin',
      'audit/list': 'admin or owner',
    }
    for (const [path, need] of Object.entries(needs)) {
      const reply = await hub.call(member.token, path, USER[path]![1](own))
      expect([path, reply.status, reply.error.message]).toEqual([path, 403, expect.stringContaining(need)])
    }
    expect(await contents()).toBe(before)
    for (const path of [
      'realms/get',
      'realms/members',
      'realms/teams',
      'daemons/get',
      'runs/get',
      'orgs/get_by_id',
      'dispatch/queue',
    ]) {
      expect([path, (await hub.call(member.token, path, USER[path]![1](own))).status]).toEqual([path, 200])
    }
  })
  test('losing a membership shrinks a token at once', async () => {
    const leaver = await hub.account('leaver')
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username: 'leaver', role: 'operator' })
    const token = await patWith(leaver.token, { realms: ['write'] })
    const add = () => hub.call(token, 'realms/add_team', { realm_id: hub.realm, team: '@admin/x' })
    expect((await add()).status).toBe(200)
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username: 'leaver', role: 'member' })
    expect((await add()).status).toBe(403)
    await hub.ok(hub.admin, 'realms/remove_member', { realm_id: hub.realm, username: 'leaver' })
    expect((await add()).status).toBe(404)
  })
})
