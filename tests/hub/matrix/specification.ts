// Who may do what, written down again from the specification: for every route the entity, level and role that it takes,
// and what it answers once it is allowed. How a call is sent comes from its declaration; who may make it must not.

import { DECLARED, methodOf } from '../../support/declared-calls.ts'
import { FILE } from '../../support/sync.ts'

export type Level = 'read' | 'write' | 'admin'
export type Object_ = 'own' | 'foreign' | 'missing'
/** The status of a refusal, or that the call is allowed. */
export type Answer = 'pass' | 400 | 401 | 403 | 404

/** What a body names: of the own tenant, of a foreign one, or of none. */
export interface Ids {
  org: number
  scope: number
  scopeSlug: string
  team: string
  realm: string
  daemon: string
  /** Daemons that a call may take away. */
  spare: string
  leaver: string
  run: string
  review: string
  invitation: string
  trigger: string
  firing: string
  username: string
}

/** What is the caller's alone. */
export interface Mine {
  revocable: number
  rotatable: number
  username: string
  password: string
}

type Kind = 'org' | 'scope' | 'realm'
type Need = { [K in Kind]?: string } | 'site' | 'shared' | 'mine' | null
type Body = (ids: Ids, mine: Mine) => object

/** How an allowed call is sent and answered. */
export interface Asked {
  method: string
  path: string
  pass: number
  body: Body
}
/** Where an allowed call is not answered as it declares, and what its body has besides the objects that it requires. */
interface Besides {
  pass?: number
  body?: Body | object
}

export interface UserRoute extends Asked {
  /** Any of these. Null: any user token. */
  ask: Record<string, Level> | null
  /** And any of these besides. */
  also?: Record<string, Level>
  /** The role on the object that the body names; null when it names none. */
  need: Need
}

const route = (ask: UserRoute['ask'], need: Need, body: Body | object = {}, pass?: number) => ({
  ask,
  need,
  body,
  ...(pass && { pass }),
})

const CALLS = new Map(DECLARED.filter(({ call }) => call.hub).map(({ call }) => [call.path, call]))

/** The rows with what the declaration of each call says of it: its method, its success, and which objects it requires. */
function rows<Row>(table: Record<string, Row & Besides>): Record<string, Row & Asked> {
  return Object.fromEntries(Object.entries(table).map(([key, row]) => [key, { ...row, ...askedOf(key, row) }]))
}

function askedOf(key: string, { pass, body }: Besides): Asked {
  const name = key.split(' ', 1)[0]!
  const path = name.startsWith('/') ? name : `/v1/${name}`
  const call = CALLS.get(path)
  const { required = [] }: { required?: string[] } = call ? ('body' in call ? call.body : call.query) : {}
  return {
    method: call ? methodOf(call) : 'GET',
    path,
    pass: pass ?? call?.status ?? 200,
    body: (ids, mine) => ({ ...objectsIn(required, ids), ...(typeof body === 'function' ? body(ids, mine) : body) }),
  }
}

/** Of the objects those that a body must name: `realm` as `realm_id`, `team` as `team`. */
function objectsIn(names: readonly string[], ids: Ids): object {
  return Object.fromEntries(
    Object.entries(ids).flatMap(([of, id]) =>
      [of, `${of}_id`].filter(name => names.includes(name)).map(name => [name, id]),
    ),
  )
}

const WORK = { runs: 'write', dispatch: 'write' } as const
const SEE = { runs: 'read', dispatch: 'read' } as const
const NO_WEBHOOK = '00000000-0000-0000-0000-000000000000'
/** A file that every run of the world has stored. */
const STORED = { sha256: FILE.record.sha256, bytes: FILE.record.bytes }

/**
 * Routes of user tokens. What follows a space tells two bodies of one route apart. Where an allowed call would end what
 * the next one needs, the body asks for what is there already (200) or cannot be (409, 404).
 */
