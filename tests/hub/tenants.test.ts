// Packages stay with their tenant: a name means the scope that it meant when it was written, and what one tenant lent
// another ends with the membership that it was lent by.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { runChange } from '../support/sync.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

const file = (text: string) => ({ path: 'team.yml', content_base64: btoa(text) })
const GET = 'phases:\n  - { name: get, agent: http, sources: [{ name: a, url: "https://example.com/" }] }\n'
const plain = (name: string, version = '1.0.0') => file(`name: "${name}"\nversion: ${version}\n${GET}`)
const calling = (name: string, other: string) =>
  file(`name: "${name}"\nversion: 1.0.0\nphases:\n  - { name: sub, type: team, team: "${other}@^1.0.0" }\n`)

/** An org with an owner of its own, a scope of its name, a realm, and a daemon in it. */
async function tenant(slug: string) {
  const { token, id: user_id } = await hub.account(`${slug}-owner`)
  const { id: org_id } = await hub.ok(hub.admin, 'orgs/create', { slug, display_name: slug })
  await hub.ok(hub.admin, 'orgs/add_member', { org_id, username: `${slug}-owner`, role: 'owner' })
  await hub.ok(token, 'orgs/remove_member', { org_id, username: 'admin' })
  const { id: scope_id } = await hub.ok(token, 'scopes/create', { org_id, slug })
  const { id: realm_id } = await hub.ok(token, 'realms/create', { org_id, slug: 'main', name: slug })
  const realmToken = (await hub.realmToken(token, realm_id)).token
  const { daemon_id } = await hub.ok(realmToken, 'daemons/register', { name: slug })
  const lists = async () => (await hub.ok(realmToken, 'daemons/heartbeat', { daemon_id })).teams as string[]
  const downloads = async (team: string) => (await hub.call(realmToken, 'teams/download', { team })).status
  return { token, user_id, org_id, scope_id, realm_id, realmToken, daemon_id, lists, downloads }
}

const publish = (token: string, ...files: object[]) => hub.ok(token, 'teams/publish', { files })

test('the slug of a deleted scope is never given again, to nobody', async () => {
  const [one, two] = [await tenant('given'), await tenant('taker')]
  const { id } = await hub.ok(one.token, 'scopes/create', { org_id: one.org_id, slug: 'passing' })
  await hub.ok(one.token, 'realms/add_team', { realm_id: one.realm_id, team: '@passing/x' })
  await hub.ok(one.token, 'scopes/delete', { scope_id: id })
  for (const { token, org_id } of [one, two]) {
    expect(await hub.call(token, 'scopes/create', { org_id, slug: 'passing' })).toMatchObject({
      status: 409,
      error: { code: 'conflict', message: expect.stringContaining('never given again') },
    })
  }
  expect((await hub.ok(one.token, 'realms/teams', { realm_id: one.realm_id })).teams).toEqual([])
})

test('nor is that of a scope that went with its org', async () => {
  const [gone, two] = [await tenant('goner'), await tenant('heir')]
  await publish(gone.token, plain('@goner/x'))
  const user = await hub.account('user-of-goner')
  await hub.ok(gone.token, 'orgs/add_member', { org_id: gone.org_id, username: 'heir-owner', role: 'member' })
  await publish(two.token, calling('@heir/calls', '@goner/x'))
  await hub.ok(two.token, 'realms/add_team', { realm_id: two.realm_id, team: '@goner/x' })
  await hub.ok(gone.token, 'orgs/delete', { org_id: gone.org_id })
  const again = { org_id: 1, slug: 'goner' }
  expect((await hub.call(hub.admin, 'scopes/create', again)).status).toBe(409)
  expect((await hub.call(user.token, 'teams/get', { team: '@goner/x' })).status).toBe(404)
  expect(await two.lists()).toEqual([])
})

test('who may not read the teams of a scope is not told by a dispatch which of them there are', async () => {
  const [owner, other] = [await tenant('discreet'), await tenant('prying')]
  await publish(owner.token, plain('@discreet/there'))
  const refusal = async ({ token, realm_id }: { token: string; realm_id: string }, team: string) => {
    const { status, error } = await hub.call(token, 'dispatch/run', { realm_id, team })
    return [status, error.message.replace(team, 'TEAM')]
  }
  const unlisted = [409, expect.stringMatching(/^TEAM is not on the team list/)]
  expect(await refusal(owner, '@discreet/nothing')).toEqual([
    409,
    expect.stringMatching(/^there is no published team /),
  ])
  expect(await refusal(owner, '@discreet/there')).toEqual(unlisted)
  expect(await refusal(other, '@discreet/there')).toEqual(unlisted)
  expect(await refusal(other, '@discreet/nothing')).toEqual(await refusal(other, '@discreet/there'))
})

