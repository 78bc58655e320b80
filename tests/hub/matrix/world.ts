// Two tenants with everything in them, the people of the matrix, and their tokens.

import { expect } from 'bun:test'
import { eq, getTableName, is, isNull, sql, Table } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { preparedForAny } from '../../../db/hub/prepared.ts'
import type { Store } from '../../../db/hub/store.ts'
import type { TestHub } from '../../support/hub.ts'
import { FILE, phaseChange, reviewChange, runChange } from '../../support/sync.ts'
import type { Ids, Level, Mine, Object_, Person, RealmCredential } from './specification.ts'

export interface World {
  ids: Record<Object_, Ids>
  mine: Record<Person, Record<Object_, Mine>>
  sessions: Record<Person, string>
  realmTokens: Record<RealmCredential, string>
  revoked: string
  expired: string
  /** A durable token of `person` that may do this, and nothing else, everywhere. */
  durable(person: Person, access: Partial<Record<string, Level>>): Promise<string>
}

const NOBODY = 999_999
const NONE = crypto.randomUUID()
const MISSING: Ids = {
  org: NOBODY,
  scope: NOBODY,
  scopeSlug: 'missing',
  team: '@missing/x',
  realm: NONE,
  daemon: NONE,
  spare: NONE,
  leaver: NONE,
  run: NONE,
  review: NONE,
  invitation: NONE,
  trigger: NONE,
  firing: NONE,
  username: 'nobody',
}

export async function makeWorld(hub: TestHub): Promise<World> {
  const sessions = { site: hub.admin } as World['sessions']
  for (const person of ['owner', 'orgadmin', 'operator', 'member', 'stranger'] as const) {
    sessions[person] = (await hub.account(person)).token
  }
  const foreigner = (await hub.account('foreigner')).token
  for (const username of ['settled', 'nowhere', 'elsewhere']) await hub.account(username)
  const own = await makeTenant(hub, 'own', 'owner', sessions.owner)
  const foreign = await makeTenant(hub, 'foreign', 'foreigner', foreigner)
  const { org: org_id, realm: realm_id, scope: scope_id } = own.ids
  await hub.ok(sessions.owner, 'orgs/add_member', { org_id, username: 'orgadmin', role: 'admin' })
  await hub.ok(sessions.owner, 'realms/add_member', { realm_id, username: 'operator', role: 'operator' })
  await hub.ok(sessions.owner, 'realms/add_member', { realm_id, username: 'member', role: 'member' })
  await hub.ok(sessions.owner, 'scopes/add_member', { scope_id, username: 'operator' })

  const permissions = { domains: { orgs: '*', realms: '*' }, access: {} }
  const mint = (token: string, access: object, extra: object = {}) =>
    hub.ok(token, 'auth/generate_token', { type: 'user', name: 'x', permissions: { ...permissions, access }, ...extra })
  const password = { username: 'elsewhere', password: 'password of a test' }
  const [theirs, dead, late] = [await mint(foreigner, {}), await mint(foreigner, {}), await mint(foreigner, {})]
  await hub.ok(foreigner, 'auth/revoke_token', { id: dead.id })
  const { tokens } = hub.store
  await hub.store.write(tx => tx.update(tokens).set({ expires_at: 1 }).where(eq(tokens.id, late.id)))
  const mine = {} as World['mine']
  for (const [person, token] of Object.entries(sessions) as [Person, string][]) {
    mine[person] = {
      own: { revocable: (await mint(token, {})).id, rotatable: (await mint(token, {})).id, ...password },
      foreign: { revocable: theirs.id, rotatable: theirs.id, ...password },
      missing: { revocable: NOBODY, rotatable: NOBODY, ...password },
    }
  }
  const made = new Map<string, Promise<string>>()
  return {
    ids: { own: own.ids, foreign: foreign.ids, missing: MISSING },
    mine,
    sessions,
    realmTokens: {
      same: own.token,
      another: foreign.token,
      both: (await hub.realmToken(hub.admin, own.ids.realm, foreign.ids.realm)).token,
    },
    revoked: dead.token,
    expired: late.token,
    durable(person, access) {
      const key = `${person} ${JSON.stringify(access)}`
      const lists = Object.fromEntries(Object.entries(access).map(([entity, level]) => [entity, [level]]))
      const token = made.get(key) ?? mint(sessions[person], lists).then(reply => reply.token as string)
      made.set(key, token)
      return token
    },
  }
}

