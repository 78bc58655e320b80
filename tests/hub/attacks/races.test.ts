// Attacks by doing two things at once: each pair is sent many times at the same moment, and what must happen once does.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestHub, type TestHub } from '../../support/hub.ts'

const ROUNDS = 6

let hub: TestHub
let org: number
beforeAll(async () => {
  hub = await startTestHub()
  org = (await hub.ok(hub.admin, 'orgs/create', { slug: 'raced', display_name: 'Raced' })).id
  await publish('@admin/t')
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/t' })
})
afterAll(async () => {
  expect((await hub.log()).filter(line => line.includes('request failed'))).toEqual([])
  await hub.stop()
})

const text = (name: string, run = 'true') =>
  `name: "${name}"\nversion: 1.0.0\nphases: [{ name: a, agent: exec, commands: [{ name: c, run: "${run}" }] }]\n`
const publish = (name: string, run?: string) =>
  hub.call(hub.admin, 'teams/publish', { files: [{ path: 'team.yml', content_base64: btoa(text(name, run)) }] })

type Call = Promise<{ status: number }>
const statuses = async (calls: Call[]) => (await Promise.all(calls)).map(({ status }) => status).sort()
const rounds = Array.from({ length: ROUNDS }, (_, round) => round)
/** Several of the same at once. */
const times = <T>(count: number, work: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => work(n))