export const USER: Record<string, UserRoute> = rows<Omit<UserRoute, keyof Asked>>({
  'session/delete': route(null, null, {}, 409),
  'auth/generate_token': route({ tokens: 'write' }, null, { type: 'user', name: 'x' }),
  'auth/generate_token for-realm': route({ tokens: 'write' }, { realm: 'member' }, ids => ({
    type: 'realm',
    name: 'x',
    realm_ids: [ids.realm],
  })),
  'auth/get_tokens': route({ tokens: 'read' }, null),
  'auth/get_tokens of-realm': route({ tokens: 'read' }, { realm: 'admin' }, ids => ({ realm_id: ids.realm })),
  'auth/revoke_token': route({ tokens: 'write' }, 'mine', (_, mine) => ({ id: mine.revocable })),
  'auth/rotate_token': route({ tokens: 'write' }, 'mine', (_, mine) => ({ id: mine.rotatable })),
  'users/change_password': route(null, null, { password: 'not it', new_password: 'long enough' }, 403),
  'users/create': route({ users: 'write' }, 'site', { username: 'owner', password: 'long enough' }, 409),
  'users/create site-admin': route(
    { users: 'admin' },
    'site',
    { username: 'owner', password: 'long enough', site_admin: true },
    409,
  ),
  'users/list': route({ users: 'read' }, 'site'),
  'users/update': route({ users: 'write' }, 'site', { user_id: 1 }),
  'users/update to-site-admin': route({ users: 'admin' }, 'site', { user_id: 1, site_admin: true }),
  'users/update of-password': route({ users: 'admin' }, 'site', { user_id: 999_999, password: 'long enough' }, 404),
  'users/update ending-tokens': route({ users: 'admin' }, 'site', { user_id: 999_999, revoke_tokens: true }, 404),
  'users/delete': route({ users: 'admin' }, 'site', { user_id: 1 }, 409),
  'users/suspend': route({ users: 'admin' }, 'site', { user_id: 1 }, 409),
  'users/get': route({ users: 'read' }, 'shared', ids => ({ username: ids.username })),
  'orgs/create': route({ orgs: 'admin' }, 'site', { slug: 'own', display_name: 'x' }, 409),
  'orgs/list': route({ orgs: 'read' }, null),
  'orgs/get_by_id': route({ orgs: 'read' }, { org: 'member' }),
  'orgs/update': route({ orgs: 'write' }, { org: 'admin' }, { display_name: 'x' }),
  'orgs/delete': route({ orgs: 'admin' }, { org: 'owner' }, {}, 409),
  'orgs/add_member': route({ orgs: 'admin' }, { org: 'admin' }, { username: 'settled', role: 'member' }),
  'orgs/remove_member': route({ orgs: 'admin' }, { org: 'admin' }, { username: 'nowhere' }, 404),
  'scopes/create': route({ scopes: 'write' }, { org: 'admin' }, { slug: 'own' }, 409),
  'scopes/list': route({ scopes: 'read' }, null),
  'scopes/get': route({ scopes: 'read' }, { scope: 'org' }),
  'scopes/delete': route({ scopes: 'admin' }, { scope: 'owned' }, {}, 409),
  'scopes/add_member': route({ scopes: 'admin' }, { scope: 'owned' }, { username: 'settled' }),
  'scopes/remove_member': route({ scopes: 'admin' }, { scope: 'owned' }, { username: 'nowhere' }, 404),
  'realms/create': route({ realms: 'write' }, { org: 'admin' }, { slug: 'own', name: 'x' }, 409),
  'realms/list': route({ realms: 'read' }, null),
  'realms/get': route({ realms: 'read' }, { realm: 'member' }),
  'realms/members': route({ realms: 'read' }, { realm: 'member' }),
  'realms/teams': route({ realms: 'read' }, { realm: 'member' }),
  'realms/add_team': route({ realms: 'write' }, { realm: 'operator' }),
  'realms/remove_team': route({ realms: 'write' }, { realm: 'operator' }, { team: '@own/never' }, 404),
  'realms/update': route({ realms: 'write' }, { realm: 'admin' }, { name: 'x' }),
  'realms/update of-quotas': route({ realms: 'write' }, 'site', { quotas: {} }),
  'realms/delete': route({ realms: 'admin' }, { realm: 'admin' }, {}, 409),
  'realms/invite': route({ realms: 'admin' }, { realm: 'admin' }),
  'realms/invitations': route({ realms: 'admin' }, { realm: 'admin' }),
  'realms/revoke_invite': route({ realms: 'admin' }, { realm: 'admin' }, ids => ({ id: ids.invitation })),
  'realms/add_member': route({ realms: 'admin' }, { realm: 'admin' }, { username: 'settled', role: 'member' }),
  'realms/remove_member': route({ realms: 'admin' }, { realm: 'admin' }, { username: 'nowhere' }, 404),
  'realms/add_webhook': route(
    { realms: 'admin' },
    { realm: 'admin' },
    { url: 'http://127.0.0.9/', events: ['run.failed'] },
    400,
  ),
  'realms/webhooks': route({ realms: 'read' }, { realm: 'operator' }),
  'realms/remove_webhook': route({ realms: 'admin' }, { realm: 'admin' }, { id: NO_WEBHOOK }, 404),
  'realms/webhook_take_over': route(
    { realms: 'admin' },
    { realm: 'admin' },
    ids => ({ realm_id: ids.realm, id: NO_WEBHOOK }),
    404,
  ),
  'realms/redeliver_webhook': route({ realms: 'write' }, { realm: 'operator' }, { id: 'msg_none' }, 404),
  'realms/webhook_deliveries': route({ realms: 'read' }, { realm: 'operator' }),
  'daemons/list': route({ daemons: 'read' }, null),
  'daemons/list of-realm': route({ daemons: 'read' }, { realm: 'member' }, ids => ({ realm_id: ids.realm })),
  'daemons/get': route({ daemons: 'read' }, { realm: 'member' }),
  'daemons/approve': route({ daemons: 'write' }, { realm: 'operator' }),
  'daemons/update': route({ daemons: 'write' }, { realm: 'operator' }, { paused: false }),
  'daemons/reconcile': route({ daemons: 'admin' }, { realm: 'admin' }),
  'daemons/remove': route({ daemons: 'admin' }, { realm: 'admin' }, ids => ({ daemon_id: ids.spare })),
  'dispatch/run': route(WORK, { realm: 'operator' }, ids => ({ realm_id: ids.realm, team: '@own/never' }), 409),
  'dispatch/run on-daemon': route(
    WORK,
    { realm: 'operator' },
    ids => ({ daemon_id: ids.daemon, team: '@own/never' }),
    409,
  ),
  'dispatch/cancel': route(WORK, { realm: 'operator' }),
  'dispatch/resume': route(WORK, { realm: 'operator' }, {}, 409),
  'dispatch/move': route(WORK, { realm: 'operator' }, {}, 409),
  'dispatch/queue': route(SEE, { realm: 'member' }),
  'dispatch/keys/get': route({ dispatch: 'read' }, { org: 'member' }, ids => ({ org_id: String(ids.org) })),
  'dispatch/keys/rotate': route({ dispatch: 'admin', orgs: 'admin' }, { org: 'admin' }),
  'dispatch/tokens/mint': route({ runs: 'read' }, { realm: 'member' }, { action: 'access' }),
  'dispatch/tokens/mint to-execute': route(WORK, { realm: 'operator' }, { action: 'execute' }),
  'dispatch/tokens/mint to-cancel': route(WORK, { realm: 'operator' }, { action: 'cancel' }),
  'teams/publish': route(
    { teams: 'write' },
    { scope: 'member' },
    ids => ({ scope: ids.scopeSlug, files: [{ path: 'team.yml', content_base64: '' }] }),
    400,
  ),
  'teams/list': route({ teams: 'read' }, null),
  'teams/list of-scope': route({ teams: 'read' }, { scope: 'org' }, ids => ({ scope: ids.scopeSlug })),
  'teams/get': route({ teams: 'read' }, { scope: 'org' }),
  'teams/versions': route({ teams: 'read' }, { scope: 'org' }),
  'teams/reach': route({ teams: 'read' }, { scope: 'org' }),
  'teams/yank': route({ teams: 'write' }, { scope: 'member' }, ids => ({ team: `${ids.team}@0.1.0` })),
  'runs/list': route(SEE, null),
  'runs/list of-realm': route(SEE, { realm: 'member' }, ids => ({ realm_id: ids.realm })),
  'runs/teams': route(SEE, null),
  'runs/teams of-realm': route(SEE, { realm: 'member' }, ids => ({ realm_id: ids.realm })),
  'runs/stats': route({ runs: 'read' }, null, ids => ({ team: ids.team })),
  'runs/stats of-realm': route({ runs: 'read' }, { realm: 'member' }, ids => ({ realm_id: ids.realm, team: ids.team })),
  'teams/history': route({ runs: 'read' }, null, ids => ({ team: ids.team })),
  'teams/history of-realm': route({ runs: 'read' }, { realm: 'member' }, ids => ({
    realm_id: ids.realm,
    team: ids.team,
  })),
  'runs/get': route(SEE, { realm: 'member' }),
  'runs/tree': route(SEE, { realm: 'member' }),
  'runs/why': route(SEE, { realm: 'member' }),
  'runs/phases': route(SEE, { realm: 'member' }),
  'runs/logs': route(SEE, { realm: 'member' }),
  'runs/artifacts': route(SEE, { realm: 'member' }),
  'artifacts/get': route(SEE, { realm: 'member' }, { path: FILE.record.path }),
  'runs/log': route(SEE, { realm: 'member' }),
  'runs/stream': route(SEE, { realm: 'member' }),
  'reviews/list': route(SEE, null),
  'reviews/list of-realm': route(SEE, { realm: 'member' }, ids => ({ realm_id: ids.realm })),
  'reviews/decide': route(WORK, { realm: 'operator' }, { decision: 'approve' }),
  ...ofTriggers({ triggers: 'write' }, WORK, 'operator', {
    'triggers/add': [ids => ({ name: 'yearly', kind: 'schedule', cron: '@yearly', team: ids.team }), 409],
    'triggers/update': [() => ({})],
    'triggers/update taking-over': [() => ({ owner: 'me' })],
    'triggers/enable': [byTrigger],
    'triggers/resume': [byTrigger],
    'triggers/run_now': [byTrigger],
    'triggers/refire': [() => ({}), 409],
    'triggers/backfill': [ids => ({ ...byTrigger(ids), from: 0, to: 1 })],
  }),
  ...ofTriggers({ triggers: 'write' }, undefined, 'operator', {
    'triggers/remove': [ids => ({ realm_id: ids.realm, name: 'never' }), 404],
    'triggers/pause': [byTrigger],
    'triggers/disable': [byTrigger],
  }),
  ...ofTriggers({ triggers: 'read' }, undefined, 'member', {
    'triggers/get': [byTrigger],
    'triggers/get by-name': [ids => ({ realm_id: ids.realm, name: 'yearly' })],
    'triggers/list of-realm': [ids => ({ realm_id: ids.realm })],
    'triggers/preview': [byTrigger],
    'triggers/firings': [byTrigger],
  }),
  'triggers/list': route({ triggers: 'read' }, null),
  '/metrics': route({ realms: 'read' }, 'site'),
  'audit/list': route({ orgs: 'admin' }, null),
  'audit/list of-org': route({ orgs: 'admin' }, { org: 'admin' }, ids => ({ org_id: ids.org })),
  'audit/export': route({ orgs: 'admin' }, null),
  'audit/export of-org': route({ orgs: 'admin' }, { org: 'admin' }, ids => ({ org_id: ids.org })),
})

