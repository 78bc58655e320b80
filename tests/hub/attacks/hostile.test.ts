// Callers who mean no good: a daemon that reports what no daemon would, a former password, a token that wants to grow, a
// name that somebody else had.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startTestHub, type TestHub } from '../../support/hub.ts'
import { runChange } from '../../support/sync.ts'

let hub: TestHub
beforeAll(async () => {
  // The check of a password takes as long as the tests of races below wait at most before they interfere.
  hub = await startTestHub({ passwordCost: { memoryCost: 16_384, timeCost: 2 } })
})
afterAll(async () => {
  expect((await hub.log()).filter(line => line.includes('request failed'))).toEqual([])
  await hub.stop()
})

describe('a report that the database would not take is refused, and holds up nothing', () => {
  let token: string
  let daemon_id: string
  const run_id = crypto.randomUUID()
  // Random, for what repeats itself is compressed.
  const long = (length: number) =>
    Array.from({ length }, () => String.fromCharCode(0x4e00 + Math.floor(Math.random() * 0x4000))).join('')
  const artifact = { phase: 'p', name: 'n', bytes: 1, sha256: 'x' }

  beforeAll(async () => {
    await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/t' })
    token = (await hub.realmToken(hub.admin, hub.realm)).token
    daemon_id = (await hub.ok(token, 'daemons/register', { name: 'd' })).daemon_id
  })

  test.each<[string, object, string[]]>([
    ['an attempt beyond all numbers', runChange(run_id, {}, 1e300), ['invalid_request']],
    ['an attempt below all', runChange(run_id, {}, -1), ['invalid_request']],
    [
      'a path longer than an index takes',
      { kind: 'artifact', artifact: { ...artifact, path: long(2_000) } },
      ['too_large'],
    ],
    ['a long path that one does take', { kind: 'artifact', artifact: { ...artifact, path: long(800) } }, []],
    [
      'an entry longer than an index takes',
      { kind: 'receipt', receipt: { phase: long(300), entry: long(1_000), state: 'sent' } },
      ['too_large'],
    ],
    [
      'half a character',
      { kind: 'event', event: { name: 'a\ud800', phase: '\udfff', at: 1, data: { '\ud800': '\udfff' } } },
      [],
    ],
    ['NUL as a name', { kind: 'event', event: { name: 'a\0', phase: null, at: 1, data: { 'a\0': '\0' } } }, []],
    [
      'a name of every object',
      { kind: 'event', event: { name: 'e', phase: null, at: 1, data: JSON.parse('{"__proto__":1}') } },
      [],
    ],
    ['a kind of every object', { kind: 'constructor' }, ['invalid_request']],
  ])('%s', async (_, change, codes) => {
    const changes = [runChange(run_id), { run_id, attempt: 1, ...change }, runChange(run_id, { reason: 'after' })]
    const reply = await hub.call(token, 'runs/sync', {
      daemon_id,
      epoch: crypto.randomUUID(),
      from_seq: 1,
      changes: changes.map((each, index) => ({ seq: index + 1, ...each })),
    })
    expect(reply).toMatchObject({
      status: 200,
      data: { acked_seq: 3, rejected: codes.map(code => ({ seq: 2, code })) },
    })
    expect(await hub.ok(hub.admin, 'runs/get', { run_id })).toMatchObject({ attempt: 1, reason: 'after' })
  })
})

test('a sign-in with the former password leaves no session, however it races the change', async () => {
  const { id } = await hub.account('vera')
  let password = 'password of a test'
  for (let round = 0; round < 8; round++) {
    const next = `password ${round} of a test`
    const signIn = async () => {
      await Bun.sleep(round * 8)
      return hub.call(null, 'session/create', { username: 'vera', password })
    }
    const change = hub.ok(hub.admin, 'users/update', { user_id: id, password: next })
    const { data } = await signIn()
    await change
    if (data) expect((await hub.call(data.token, 'auth/whoami')).status).toBe(401)
    password = next
  }
  expect((await hub.call(null, 'session/create', { username: 'vera', password })).status).toBe(200)
})

test('nor does one that races a suspension', async () => {
  for (let round = 0; round < 8; round++) {
    const { id } = await hub.ok(hub.admin, 'users/create', { username: `sue${round}`, password: 'long enough' })
    const signingIn = hub.call(null, 'session/create', { username: `sue${round}`, password: 'long enough' })
    await Bun.sleep(round * 8)
    await hub.ok(hub.admin, 'users/suspend', { user_id: id })
    const { status } = await signingIn
    const { audit, db } = hub.store
    const entries = await db.select().from(audit).orderBy(audit.id)
    const signedIn = entries.findIndex(entry => entry.action === 'session/create' && entry.username === `sue${round}`)
    const suspended = entries.findIndex(
      entry => entry.action === 'users/suspend' && entry.target === `sue${round} true`,
    )
    expect([status, signedIn < suspended]).toEqual([signedIn === -1 ? 401 : 200, true])
  }
})

test('of two who change a password at once, one does', async () => {
  const { token } = await hub.account('pat')
  const change = (new_password: string) =>
    hub.call(token, 'users/change_password', { password: 'password of a test', new_password })
  const replies = await Promise.all([change('the first one'), change('the second one')])
  expect(replies.map(({ status }) => status).sort()).toEqual([200, 403])
})

test('a token renews no realm token beyond its own domains', async () => {
  const other = (await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug: 'beyond', name: 'B' })).id
  const [near, far] = [await hub.realmToken(hub.admin, hub.realm), await hub.realmToken(hub.admin, hub.realm, other)]
  const permissions = { domains: { realms: [hub.realm] }, access: { tokens: ['write'] } }
  const { token } = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'narrow', permissions })
  expect((await hub.call(token, 'auth/rotate_token', { id: near.id })).status).toBe(200)
  expect(await hub.call(token, 'auth/rotate_token', { id: far.id })).toMatchObject({ status: 403 })
  expect((await hub.call(far.token, 'auth/whoami')).status).toBe(200)
})

test('who has no invitation learns no name by asking for one', async () => {
  const { token } = await hub.ok(hub.admin, 'realms/invite', { realm_id: hub.realm, username: 'ivo' })
  const accept = (username: string) =>
    hub.call(null, 'realms/accept_invite', { token, username, password: 'long enough' })
  // Taken or not: the same.
  for (const username of ['admin', 'nobody']) expect(await accept(username)).toMatchObject({ status: 403 })
  expect((await accept('ivo')).status).toBe(200)
})

test('the next owner of a scope is on no realm’s list', async () => {
  const make = async (slug: string) => (await hub.ok(hub.admin, 'orgs/create', { slug, display_name: slug })).id
  const scope = (org_id: number, slug: string) => hub.ok(hub.admin, 'scopes/create', { org_id, slug })
  const list = async () =>
    (await hub.ok(hub.admin, 'realms/teams', { realm_id: hub.realm })).teams.map((each: { team: string }) => each.team)
  const former = await make('former')
  const { id } = await scope(former, 'passed-on')
  await scope(former, 'passed-on-too')
  await scope(1, 'passed')
  for (const team of ['@passed-on/a', '@passed-on/b', '@passed-on-too/a', '@passed/on']) {
    await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team })
  }
  await hub.ok(hub.admin, 'scopes/delete', { scope_id: id })
  expect(await list()).toEqual(['@admin/t', '@passed-on-too/a', '@passed/on'])
  await hub.ok(hub.admin, 'orgs/delete', { org_id: former })
  expect(await list()).toEqual(['@admin/t', '@passed/on'])
})