/** An org with members, a scope with a package, a realm with a team, daemons, a live run and its review. */
async function makeTenant(hub: TestHub, slug: string, username: string, owner: string) {
  const org_id = (await hub.ok(hub.admin, 'orgs/create', { slug, display_name: slug })).id
  await hub.ok(hub.admin, 'orgs/add_member', { org_id, username, role: 'owner' })
  await hub.ok(owner, 'orgs/remove_member', { org_id, username: 'admin' })
  const scope_id = (await hub.ok(owner, 'scopes/create', { org_id, slug })).id
  // Every org calls its realm `own`: that the name is taken is what creating one more answers.
  const realm_id = (await hub.ok(owner, 'realms/create', { org_id, slug: 'own', name: slug })).id
  await hub.ok(owner, 'scopes/add_member', { scope_id, username: 'settled' })
  await hub.ok(owner, 'realms/add_member', { realm_id, username: 'settled', role: 'member' })
  const team = `@${slug}/x`
  for (const version of ['1.0.0', '0.1.0']) {
    const text = `name: "${team}"\nversion: ${version}\nphases:\n  - { name: say, agent: http, sources: [{ name: a, url: "https://example.com/" }] }\n`
    await hub.ok(owner, 'teams/publish', { files: [{ path: 'team.yml', content_base64: btoa(text) }] })
  }
  await hub.ok(owner, 'teams/yank', { team: `${team}@0.1.0` })
  await hub.ok(owner, 'realms/add_team', { realm_id, team })
  const { token } = await hub.realmToken(owner, realm_id)
  const register = async (name: string) => (await hub.ok(token, 'daemons/register', { name })).daemon_id as string
  const [daemon, spare, leaver] = [await register('daemon'), await register('spare'), await register('leaver')]
  const invitation = (await hub.ok(owner, 'realms/invite', { realm_id })).id
  const [run, review] = [crypto.randomUUID(), crypto.randomUUID()]
  const report = { daemon_id: daemon, epoch: crypto.randomUUID(), from_seq: 1 }
  const asking = { team, call_path: [team], state: 'awaiting_input', reason: 'gate' }
  const changes = [
    { seq: 1, ...runChange(run, asking) },
    { seq: 2, ...reviewChange(run, review) },
    { seq: 3, ...phaseChange(run) },
  ]
  expect((await hub.ok(token, 'runs/sync', { ...report, changes })).rejected).toEqual([])
  await storeFile(hub, token, daemon, run)
  const yearly = { realm_id, name: 'yearly', kind: 'schedule', team, cron: '@yearly' }
  const trigger = (await hub.ok(owner, 'triggers/add', yearly)).id
  const firing = (await hub.ok(owner, 'triggers/run_now', { trigger_id: trigger })).id
  const ids: Ids = {
    org: org_id,
    scope: scope_id,
    scopeSlug: slug,
    team,
    realm: realm_id,
    daemon,
    spare,
    leaver,
    run,
    review,
    invitation,
    trigger,
    firing,
    username,
  }
  return { ids, token }
}

/** Sends the file of a run, if the hub keeps files. */
async function storeFile(hub: TestHub, token: string, daemon_id: string, run_id: string): Promise<void> {
  const { sha256, bytes } = FILE.record
  const offered = { daemon_id, run_id, sha256, bytes }
  if ((await hub.call(token, 'artifacts/offer', offered)).status === 409) return
  const query = new URLSearchParams({ ...offered, bytes: String(bytes) })
  const headers = { authorization: `Bearer ${token}` }
  await fetch(`${hub.url}/v1/artifacts/put?${query}`, { method: 'PUT', headers, body: FILE.content })
  await hub.ok(token, 'artifacts/keep', offered)
}

type Rows = ReturnType<typeof preparedForAny<Record<string, unknown>[]>>
const statements = new Map<Table, Rows>()

/** Reads every row of a table by a statement that is built once, which takes longer than to carry it out. */
function rowsOf(table: Table): Rows {
  const known = statements.get(table)
  if (known) return known
  const made: Rows = preparedForAny((_, db) => db.select().from(table as SQLiteTable))
  statements.set(table, made)
  return made
}

/** Whether a table tells an older copy, or what hubs do by themselves: it counts commits, beats and chores. */
const isMemory = (table: Table): boolean => /^(memory|hub_processes$|lived_time$|chores$)/.test(getTableName(table))

/** Differs from what it was before any commit to the database. */
export async function commitsOf({ epoch, db, users }: Store): Promise<string> {
  const known = epoch()
  if (known !== null) return String(known)
  const snapshot = sql<string>`pg_current_snapshot()::text`
  return (await db.select({ snapshot }).from(users).limit(1))[0]!.snapshot
}

/**
 * The whole database, but for the times of use of tokens, which is what a refused call may leave, for what the hub
 * itself finds out as time passes, for what tells an older copy, and for `besides`.
 */
export async function contents(hub: TestHub, besides: object = {}): Promise<string> {
  await hub.flush()
  const { audit, db } = hub.store
  // The entries of earlier calls are sealed after their answers.
  while ((await db.select().from(audit).where(isNull(audit.position)).limit(1)).length > 0) await Bun.sleep(5)
  const parts: string[] = []
  for (const table of Object.values(hub.store) as unknown[]) {
    if (!is(table, Table) || isMemory(table)) continue
    const rows = await rowsOf(table)(hub.store, hub.store.db, {})
    const lines = rows.map(row => JSON.stringify({ ...row, last_used_at: 0, stale_at: 0, ...besides }))
    parts.push(getTableName(table), ...lines.sort())
  }
  expect(parts.length).toBeGreaterThan(100)
  return parts.join('\n')
}
