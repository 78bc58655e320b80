// Who may do what, written down again from the specification: for every route the entity, level and role that it takes,
// and what it answers once it is allowed. Knows nothing of the hub's own declarations.

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

export interface UserRoute {
  /** Any of these. Null: any user token. */
  ask: Record<string, Level> | null
  /** The role on the object that the body names; null when it names none. */
  need: Need
  /** Of an allowed call. */
  pass: number
  body: Body
}

const route = (ask: UserRoute['ask'], need: Need, pass: number, body: Body): UserRoute => ({ ask, need, pass, body })

const WORK = { runs: 'write', dispatch: 'write' } as const
const SEE = { runs: 'read', dispatch: 'read' } as const
const NO_WEBHOOK = '00000000-0000-0000-0000-000000000000'
/** A file that every run of the world has stored. */
const offered = (ids: Ids) => ({
  daemon_id: ids.daemon,
  run_id: ids.run,
  sha256: FILE.record.sha256,
  bytes: FILE.record.bytes,
})
const nothing = () => ({})
const realm = (ids: Ids) => ({ realm_id: ids.realm })
const org = (ids: Ids) => ({ org_id: ids.org })
const scope = (ids: Ids) => ({ scope_id: ids.scope })
const run = (ids: Ids) => ({ run_id: ids.run })
const team = (ids: Ids) => ({ team: ids.team })

/**
 * Routes of user tokens. What follows a space tells two bodies of one route apart. Where an allowed call would end what
 * the next one needs, the body asks for what is there already (200) or cannot be (409, 404).
 */