function byTrigger(ids: Ids) {
  return { trigger_id: ids.trigger }
}

/** Routes of triggers with the same grant and role: the body of each, and the status if it is another than declared. */
function ofTriggers(
  ask: Record<string, Level>,
  also: Record<string, Level> | undefined,
  realm: string,
  routes: Record<string, [body: Body, pass?: number]>,
) {
  return Object.fromEntries(
    Object.entries(routes).map(([name, [body, pass]]) => [name, { ...route(ask, { realm }, body, pass), also }]),
  )
}

export type RealmCredential = 'same' | 'another' | 'both'
type RealmAnswers = Record<RealmCredential, Record<Object_, Answer>>

/** What a realm token gets that reaches its realms only. */
function within(outside: Answer): RealmAnswers {
  return {
    same: { own: 'pass', foreign: outside, missing: outside },
    another: { own: outside, foreign: 'pass', missing: outside },
    both: { own: 'pass', foreign: 'pass', missing: outside },
  }
}

/** What a realm token gets of a daemon: only that which registered it is heard. */
const BOUND: RealmAnswers = {
  same: { own: 'pass', foreign: 403, missing: 404 },
  another: { own: 403, foreign: 'pass', missing: 404 },
  both: { own: 403, foreign: 403, missing: 404 },
}

