// What the lists of the hub contain for each role: what is its own, and nothing of a realm of its org to which it does
// not belong, nor of a foreign org. The matrix compares statuses; this compares contents.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { reviewChange, runChange } from '../support/sync.ts'
import { PEOPLE, type Person } from './matrix/specification.ts'
import { makeWorld, type World } from './matrix/world.ts'

// biome-ignore lint/suspicious/noExplicitAny: rows of every list
type Row = any

let hub: TestHub
let world: World
/** A realm of the own org that has no members: only owners and admins of the org see it. */
let aside: { realm: string; daemon: string; run: string; review: string }
/** What an id of the world belongs to. */
const names = new Map<unknown, string>()

beforeAll(async () => {
  hub = await startTestHub()
  world = await makeWorld(hub)
  aside = await makeRealm()
  for (const tenant of ['own', 'foreign'] as const) {
    for (const [what, id] of Object.entries(world.ids[tenant])) names.set(key(what, id), tenant)
  }
  for (const [what, id] of Object.entries(aside)) names.set(key(what, id), 'aside')
})
afterAll(() => hub.stop())

async function makeRealm(): Promise<typeof aside> {
  const { owner } = world.sessions
  const made = await hub.ok(owner, 'realms/create', { org_id: world.ids.own.org, slug: 'aside', name: 'aside' })
  await hub.ok(owner, 'realms/add_team', { realm_id: made.id, team: world.ids.own.team })
  const { token } = await hub.realmToken(owner, made.id)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'aside' })
  const [run, review] = [crypto.randomUUID(), crypto.randomUUID()]
  const asking = { team: world.ids.own.team, call_path: [world.ids.own.team], state: 'awaiting_input', reason: 'gate' }
  const changes = [
    { seq: 1, ...runChange(run, asking) },
    { seq: 2, ...reviewChange(run, review) },
  ]
  const report = { daemon_id, epoch: crypto.randomUUID(), from_seq: 1, changes }
  expect((await hub.ok(token, 'runs/sync', report)).rejected).toEqual([])
  return { realm: made.id, daemon: daemon_id, run, review }
}

/** Ids of orgs and scopes are small numbers, so each is known by what it is of, too. */
const key = (what: string, id: unknown) => (typeof id === 'number' ? `${what} ${id}` : id)

/** To whom the rows of a list belong, each name once. Fails when the total is not their number. */
async function owners(token: string, list: string, body: object, of: (row: Row) => unknown): Promise<string[]> {
  const { total, ...data } = await hub.ok(token, list, { limit: 100, ...body })
  const rows = Object.values<Row[]>(data).find(Array.isArray)!
  expect([list, total]).toEqual([list, rows.length])
  return [...new Set(rows.map(row => names.get(of(row)) ?? 'site'))].sort()
}

/** Each list, and the id by which a row is known. */
const LISTS: Record<string, (row: Row) => unknown> = {
  'orgs/list': row => key('org', row.id),
  'scopes/list': row => key('scope', row.id),
  'teams/list': row => row.name,
  'realms/list': row => row.id,
  'daemons/list': row => row.realm_id,
  'runs/list': row => row.realm_id,
  'reviews/list': row => row.id,
  'audit/list': row => key('org', row.org_id),
}
/** What an org holds, and what a realm holds. */
const OF_ORG = ['orgs/list', 'scopes/list', 'teams/list']
const OF_REALM = ['realms/list', 'daemons/list', 'runs/list', 'reviews/list']
/** Lists in which the site admin also sees what the first start of a hub made. */
const OF_SITE = ['orgs/list', 'scopes/list', 'realms/list', 'audit/list']

function due(list: string, person: Person): string[] {
  const { org, realm }: { org?: string; realm?: string } = PEOPLE[person]
  const leads = org === 'owner' || org === 'admin'
  const belongs = list === 'audit/list' ? leads : OF_ORG.includes(list) ? org !== undefined : realm !== undefined
  return [
    ...(leads && OF_REALM.includes(list) ? ['aside'] : []),
    ...(person === 'site' ? ['foreign'] : []),
    ...(belongs ? ['own'] : []),
    ...(person === 'site' && OF_SITE.includes(list) ? ['site'] : []),
  ]
}

test.each(Object.keys(LISTS))('%s has what the role of the caller reaches', async list => {
  for (const person of Object.keys(PEOPLE) as Person[]) {
    const found = await owners(world.sessions[person], list, {}, LISTS[list]!)
    expect([person, found]).toEqual([person, due(list, person)])
  }
})

