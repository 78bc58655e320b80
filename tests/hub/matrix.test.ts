// The authorization matrix: every route × every kind of credential × every level of grant × own, foreign and missing
// object, against the reference in matrix/specification.ts. What is refused changes nothing, and a foreign object is
// refused in the words of a missing one.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mintSecret } from '../../lib/hub/access/token-secrets.ts'
import { ENTITIES } from '../../lib/wire/grants.ts'
import { DECLARED, methodOf } from '../support/declared-calls.ts'
import { folder } from '../support/folder.ts'
import { AGAIN, startTestHub, type TestHub } from '../support/hub.ts'
import { FILE } from '../support/sync.ts'
import {
  type Answer,
  type Asked,
  BOTH,
  expected,
  type Ids,
  LEVELS,
  type Mine,
  namesObject,
  type Object_,
  OPEN,
  PEOPLE,
  type Person,
  REALM,
  type RealmCredential,
  USER,
  type UserRoute,
} from './matrix/specification.ts'
import { contents, makeWorld, type World } from './matrix/world.ts'

/** One call and what it has to answer. */
interface Cell {
  who: string
  token: string | null
  object: Object_
  person: Person
  answer: Answer
}

const OBJECTS: Object_[] = ['own', 'foreign', 'missing']
const NAMES = Object.keys(PEOPLE) as Person[]
const CODES: Record<number, string> = {
  400: 'invalid_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
}

let hub: TestHub
let world: World
let walked = 0
beforeAll(async () => {
  hub = await startTestHub({ env: { CADRE_ARTIFACTS: Bun.pathToFileURL(folder()).href } })
  world = await makeWorld(hub)
})
afterAll(async () => {
  await hub.stop()
  process.stdout.write(`authorization matrix: ${walked} cells\n`)
})

test('the specification has every route', () => {
  const written = [USER, REALM, BOTH, OPEN].flatMap(part => Object.values<Asked>(part)).map(nameOf)
  expect([...new Set(written)].sort()).toEqual(hub.routes.map(nameOf).sort())
  const declared = DECLARED.filter(({ call }) => call.hub).map(({ call }) => `${methodOf(call)} ${call.path}`)
  // What only answers whether the hub is there, and the document of the API, are no calls.
  const apart = /^GET \/(health|ready|openapi(\/json)?)$/
  expect(declared.sort()).toEqual([...new Set(written)].filter(name => !apart.test(name)).sort())
})

test.each(Object.entries(USER))('%s', async (key, route) => {
  const realmTokens = Object.entries(world.realmTokens)
  const cells = [
    ...strangers(objectsOf(route)),
    ...(await userCells(route)),
    ...realmTokens.flatMap(([who, token]) => each(objectsOf(route), `realm token, ${who}`, token, () => 403)),
  ]
  await walk(route, key === 'session/delete' ? cells.filter(cell => !cell.who.startsWith('session')) : cells)
})

test.each(Object.entries(REALM))('%s', async (key, route) => {
  const refusal = key.startsWith('auth/acl') ? 403 : 401
  const users: Cell[] = []
  for (const person of NAMES) {
    const all = Object.fromEntries(ENTITIES.map(entity => [entity, 'admin' as const]))
    const tokens = [world.sessions[person], await world.durable(person, {}), await world.durable(person, all)]
    for (const token of tokens) users.push(...each(OBJECTS, `user token of ${person}`, token, () => refusal, person))
  }
  await walk(route, [...strangers(OBJECTS), ...users, ...realmCells(route.answers, OBJECTS)])
})

test.each(Object.entries(BOTH))('%s', async (_, route) => {
  const objects = objectsOf(route)
  await walk(route, [...strangers(objects), ...(await userCells(route)), ...realmCells(route.answers, objects)])
})

test.each(Object.entries(OPEN))('%s', async (_, { takes, anonymous, ...route }) => {
  const wrong = strangers(['own']).filter(({ token }) => token !== null)
  const realmTokens = Object.entries(world.realmTokens).flatMap(([who, token]) =>
    each(['own'], `realm token, ${who}`, token, () => (takes ? 403 : 'pass')),
  )
  const users = await userCells({ ...route, ask: null, need: null })
  const cells = takes ? wrong : wrong.map(cell => ({ ...cell, answer: 'pass' as const }))
  await walk(route, [...cells, ...realmTokens, ...users])
  await walk(
    { ...route, pass: anonymous },
    each(['own'], 'nobody', null, () => 'pass'),
  )
})

test('signing out ends the session that does it, and no other token', async () => {
  for (const person of NAMES) {
    if (person === 'site') continue
    const { token } = await hub.ok(null, 'session/create', { username: person, password: 'password of a test' })
    await walk(
      { ...USER['session/delete']!, pass: 200 },
      each(['own'], 'session', token, () => 'pass'),
    )
    expect((await hub.call(token, 'auth/whoami')).status).toBe(401)
    expect((await hub.call(world.sessions[person], 'auth/whoami')).status).toBe(200)
  }
})

type Walked = Asked & Partial<UserRoute>