let made = 0
const fresh = () => hub.account(`racer${++made}`)
const named = async () => ({ ...(await fresh()), username: `racer${made}` })
const daemon = async (name: string) => {
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name })
  return { token, daemon_id }
}
const dispatch = async () => (await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/t' })).run_id
const newRealm = async (slug: string) =>
  (await hub.ok(hub.admin, 'realms/create', { org_id: org, slug, name: slug })).id

test('an invitation admits one of those who come at once', async () => {
  for (const round of rounds) {
    const { id, token } = await hub.ok(hub.admin, 'realms/invite', { realm_id: hub.realm })
    const people = await Promise.all(times(4, fresh))
    const replies = await statuses(people.map(person => hub.call(person.token, 'realms/accept_invite', { token })))
    expect([round, replies[0], replies.filter(status => status === 200).length]).toEqual([round, 200, 1])
    const { invitations } = await hub.ok(hub.admin, 'realms/invitations', { realm_id: hub.realm })
    expect(invitations.some((each: { id: number }) => each.id === id)).toBe(false)
  }
}, 60_000)

test('an invitation that makes accounts makes one', async () => {
  for (const round of rounds) {
    const { token } = await hub.ok(hub.admin, 'realms/invite', { realm_id: hub.realm })
    const accept = (n: number) =>
      hub.call(null, 'realms/accept_invite', { token, username: `made${round}-${n}`, password: 'long enough' })
    expect((await statuses(times(3, accept))).filter(status => status === 200)).toHaveLength(1)
    const { users } = await hub.ok(hub.admin, 'users/list', { limit: 100 })
    const names = users.map((each: { username: string }) => each.username)
    expect(names.filter((name: string) => name.startsWith(`made${round}-`))).toHaveLength(1)
  }
}, 60_000)

test('an invitation that is revoked while it is accepted admits or is dead, and the record says which', async () => {
  for (const round of rounds) {
    const realm_id = await newRealm(`revoked${round}`)
    const { id, token } = await hub.ok(hub.admin, 'realms/invite', { realm_id })
    const person = await fresh()
    const [accepted, revoked] = await Promise.all([
      hub.call(person.token, 'realms/accept_invite', { token }),
      hub.call(hub.admin, 'realms/revoke_invite', { id }),
    ])
    const { members } = await hub.ok(hub.admin, 'realms/members', { realm_id })
    const isIn = members.some((each: { username: string }) => each.username === `racer${made}`)
    expect([round, isIn]).toEqual([round, accepted.status === 200])
    expect([accepted.status, revoked.status].filter(status => status === 200).length).toBeGreaterThanOrEqual(1)
    expect((await hub.call((await fresh()).token, 'realms/accept_invite', { token })).status).not.toBe(200)
  }
}, 60_000)

test('of owners who remove each other, of admins who demote each other, one stays', async () => {
  for (const round of rounds) {
    const { id } = await hub.ok(hub.admin, 'orgs/create', { slug: `owned${round}`, display_name: 'Owned' })
    const [a, b] = [await fresh(), await fresh()]
    const [nameA, nameB] = [`racer${made - 1}`, `racer${made}`]
    for (const username of [nameA, nameB]) {
      await hub.ok(hub.admin, 'orgs/add_member', { org_id: id, username, role: 'owner' })
    }
    await hub.ok(hub.admin, 'orgs/remove_member', { org_id: id, username: 'admin' })
    await Promise.all([
      hub.call(a.token, 'orgs/remove_member', { org_id: id, username: nameB }),
      hub.call(b.token, 'orgs/add_member', { org_id: id, username: nameA, role: 'member' }),
      hub.call(a.token, 'orgs/remove_member', { org_id: id, username: nameA }),
      hub.call(b.token, 'orgs/remove_member', { org_id: id, username: nameB }),
    ])
    const { orgMembers } = hub.store
    const rows = await hub.store.db.select().from(orgMembers)
    const owners = rows.filter(row => row.org_id === id && row.role === 'owner')
    expect([round, owners.length > 0]).toEqual([round, true])
  }
}, 60_000)

/** Two leaders of a place with nobody beside them, and what each does to the other. */
interface Duel {
  calls: (() => Call)[]
  /** How many leaders there are now. */
  leaders(): Promise<number>
}

const leaderRole = { orgs: 'owner', scopes: 'owned', realms: 'admin' } as const

async function duelOver(what: keyof typeof leaderRole, made: { id: number | string }): Promise<Duel> {
  const place = { [`${what.slice(0, -1)}_id`]: made.id }
  const [a, b] = [await named(), await named()]
  for (const { username } of [a, b]) {
    await hub.ok(hub.admin, `${what}/add_member`, { ...place, username, role: leaderRole[what] })
  }
  const { orgMembers, scopeMembers, realmMembers } = hub.store
  const table = { orgs: orgMembers, scopes: scopeMembers, realms: realmMembers }[what] as typeof orgMembers
  const rows = async () =>
    (await hub.store.db.select().from(table)).filter(
      row => Object.entries(place).every(([key, id]) => row[key as 'org_id'] === id) && row.role === leaderRole[what],
    )
  if ((await rows()).length > 2) await hub.ok(hub.admin, `${what}/remove_member`, { ...place, username: 'admin' })
  const demote = { ...place, username: a.username, role: 'member' }
  return {
    calls: [
      () => hub.call(a.token, `${what}/remove_member`, { ...place, username: b.username }),
      () => hub.call(b.token, `${what}/add_member`, demote),
    ],
    leaders: async () => (await rows()).length,
  }
}

async function duelOverSite(round: number): Promise<Duel> {
  const [a, b] = [await named(), await named()]
  for (const { id } of [a, b]) await hub.ok(hub.admin, 'users/update', { user_id: id, site_admin: true })
  const demote = { user_id: a.id, site_admin: false }
  const others: [string, object][] = [
    ['users/update', { user_id: b.id, site_admin: false }],
    ['users/suspend', { user_id: b.id }],
    ['users/delete', { user_id: b.id }],
  ]
  const { users } = hub.store
  return {
    calls: [() => hub.call(a.token, ...others[round % 3]!), () => hub.call(b.token, 'users/update', demote)],
    async leaders() {
      const rows = await hub.store.db.select().from(users)
      return rows.filter(row => [a.id, b.id].includes(row.id) && row.site_admin && !row.suspended_at && !row.deleted_at)
        .length
    },
  }
}

const duels: [what: string, make: (slug: string, round: number) => Promise<Duel>][] = [
  ['an org', async slug => duelOver('orgs', await hub.ok(hub.admin, 'orgs/create', { slug, display_name: slug }))],
  ['a scope', async slug => duelOver('scopes', await hub.ok(hub.admin, 'scopes/create', { org_id: org, slug }))],
  ['a realm', async slug => duelOver('realms', { id: await newRealm(slug) })],
  ['the site', (_, round) => duelOverSite(round)],
]

test.each(duels)(
  'of two leaders of %s who depose each other, one succeeds and stays, and the other is refused',
  async (_, make) => {
    for (const round of rounds) {
      const { calls, leaders } = await make(`duel${round}`, round)
      expect(await leaders()).toBe(2)
      const [first, second] = await statuses((round % 2 ? calls : calls.toReversed()).map(call => call()))
      expect([round, first, [401, 403, 404, 409].includes(second!), second]).toEqual([round, 200, true, second])
      expect([round, await leaders()]).toEqual([round, 1])
    }
  },
  60_000,
)

test('a version is published once, whatever else is sent under its name', async () => {
  for (const round of rounds) {
    const name = `@admin/raced${round}`
    expect(await statuses(times(3, n => publish(name, `echo ${n}`)))).toEqual([200, 409, 409])
    expect((await hub.ok(hub.admin, 'teams/versions', { team: name })).total).toBe(1)
  }
}, 60_000)

test('nothing is published in a scope that is deleted meanwhile', async () => {
  for (const round of rounds) {
    const slug = `going${round}`
    const { id } = await hub.ok(hub.admin, 'scopes/create', { org_id: org, slug })
    await Promise.all([publish(`@${slug}/t`), hub.call(hub.admin, 'scopes/delete', { scope_id: id })])
    const { packages, scopes } = hub.store
    const known = (await hub.store.db.select().from(scopes)).map(row => row.id)
    const orphans = (await hub.store.db.select().from(packages)).filter(row => !known.includes(row.scope_id))
    expect(orphans).toEqual([])
  }
}, 60_000)

test('a job goes to one of those who poll at once', async () => {
  const daemons = await Promise.all(times(3, n => daemon(`poller${n}`)))
  for (const round of rounds) {
    const run_id = await dispatch()
    const polls = daemons.flatMap(({ token, daemon_id }) =>
      times(2, () => hub.ok(token, 'daemons/poll', { daemon_id, slots: 5, wait_ms: 0 })),
    )
    const jobs = (await Promise.all(polls)).flatMap(({ jobs }) => jobs)
    expect([round, jobs.map(job => job.run_id)]).toEqual([round, [run_id]])
    const [{ job_id, lease_id }] = jobs
    // Whoever does not have it may not take it, with its lease or without.
    const acks = daemons.map(({ token, daemon_id }) =>
      hub.call(token, 'daemons/ack', { daemon_id, job_id, lease_id, status: 'accepted' }),
    )
    expect((await statuses(acks)).filter(status => status === 200)).toHaveLength(1)
  }
}, 60_000)

test('a job whose lease is over is accepted by one daemon, the old one or the new', async () => {
  const [one, other] = await Promise.all([daemon('late'), daemon('next')])
  for (const round of rounds) {
    const run_id = await dispatch()
    const poll = ({ token, daemon_id }: typeof one) =>
      hub.ok(token, 'daemons/poll', { daemon_id, slots: 5, wait_ms: 0 })
    const [late] = (await poll(one)).jobs
    await hub.skew(61_000 * (round + 1))
    const ack = ({ token, daemon_id }: typeof one, { job_id, lease_id }: typeof late) =>
      hub.call(token, 'daemons/ack', { daemon_id, job_id, lease_id, status: 'accepted' })
    const [first, second] = await Promise.all([
      ack(one, late),
      poll(other).then(({ jobs: [job] }) => (job ? ack(other, job) : { status: 0 })),
    ])
    const accepted = [first.status, second.status].filter(status => status === 200)
    expect([round, accepted]).toEqual([round, [200]])
    expect((await hub.ok(hub.admin, 'runs/get', { run_id })).daemon_id).toBe(
      first.status === 200 ? one.daemon_id : other.daemon_id,
    )
  }
  await hub.skew(0)
}, 60_000)

test('a run that is asked for twice with one key is one run', async () => {
  for (const round of rounds) {
    const order = { realm_id: hub.realm, team: '@admin/t', idempotency_key: `key${round}` }
    const runs = await Promise.all(times(4, () => hub.ok(hub.admin, 'dispatch/run', order)))
    expect(new Set(runs.map(({ run_id }) => run_id)).size).toBe(1)
  }
}, 60_000)

test('a token makes nothing after its revocation, also with calls that were on their way', async () => {
  for (const round of rounds) {
    const { id, token } = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: `maker${round}` })
    const make = (n: number) =>
      hub.call(token, 'users/create', { username: `made-${round}-${n}`, password: 'long enough' })
    const before = Array.from({ length: 8 }, (_, n) => make(n))
    await Bun.sleep(round * 3)
    const revoke = hub.ok(hub.admin, 'auth/revoke_token', { id })
    const meanwhile = Array.from({ length: 8 }, (_, n) => make(8 + n))
    await revoke
    for (const status of await statuses([...before, ...meanwhile])) expect([200, 401]).toContain(status)
    const { audit, db } = hub.store
    const entries = await db.select().from(audit).orderBy(audit.id)
    const end = entries.findIndex(entry => entry.action === 'auth/revoke_token' && entry.target === String(id))
    expect([round, end >= 0, entries.slice(end).filter(entry => entry.token_id === id)]).toEqual([round, true, []])
  }
}, 60_000)