/** Routes of realm tokens: what the one that registered `daemon`, one of elsewhere, and one of both realms get. */
export const REALM = rows<{ answers: RealmAnswers }>({
  'daemons/register': { body: ids => ({ name: 'x', realm_id: ids.realm }), answers: within(403) },
  'daemons/heartbeat': { answers: BOUND },
  'daemons/poll': { answers: BOUND },
  'daemons/ack': { pass: 404, body: { job_id: 'none', lease_id: 'none', status: 'done' }, answers: BOUND },
  'daemons/deregister': { body: ids => ({ daemon_id: ids.leaver }), answers: BOUND },
  'runs/sync': { body: ids => ({ epoch: ids.daemon, from_seq: 1, changes: [] }), answers: BOUND },
  'artifacts/offer': { body: STORED, answers: BOUND },
  'artifacts/keep': { body: STORED, answers: BOUND },
  'artifacts/put': { body: STORED, answers: BOUND },
  'auth/acl': { body: ids => ({ realm_id: ids.realm }), answers: within(403) },
  'auth/acl of-daemon': {
    answers: {
      same: { own: 'pass', foreign: 403, missing: 404 },
      another: { own: 403, foreign: 'pass', missing: 404 },
      // Neither the body nor the token says which of its realms.
      both: { own: 400, foreign: 400, missing: 404 },
    },
  },
})

