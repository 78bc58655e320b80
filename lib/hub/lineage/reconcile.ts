// What a person sees of an older copy, and the decision to go on without a daemon that cannot report what it executed.

import { and, eq, isNull, notExists, sql } from 'drizzle-orm'
import type { Db } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import type { Reconciliation } from '../../wire/records/older-copies.ts'
import type { Hub } from '../core/hub.ts'
import { inState } from '../core/job-rows.ts'
import { type Confirmation, type Copy, concernsRealm, isAwaited, readCopies } from './copies.ts'

const MOST_PACKAGES = 100

/** What is known of the last copy that concerns a realm. */
export async function reconciliationOf(hub: Hub, db: Db, realmId: string): Promise<Reconciliation> {
  const { store } = hub
  const { jobs } = store
  const ofRealm = (await readCopies(store, db)).filter(copy => concernsRealm(copy, realmId))
  const copy = ofRealm.toSorted((a, b) => rankOf(a) - rankOf(b) || b.found_at - a.found_at)[0] ?? null
  const [held] = await db
    .select({ many: sql<number>`count(*)`.mapWith(Number) })
    .from(jobs)
    .where(and(eq(jobs.realm_id, realmId), inState(store, 'held')))
  const ofCopy = and(
    eq(store.confirmations.copy_id, copy?.id ?? ''),
    eq(store.confirmations.kind, 'daemon'),
    eq(store.confirmations.realm_id, realmId),
  )
  const confirmations = await db.select().from(store.confirmations).where(ofCopy).orderBy(store.confirmations.name)
  const silent = confirmations.filter(isAwaited)
  const unknown = copy?.ended_at === null ? hub.lineage.unknownDaemons : []
  const known = new Set(silent.map(({ id }) => id))
  return {
    realm_id: realmId,
    older_copy: copy && copyRecord(copy),
    held: held!.many,
    awaited: [
      ...(await Promise.all(silent.map(each => awaitedRecord(hub, db, each)))),
      ...unknown
        .filter(id => !known.has(id))
        .map(id => ({ daemon_id: id, name: id, last_seen_at: null, why: ENROL_AGAIN })),
    ],
    passed: confirmations
      .filter(({ passed_at }) => passed_at !== null)
      .map(({ id, name }) => ({ daemon_id: id, name })),
    lost: copy && copy.lost !== false ? await lostOf(hub, db, realmId, copy) : [],
    came_back: copy && copy.lost !== false ? CAME_BACK : [],
  }
}

const rankOf = ({ ended_at }: Copy): number => (ended_at === null ? 0 : 1)

const copyRecord = ({ id, kind, found_at, written_at, lost, ended_at }: Copy) => ({
  ...{ id, kind, found_at, written_at, lost, ended_at },
})

const ENROL_AGAIN =
  'cannot report: this copy of the database does not know its token; enrol again on its machine with a new one. Held jobs do not wait for it'

async function awaitedRecord(hub: Hub, db: Db, { id, name, last_seen_at, compared_at }: Confirmation) {
  const { daemons } = hub.store
  const [row] = await db.select({ removed_at: daemons.removed_at }).from(daemons).where(eq(daemons.id, id))
  const why = hub.lineage.unknownDaemons.includes(id)
    ? ENROL_AGAIN
    : row === undefined || row.removed_at !== null
      ? 'was removed before it had reported: go on without it'
      : compared_at !== null
        ? 'sends what it has'
        : 'has not called since: start it, or go on without it'
  return { daemon_id: id, name, last_seen_at, why }
}

/** What came between the copy and its discovery is gone, and the hub cannot know it, except for what runs name. */
async function lostOf({ store }: Hub, db: Db, realmId: string, { written_at, found_at }: Copy): Promise<string[]> {
  const { packages, runs } = store
  const span = `between ${timeOf(written_at)} and ${timeOf(found_at)}`
  const there = db
    .select({ id: packages.id })
    .from(packages)
    .where(and(eq(packages.name, runs.team), eq(packages.version, runs.version)))
  const missing = await db
    .selectDistinct({ team: runs.team, version: runs.version })
    .from(runs)
    .where(
      and(eq(runs.realm_id, realmId), isNull(runs.parent_run_id), sql`${runs.version} IS NOT NULL`, notExists(there)),
    )
    .limit(MOST_PACKAGES)
  return [
    `accounts, tokens, members, teams of realms, packages and audit entries that were made ${span}`,
    `runs that were dispatched ${span} and that no daemon had taken`,
    ...missing.map(
      ({ team, version }) => `package ${team}@${version}: publish it again; daemons that have run it have a copy`,
    ),
  ]
}

const CAME_BACK = [
  'tokens that were revoked since: revoke them again; `hub restore --revoke-tokens` ends all tokens of people',
  'accounts that were suspended or deleted since, and passwords that were changed',
  'members, daemons and teams that were removed since, and roles that were lowered',
]

const timeOf = (at: number): string => new Date(at).toISOString()

/** Goes on without a daemon, by its name or id. Returns it. */
export async function goWithout(hub: Hub, tx: Db, realmId: string, without: string): Promise<Confirmation> {
  const { store, now } = hub
  const { copies, confirmations } = store
  const open = await tx
    .select({ confirmation: confirmations, realm_id: copies.realm_id })
    .from(confirmations)
    .innerJoin(copies, eq(copies.id, confirmations.copy_id))
    .where(and(isNull(copies.ended_at), eq(confirmations.kind, 'daemon'), eq(confirmations.realm_id, realmId)))
  const awaited = open.map(({ confirmation }) => confirmation).filter(isAwaited)
  const found = awaited.filter(({ id, name }) => id === without || name === without)
  const [first] = found
  if (!first) {
    const names = [...new Set(awaited.map(({ name }) => name))].sort()
    const others = names.length === 0 ? 'none is awaited' : `awaited are ${names.join(', ')}`
    throw new CadreError('not_found', `no daemon ${without} is awaited in this realm: ${others}`)
  }
  if (new Set(found.map(({ id }) => id)).size > 1) {
    throw new CadreError('conflict', `several daemons have the name ${without}: give the id of one`)
  }
  const all = and(eq(confirmations.id, first.id), isNull(confirmations.reported_at))
  await tx.update(confirmations).set({ passed_at: now() }).where(all)
  return first
}