test('what begins after a token is revoked is refused', async () => {
  for (const round of rounds) {
    const permissions = { domains: { realms: [hub.realm] }, access: { realms: ['read'], tokens: ['write'] } }
    const { id, token } = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'raced', permissions })
    const use = () => hub.call(token, 'realms/get', { realm_id: hub.realm })
    const before = times(5, use)
    const revoke = hub.call(hub.admin, 'auth/revoke_token', { id })
    const meanwhile = times(5, use)
    expect((await revoke).status).toBe(200)
    const after = await statuses(times(5, use))
    expect([round, after]).toEqual([round, [401, 401, 401, 401, 401]])
    for (const status of await statuses([...before, ...meanwhile])) expect([200, 401]).toContain(status)
  }
}, 60_000)

test('of two who renew a token at once, the last secret alone is valid', async () => {
  for (const round of rounds) {
    const { id, token } = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: `renewed${round}` })
    const renewed = await Promise.all(times(3, () => hub.ok(hub.admin, 'auth/rotate_token', { id })))
    const secrets = [token, ...renewed.map(each => each.token)]
    const valid = await statuses(secrets.map(secret => hub.call(secret, 'auth/whoami')))
    expect([round, valid.filter(status => status === 200).length]).toEqual([round, 1])
  }
}, 60_000)