/** Calls every cell: first those that are refused, and looks whether they left a trace; then the others. */
async function walk({ pass, body, ask: grant, ...address }: Walked, cells: Cell[]): Promise<void> {
  const refused = cells.filter(({ answer }) => answer !== 'pass')
  const before = refused.length > 0 ? await contents(hub) : ''
  const words = new Map<string, string>()
  const wrong: string[] = []
  const check = async (cell: Cell) => {
    const ids = world.ids[cell.object]
    const given = body(ids, world.mine[cell.person][cell.object])
    const { status, code, message, headers } = await ask(address, cell.token, given)
    const due = cell.answer === 'pass' ? pass : cell.answer
    walked++
    const told = cell.answer === 'pass' || code === CODES[due]
    const named = status !== 401 || headers.get('www-authenticate') === 'Bearer'
    if (status !== due || !told || !named || !headers.has('x-request-id')) {
      wrong.push(`${cell.who}, ${cell.object} object: ${status} ${code ?? ''} ${message ?? ''} instead of ${due}`)
    }
    if (cell.answer === 404) words.set(`${cell.who} ${cell.object}`, nameless(message ?? '', given))
  }
  await inGroups(refused, 16, check)
  if (refused.length > 0 && (await contents(hub)) !== before) wrong.push('a call that was refused changed something')
  // What changes nothing can be asked at once, too.
  const reads = Object.values(grant ?? {}).every(level => level === 'read')
  const allowed = cells.filter(({ answer }) => answer === 'pass')
  await inGroups(allowed, grant && reads ? 16 : 1, check)
  for (const [place, text] of words) {
    const absent = words.get(place.replace(/ \w+$/, ' missing'))
    if (absent !== undefined && text !== absent) wrong.push(`${place}: “${text}”, but of a missing one “${absent}”`)
  }
  expect(wrong).toEqual([])
}

async function inGroups<T>(items: T[], size: number, work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += size) await Promise.all(items.slice(at, at + size).map(work))
}

interface Told {
  status: number
  headers: Headers
  code?: string
  message?: string
}

async function ask(
  { method, path }: Pick<Asked, 'method' | 'path'>,
  token: string | null,
  body: object,
): Promise<Told> {
  const query = method !== 'POST' ? `?${new URLSearchParams(body as Record<string, string>)}` : ''
  const stop = new AbortController()
  const response = await fetch(`${hub.url}${path}${query}`, {
    method,
    headers: { ...(token !== null && { authorization: `Bearer ${token}` }), 'content-type': 'application/json' },
    ...(method === 'POST' && { body: JSON.stringify(body) }),
    ...(method === 'PUT' && { body: FILE.content }),
    signal: stop.signal,
  })
  const { status } = response
  const headers = response.headers as Headers
  if (status < 400) {
    if (headers.get('content-type') === 'text/event-stream') stop.abort()
    else await response.text()
    return { status, headers }
  }
  const { error } = (await response.json()) as { error: { code: string; message: string } }
  return { status, headers, ...error }
}

const nameOf = ({ method, path }: Pick<Asked, 'method' | 'path'>): string => `${method} ${path}`

const objectsOf = (route: UserRoute): Object_[] => (namesObject(route) ? OBJECTS : ['own'])

function each(
  objects: Object_[],
  who: string,
  token: string | null,
  answer: (object: Object_) => Answer,
  person: Person = 'owner',
): Cell[] {
  return objects.map(object => ({ who, token, object, person, answer: answer(object) }))
}

/** Credentials that are none. */
function strangers(objects: Object_[]): Cell[] {
  const tokens: [string, string | null][] = [
    ['nobody', null],
    ['malformed', `${hub.admin.slice(0, -1)}${hub.admin.endsWith('a') ? 'b' : 'a'}`],
    ['wrong prefix', mintSecret('user').replace('cadre_tok_', 'ghp_')],
    ['an invitation', mintSecret('invitation')],
    ['unknown', mintSecret('user')],
    ['revoked', world.revoked],
    ['expired', world.expired],
  ]
  return tokens.flatMap(([who, token]) => each(objects, who, token, () => 401))
}

/** Sessions, and durable tokens with each level of each entity that opens the route, and with all but these. */
async function userCells(route: UserRoute): Promise<Cell[]> {
  const asked = Object.keys(route.ask ?? {})
  const all = Object.fromEntries(ENTITIES.map(entity => [entity, 'admin' as const]))
  const others = Object.fromEntries(Object.entries(all).filter(([entity]) => !asked.includes(entity)))
  // What a grant says is read from no table.
  const levels = AGAIN ? [] : LEVELS
  const ofOne = asked.flatMap(entity => levels.map(level => ({ [entity]: level })))
  const ofTwo = Object.keys(route.also ?? {}).flatMap(entity =>
    ofOne.map(one => ({ ...one, [entity]: 'write' as const })),
  )
  const grants = [{}, others, ...ofOne, ...ofTwo]
  const cells: Cell[] = []
  for (const person of NAMES) {
    const by = (grant: object) => (object: Object_) => expected(route, person, grant, object)
    cells.push(...each(objectsOf(route), `session of ${person}`, world.sessions[person], by(all), person))
    for (const grant of grants) {
      const who = `${person} with ${JSON.stringify(grant)}`
      cells.push(...each(objectsOf(route), who, await world.durable(person, grant), by(grant), person))
    }
  }
  return cells
}

function realmCells(answers: Record<RealmCredential, Record<Object_, Answer>>, objects: Object_[]): Cell[] {
  return Object.entries(answers).flatMap(([who, by]) =>
    each(objects, `realm token, ${who}`, world.realmTokens[who as RealmCredential], object => by[object]),
  )
}

/** A message without what the body named. */
function nameless(message: string, body: object): string {
  return Object.values(body as Ids | Mine).reduce<string>((text, value) => text.replaceAll(String(value), '…'), message)
}