test('a list that is narrowed to an org or a realm has nothing of another', async () => {
  const { own, foreign } = world.ids
  for (const list of ['realms/list', 'scopes/list', 'audit/list']) {
    const of = LISTS[list]!
    const both = list === 'realms/list' ? ['aside', 'own'] : ['own']
    for (const person of ['site', 'owner', 'orgadmin'] as const) {
      expect([list, person, await owners(world.sessions[person], list, { org_id: own.org }, of)]).toEqual([
        list,
        person,
        both,
      ])
    }
    expect([list, await owners(hub.admin, list, { org_id: foreign.org }, of)]).toEqual([list, ['foreign']])
  }
  for (const list of ['realms/list', 'scopes/list']) {
    expect(await owners(world.sessions.owner, list, { org_id: foreign.org }, LISTS[list]!)).toEqual([])
  }
  expect(await owners(hub.admin, 'teams/list', { scope: own.scopeSlug }, LISTS['teams/list']!)).toEqual(['own'])
  for (const list of OF_REALM.slice(1)) {
    for (const [realm_id, name] of [
      [own.realm, 'own'],
      [aside.realm, 'aside'],
    ] as const) {
      expect([list, await owners(world.sessions.owner, list, { realm_id }, LISTS[list]!)]).toEqual([list, [name]])
    }
  }
})

test('the domains of a token narrow lists, and reach nothing that its owner does not', async () => {
  const mint = async (person: Person, domains: object) => {
    const permissions = { domains, access: { orgs: ['admin'], realms: ['read'], daemons: ['read'], runs: ['read'] } }
    return (await hub.ok(world.sessions[person], 'auth/generate_token', { type: 'user', name: 'x', permissions })).token
  }
  const { own, foreign } = world.ids
  const tokens: [string, string[], string[]][] = [
    [await mint('owner', { realms: [aside.realm] }), ['aside'], []],
    [await mint('owner', { realms: [aside.realm, foreign.realm] }), ['aside'], []],
    [await mint('owner', { orgs: [own.org, foreign.org] }), ['aside', 'own'], ['own']],
    [await mint('site', { orgs: [foreign.org], realms: [own.realm] }), ['foreign', 'own'], ['foreign']],
    [await mint('operator', { orgs: [own.org], realms: [aside.realm] }), ['own'], ['own']],
    [await mint('operator', { realms: [aside.realm] }), [], []],
    [await mint('owner', { orgs: '*' }), ['aside', 'own'], ['own']],
    [await mint('owner', { realms: '*' }), ['aside', 'own'], []],
    [await mint('stranger', { orgs: '*', realms: '*' }), [], []],
  ]
  for (const [number, [token, ofRealms, orgs]] of tokens.entries()) {
    for (const list of OF_REALM) {
      expect([number, list, await owners(token, list, {}, LISTS[list]!)]).toEqual([number, list, ofRealms])
    }
    expect([number, await owners(token, 'orgs/list', {}, LISTS['orgs/list']!)]).toEqual([number, orgs])
  }
})

test('the role that a list names is the one the caller has', async () => {
  for (const [person, roles] of Object.entries(PEOPLE) as [Person, Partial<Record<string, string>>][]) {
    for (const kind of ['org', 'scope', 'realm'] as const) {
      const lists = await hub.ok(world.sessions[person], `${kind}s/list`, { limit: 100 })
      const row = lists[`${kind}s`].find(({ id }: Row) => id === world.ids.own[kind])
      expect([person, kind, row?.my_role]).toEqual([person, kind, roles[kind]])
    }
  }
})

test('tokens are listed to their owner, and those of a realm to its admins', async () => {
  const listed = async (person: Person, body: object): Promise<Row[]> => {
    const { tokens, total } = await hub.ok(world.sessions[person], 'auth/get_tokens', { limit: 100, ...body })
    expect([person, total]).toEqual([person, tokens.length])
    return tokens
  }
  for (const person of Object.keys(PEOPLE) as Person[]) {
    const { user } = await hub.ok(world.sessions[person], 'auth/whoami')
    const found = await listed(person, {})
    expect([person, [...new Set(found.map(({ user_id }) => user_id))]]).toEqual([person, [user.id]])
    expect(found.map(({ id }) => id)).toContain(world.mine[person].own.revocable)
  }
  for (const person of ['owner', 'orgadmin', 'site'] as const) {
    const found = await listed(person, { realm_id: aside.realm })
    expect([person, found.map(({ realm_ids }) => realm_ids)]).toEqual([person, [[aside.realm]]])
  }
})