test('a team of another tenant is on the list for as long as who put it there belongs to its scope', async () => {
  const [lender, user] = [await tenant('lender'), await tenant('user')]
  await publish(lender.token, plain('@lender/x'))
  await publish(user.token, plain('@user/own'))
  const lent = { org_id: lender.org_id, username: 'user-owner' }
  await hub.ok(lender.token, 'orgs/add_member', { ...lent, role: 'member' })
  for (const team of ['@lender/x', '@user/own']) {
    await hub.ok(user.token, 'realms/add_team', { realm_id: user.realm_id, team })
  }
  const { realm_id, daemon_id, realmToken } = user
  const dispatch = () => hub.call(user.token, 'dispatch/run', { realm_id, team: '@lender/x' })
  const epoch = crypto.randomUUID()
  const report = async (seq: number) => {
    const run_id = crypto.randomUUID()
    const change = runChange(run_id, { team: '@lender/x', call_path: ['@lender/x'] })
    const batch = { daemon_id, epoch, from_seq: seq, changes: [{ seq, ...change }] }
    return (await hub.ok(realmToken, 'runs/sync', batch)).rejected
  }
  expect(await user.lists()).toEqual(['@lender/x', '@user/own'])
  expect(await user.downloads('@lender/x')).toBe(200)
  expect((await dispatch()).status).toBe(201)
  expect(await report(1)).toEqual([])

  await hub.ok(lender.token, 'orgs/remove_member', lent)
  await publish(lender.token, plain('@lender/x', '1.1.0'))
  expect(await user.lists()).toEqual(['@user/own'])
  expect([await user.downloads('@lender/x'), await user.downloads('@user/own')]).toEqual([404, 200])
  expect(await dispatch()).toMatchObject({
    status: 409,
    error: { message: expect.stringContaining('user-owner') },
  })
  expect(await report(2)).toEqual([{ seq: 2, code: 'forbidden' }])
  expect((await hub.call(user.token, 'realms/add_team', { realm_id, team: '@lender/x' })).status).toBe(404)

  // Who belongs to both may put it there anew.
  const both = await hub.account('both')
  await hub.ok(lender.token, 'scopes/add_member', { scope_id: lender.scope_id, username: 'both' })
  await hub.ok(user.token, 'realms/add_member', { realm_id, username: 'both', role: 'operator' })
  await hub.ok(both.token, 'realms/add_team', { realm_id, team: '@lender/x' })
  expect(await user.downloads('@lender/x')).toBe(200)
  await hub.ok(hub.admin, 'users/suspend', { user_id: both.id })
  expect(await user.downloads('@lender/x')).toBe(404)
})

test('so is a team of another tenant that a package calls, for as long as who published that', async () => {
  const [lender, user] = [await tenant('callee'), await tenant('caller')]
  await publish(lender.token, plain('@callee/x'))
  const lent = { scope_id: lender.scope_id, username: 'caller-owner' }
  await hub.ok(lender.token, 'scopes/add_member', lent)
  await publish(user.token, calling('@caller/calls', '@callee/x'))
  await hub.ok(user.token, 'realms/add_team', { realm_id: user.realm_id, team: '@caller/calls' })
  expect(await user.downloads('@callee/x@^1.0.0')).toBe(200)
  await hub.ok(lender.token, 'scopes/remove_member', lent)
  expect([await user.downloads('@callee/x@^1.0.0'), await user.downloads('@caller/calls')]).toEqual([404, 200])
})

test('whoami tells the role that memberships give: a site admin who is no member has none on a daemon', async () => {
  const { realm_id, token } = await tenant('private')
  const role = async (of: string) => (await hub.ok(of, 'auth/whoami', { realm_id })).realm_role
  expect([await role(token), await role(hub.admin)]).toEqual(['admin', null])
  // On the hub it sees the realm all the same.
  expect(await hub.ok(hub.admin, 'realms/get', { realm_id })).toMatchObject({ my_role: 'admin' })
  await hub.ok(token, 'realms/add_member', { realm_id, username: 'admin', role: 'member' })
  expect(await role(hub.admin)).toBe('member')
})