export const USER: Record<string, UserRoute> = {
  'session/delete': route(null, null, 409, nothing),
  'auth/generate_token': route({ tokens: 'write' }, null, 201, () => ({ type: 'user', name: 'x' })),
  'auth/generate_token for-realm': route({ tokens: 'write' }, { realm: 'member' }, 201, ids => ({
    type: 'realm',
    name: 'x',
    realm_ids: [ids.realm],
  })),
  'auth/get_tokens': route({ tokens: 'read' }, null, 200, nothing),
  'auth/get_tokens of-realm': route({ tokens: 'read' }, { realm: 'admin' }, 200, realm),
  'auth/revoke_token': route({ tokens: 'write' }, 'mine', 200, (_, mine) => ({ id: mine.revocable })),
  'auth/rotate_token': route({ tokens: 'write' }, 'mine', 200, (_, mine) => ({ id: mine.rotatable })),
  'users/change_password': route(null, null, 403, () => ({ password: 'not it', new_password: 'long enough' })),
  'users/create': route({ users: 'write' }, 'site', 409, () => ({ username: 'owner', password: 'long enough' })),
  'users/create site-admin': route({ users: 'admin' }, 'site', 409, () => ({
    username: 'owner',
    password: 'long enough',
    site_admin: true,
  })),
  'users/list': route({ users: 'read' }, 'site', 200, nothing),
  'users/update': route({ users: 'write' }, 'site', 200, () => ({ user_id: 1 })),
  'users/update to-site-admin': route({ users: 'admin' }, 'site', 200, () => ({ user_id: 1, site_admin: true })),
  'users/update of-password': route({ users: 'admin' }, 'site', 404, () => ({
    user_id: 999_999,
    password: 'long enough',
  })),
  'users/update ending-tokens': route({ users: 'admin' }, 'site', 404, () => ({
    user_id: 999_999,
    revoke_tokens: true,
  })),
  'users/delete': route({ users: 'admin' }, 'site', 409, () => ({ user_id: 1 })),
  'users/suspend': route({ users: 'admin' }, 'site', 409, () => ({ user_id: 1 })),
  'users/get': route({ users: 'read' }, 'shared', 200, ids => ({ username: ids.username })),
  'orgs/create': route({ orgs: 'admin' }, 'site', 409, () => ({ slug: 'own', display_name: 'x' })),
  'orgs/list': route({ orgs: 'read' }, null, 200, nothing),
  'orgs/get_by_id': route({ orgs: 'read' }, { org: 'member' }, 200, org),
  'orgs/update': route({ orgs: 'write' }, { org: 'admin' }, 200, ids => ({ ...org(ids), display_name: 'x' })),
  'orgs/delete': route({ orgs: 'admin' }, { org: 'owner' }, 409, org),
  'orgs/add_member': route({ orgs: 'admin' }, { org: 'admin' }, 200, ids => ({
    ...org(ids),
    username: 'settled',
    role: 'member',
  })),
  'orgs/remove_member': route({ orgs: 'admin' }, { org: 'admin' }, 404, ids => ({ ...org(ids), username: 'nowhere' })),
  'scopes/create': route({ scopes: 'write' }, { org: 'admin' }, 409, ids => ({ ...org(ids), slug: 'own' })),
  'scopes/list': route({ scopes: 'read' }, null, 200, nothing),
  'scopes/get': route({ scopes: 'read' }, { scope: 'org' }, 200, scope),
  'scopes/delete': route({ scopes: 'admin' }, { scope: 'owned' }, 409, scope),
  'scopes/add_member': route({ scopes: 'admin' }, { scope: 'owned' }, 200, ids => ({
    ...scope(ids),
    username: 'settled',
  })),
  'scopes/remove_member': route({ scopes: 'admin' }, { scope: 'owned' }, 404, ids => ({
    ...scope(ids),
    username: 'nowhere',
  })),
  'realms/create': route({ realms: 'write' }, { org: 'admin' }, 409, ids => ({ ...org(ids), slug: 'own', name: 'x' })),
  'realms/list': route({ realms: 'read' }, null, 200, nothing),
  'realms/get': route({ realms: 'read' }, { realm: 'member' }, 200, realm),
  'realms/members': route({ realms: 'read' }, { realm: 'member' }, 200, realm),
  'realms/teams': route({ realms: 'read' }, { realm: 'member' }, 200, realm),
  'realms/add_team': route({ realms: 'write' }, { realm: 'operator' }, 200, ids => ({ ...realm(ids), ...team(ids) })),
  'realms/remove_team': route({ realms: 'write' }, { realm: 'operator' }, 404, ids => ({
    ...realm(ids),
    team: '@own/never',
  })),
  'realms/update': route({ realms: 'write' }, { realm: 'admin' }, 200, ids => ({ ...realm(ids), name: 'x' })),
  'realms/update of-quotas': route({ realms: 'write' }, 'site', 200, ids => ({ ...realm(ids), quotas: {} })),
  'realms/delete': route({ realms: 'admin' }, { realm: 'admin' }, 409, realm),
  'realms/invite': route({ realms: 'admin' }, { realm: 'admin' }, 200, realm),
  'realms/invitations': route({ realms: 'admin' }, { realm: 'admin' }, 200, realm),
  'realms/revoke_invite': route({ realms: 'admin' }, { realm: 'admin' }, 200, ids => ({ id: ids.invitation })),
  'realms/add_member': route({ realms: 'admin' }, { realm: 'admin' }, 200, ids => ({
    ...realm(ids),
    username: 'settled',
    role: 'member',
  })),
  'realms/remove_member': route({ realms: 'admin' }, { realm: 'admin' }, 404, ids => ({
    ...realm(ids),
    username: 'nowhere',
  })),
  'realms/add_webhook': route({ realms: 'admin' }, { realm: 'admin' }, 400, ids => ({
    ...realm(ids),
    url: 'http://127.0.0.9/',
    events: ['run.failed'],
  })),
  'realms/webhooks': route({ realms: 'read' }, { realm: 'operator' }, 200, realm),
  'realms/remove_webhook': route({ realms: 'admin' }, { realm: 'admin' }, 404, ids => ({
    ...realm(ids),
    id: NO_WEBHOOK,
  })),
  'realms/webhook_take_over': route({ realms: 'admin' }, { realm: 'admin' }, 404, ids => ({
    ...realm(ids),
    id: NO_WEBHOOK,
  })),
  'realms/redeliver_webhook': route({ realms: 'write' }, { realm: 'operator' }, 404, ids => ({
    ...realm(ids),
    id: 'msg_none',
  })),
  'realms/webhook_deliveries': route({ realms: 'read' }, { realm: 'operator' }, 200, realm),
  'daemons/list': route({ daemons: 'read' }, null, 200, nothing),
  'daemons/list of-realm': route({ daemons: 'read' }, { realm: 'member' }, 200, realm),
  'daemons/get': route({ daemons: 'read' }, { realm: 'member' }, 200, ids => ({ daemon_id: ids.daemon })),
  'daemons/approve': route({ daemons: 'write' }, { realm: 'operator' }, 200, ids => ({ daemon_id: ids.daemon })),
  'daemons/update': route({ daemons: 'write' }, { realm: 'operator' }, 200, ids => ({
    daemon_id: ids.daemon,
    paused: false,
  })),
  'daemons/reconcile': route({ daemons: 'admin' }, { realm: 'admin' }, 200, realm),
  'daemons/remove': route({ daemons: 'admin' }, { realm: 'admin' }, 200, ids => ({ daemon_id: ids.spare })),
  'dispatch/run': route(WORK, { realm: 'operator' }, 409, ids => ({ ...realm(ids), team: '@own/never' })),
  'dispatch/run on-daemon': route(WORK, { realm: 'operator' }, 409, ids => ({
    daemon_id: ids.daemon,
    team: '@own/never',
  })),
  'dispatch/cancel': route(WORK, { realm: 'operator' }, 200, run),
  'dispatch/resume': route(WORK, { realm: 'operator' }, 409, run),
  'dispatch/move': route(WORK, { realm: 'operator' }, 409, ids => ({ ...run(ids), daemon_id: ids.daemon })),
  'dispatch/queue': route(SEE, { realm: 'member' }, 200, realm),
  'dispatch/keys/get': route({ dispatch: 'read' }, { org: 'member' }, 200, ids => ({ org_id: String(ids.org) })),
  'dispatch/keys/rotate': route({ dispatch: 'admin', orgs: 'admin' }, { org: 'admin' }, 200, org),
  'dispatch/tokens/mint': route({ runs: 'read' }, { realm: 'member' }, 200, ids => ({
    daemon_id: ids.daemon,
    action: 'access',
  })),
  'dispatch/tokens/mint to-execute': route(WORK, { realm: 'operator' }, 200, ids => ({
    daemon_id: ids.daemon,
    action: 'execute',
  })),
  'dispatch/tokens/mint to-cancel': route(WORK, { realm: 'operator' }, 200, ids => ({
    daemon_id: ids.daemon,
    action: 'cancel',
  })),
  'teams/publish': route({ teams: 'write' }, { scope: 'member' }, 400, ids => ({
    scope: ids.scopeSlug,
    files: [{ path: 'team.yml', content_base64: '' }],
  })),
  'teams/list': route({ teams: 'read' }, null, 200, nothing),
  'teams/list of-scope': route({ teams: 'read' }, { scope: 'org' }, 200, ids => ({ scope: ids.scopeSlug })),
  'teams/get': route({ teams: 'read' }, { scope: 'org' }, 200, team),
  'teams/versions': route({ teams: 'read' }, { scope: 'org' }, 200, team),
  'teams/reach': route({ teams: 'read' }, { scope: 'org' }, 200, team),
  'teams/yank': route({ teams: 'write' }, { scope: 'member' }, 200, ids => ({ team: `${ids.team}@0.1.0` })),
  'runs/list': route(SEE, null, 200, nothing),
  'runs/list of-realm': route(SEE, { realm: 'member' }, 200, realm),
  'runs/get': route(SEE, { realm: 'member' }, 200, run),
  'runs/tree': route(SEE, { realm: 'member' }, 200, run),
  'runs/phases': route(SEE, { realm: 'member' }, 200, run),
  'runs/logs': route(SEE, { realm: 'member' }, 200, run),
  'runs/artifacts': route(SEE, { realm: 'member' }, 200, run),
  'GET artifacts/get': route(SEE, { realm: 'member' }, 200, ids => ({ ...run(ids), path: FILE.record.path })),
  'GET runs/log': route(SEE, { realm: 'member' }, 200, run),
  'GET runs/stream': route(SEE, { realm: 'member' }, 200, run),
  'reviews/list': route(SEE, null, 200, nothing),
  'reviews/list of-realm': route(SEE, { realm: 'member' }, 200, realm),
  'reviews/decide': route(WORK, { realm: 'operator' }, 200, ids => ({ review_id: ids.review, decision: 'approve' })),
  'GET /metrics': route({ realms: 'read' }, 'site', 200, nothing),
  'audit/list': route({ orgs: 'admin' }, null, 200, nothing),
  'audit/list of-org': route({ orgs: 'admin' }, { org: 'admin' }, 200, org),
  'audit/export': route({ orgs: 'admin' }, null, 200, nothing),
  'audit/export of-org': route({ orgs: 'admin' }, { org: 'admin' }, 200, org),
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
export const REALM: Record<string, { pass: number; body: Body; answers: RealmAnswers }> = {
  'daemons/register': { pass: 200, body: ids => ({ name: 'x', realm_id: ids.realm }), answers: within(403) },
  'daemons/heartbeat': { pass: 200, body: ids => ({ daemon_id: ids.daemon }), answers: BOUND },
  'daemons/poll': { pass: 200, body: ids => ({ daemon_id: ids.daemon }), answers: BOUND },
  'daemons/ack': {
    pass: 404,
    body: ids => ({ daemon_id: ids.daemon, job_id: 'none', lease_id: 'none', status: 'done' }),
    answers: BOUND,
  },
  'daemons/deregister': { pass: 200, body: ids => ({ daemon_id: ids.leaver }), answers: BOUND },
  'runs/sync': {
    pass: 200,
    body: ids => ({ daemon_id: ids.daemon, epoch: ids.daemon, from_seq: 1, changes: [] }),
    answers: BOUND,
  },
  'artifacts/offer': { pass: 200, body: offered, answers: BOUND },
  'artifacts/keep': { pass: 200, body: offered, answers: BOUND },
  'PUT artifacts/put': { pass: 200, body: offered, answers: BOUND },
  'auth/acl': { pass: 200, body: ids => ({ daemon_id: ids.daemon, realm_id: ids.realm }), answers: within(403) },
  'auth/acl of-daemon': {
    pass: 200,
    body: ids => ({ daemon_id: ids.daemon }),
    answers: {
      same: { own: 'pass', foreign: 403, missing: 404 },
      another: { own: 403, foreign: 'pass', missing: 404 },
      // Neither the body nor the token says which of its realms.
      both: { own: 400, foreign: 400, missing: 404 },
    },
  },
}

/** Routes of either kind. */
export const BOTH: Record<string, UserRoute & { answers: RealmAnswers }> = {
  'auth/whoami': { ...route(null, null, 200, nothing), answers: within('pass') },
  'teams/download': { ...route({ teams: 'read' }, { scope: 'org' }, 200, team), answers: within(404) },
}

/** No credential is asked; where one is taken, a wrong one is still 401. */
export const OPEN: Record<string, { takes: boolean; anonymous: number; pass: number; body: Body }> = {
  'session/create': {
    takes: false,
    anonymous: 200,
    pass: 200,
    body: (_, mine) => ({ username: mine.username, password: mine.password }),
  },
  'realms/accept_invite': { takes: true, anonymous: 400, pass: 404, body: () => ({ token: 'none' }) },
  'GET /health': { takes: false, anonymous: 200, pass: 200, body: nothing },
  'GET /ready': { takes: false, anonymous: 200, pass: 200, body: nothing },
  'GET /openapi': { takes: false, anonymous: 200, pass: 200, body: nothing },
  'GET /openapi/json': { takes: false, anonymous: 200, pass: 200, body: nothing },
}

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
  { ask, need }: UserRoute,
  person: Person,
  grant: Partial<Record<string, Level>>,
  object: Object_,
): Answer {
  const granted = Object.entries(ask ?? {}).some(([entity, level]) => {
    const held = grant[entity]
    return held !== undefined && LEVELS.indexOf(held) >= LEVELS.indexOf(level)
  })
  if (ask && !granted) return 403
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