/** Routes of either kind. */
export const BOTH = rows({
  'auth/whoami': { ...route(null, null), answers: within('pass') },
  'teams/download': { ...route({ teams: 'read' }, { scope: 'org' }), answers: within(404) },
})

/** No credential is asked; where one is taken, a wrong one is still 401. */
export const OPEN = rows<{ takes: boolean; anonymous: number }>({
  'session/create': {
    body: (_, mine) => ({ username: mine.username, password: mine.password }),
    takes: false,
    anonymous: 200,
  },
  'realms/accept_invite': { pass: 404, body: { token: 'none' }, takes: true, anonymous: 400 },
  '/health': { takes: false, anonymous: 200 },
  '/ready': { takes: false, anonymous: 200 },
  '/openapi': { takes: false, anonymous: 200 },
  '/openapi/json': { takes: false, anonymous: 200 },
})

/** The users of the matrix, with their roles in the own tenant. None of them has one in the foreign tenant. */
export const PEOPLE = {
  owner: { org: 'owner', scope: 'owned', realm: 'admin' },
  orgadmin: { org: 'admin', scope: 'owned', realm: 'admin' },
  operator: { org: 'member', scope: 'member', realm: 'operator' },
  member: { org: 'member', scope: 'org', realm: 'member' },
  stranger: {},
  site: { org: 'owner', scope: 'owned', realm: 'admin' },
} as const
export type Person = keyof typeof PEOPLE

const ORDER: Record<Kind, string[]> = {
  org: ['member', 'admin', 'owner'],
  scope: ['org', 'member', 'owned'],
  realm: ['member', 'operator', 'admin'],
}
export const LEVELS: Level[] = ['read', 'write', 'admin']

/** What a user token gets: its grant first, before any look-up; then the live role of its owner on the object. */
export function expected(
  { ask, also, need }: UserRoute,
  person: Person,
  grant: Partial<Record<string, Level>>,
  object: Object_,
): Answer {
  const grants = (required: Record<string, Level>) =>
    Object.entries(required).some(([entity, level]) => {
      const held = grant[entity]
      return held !== undefined && LEVELS.indexOf(held) >= LEVELS.indexOf(level)
    })
  if ((ask && !grants(ask)) || (also && !grants(also))) return 403
  if (need === null) return 'pass'
  if (need === 'site') return person === 'site' ? 'pass' : 403
  if (object === 'missing') return 404
  if (need === 'mine') return object === 'own' ? 'pass' : 404
  if (need === 'shared') return person === 'site' || (object === 'own' && person !== 'stranger') ? 'pass' : 404
  const [[kind, least]] = Object.entries(need) as [[Kind, string]]
  const roles: { [K in Kind]?: string } = object === 'own' || person === 'site' ? PEOPLE[person] : {}
  const role = roles[kind]
  if (role === undefined) return 404
  return ORDER[kind].indexOf(role) >= ORDER[kind].indexOf(least) ? 'pass' : 403
}

/** Whether the body names an object, so that foreign and missing ones are worth a call. */
export const namesObject = ({ need }: UserRoute): boolean => need !== null && need !== 'site'