test('a member who is removed while calling is out when the removal is answered', async () => {
  for (const round of rounds) {
    const person = await fresh()
    const username = `racer${made}`
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username, role: 'operator' })
    const order = { realm_id: hub.realm, team: '@admin/t' }
    const meanwhile = times(4, () => hub.call(person.token, 'dispatch/run', order))
    await hub.ok(hub.admin, 'realms/remove_member', { realm_id: hub.realm, username })
    expect([round, (await hub.call(person.token, 'dispatch/run', order)).status]).toEqual([round, 404])
    for (const status of await statuses(meanwhile)) expect([201, 404]).toContain(status)
  }
}, 60_000)

test('an account that is deleted while it makes tokens leaves none that is valid', async () => {
  for (const round of rounds) {
    const person = await fresh()
    const minting = times(4, n => hub.call(person.token, 'auth/generate_token', { type: 'user', name: `t${n}` }))
    await hub.ok(hub.admin, 'users/delete', { user_id: person.id })
    const tokens = (await Promise.all(minting)).flatMap(({ data }) => (data?.token ? [data.token] : []))
    const valid = await statuses([person.token, ...tokens].map(token => hub.call(token, 'auth/whoami')))
    expect([round, new Set(valid)]).toEqual([round, new Set([401])])
  }
}, 60_000)
