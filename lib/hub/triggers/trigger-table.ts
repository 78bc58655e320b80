// Table `triggers`: the rules of realms that start runs. Every statement about it is here, but those that list what an
// account owns (../access/owners.ts).

import { and, asc, eq, isNotNull, isNull, notExists, or, type SQL, sql } from 'drizzle-orm'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { kindOf } from '../../firing/kinds.ts'
import type { TriggerKind } from '../../wire/records/trigger-words.ts'
import { hasRole } from '../access/owners.ts'
import type { Hub } from '../core/hub.ts'

type Row = Tables['triggers']['$inferSelect']

/** `Own`: what its kind keeps of its own fields. */
export type RealmTrigger<Own = unknown> = Omit<Row, 'spec'> & { spec: Omit<Row['spec'], 'own'> & { own: Own } }

/** A trigger in a transaction, and what else a firing of it depends on. */
export interface Taken<Own = unknown> {
  trigger: RealmTrigger<Own>
  realm: Tables['realms']['$inferSelect']
  owner: { id: number; username: string }
  /** Whether the owner may still start runs in the realm. */
  mayStart: boolean
  /** The time by the clock of the database. */
  now: number
}

/** The same, with the hub and the transaction. */
export interface Look<Own = unknown> extends Taken<Own> {
  hub: Hub
  tx: Db
}

/** How many schedules one look takes up. */
const AT_ONCE = 500

const isThere = ({ triggers }: Store): SQL => isNull(triggers.removed_at)

/**
 * The triggers to look at, those that were due first at the front: of which slots are due or firings wait, and those whose
 * cursor the clock is behind. One statement, which reads indexes and nothing else while there is nothing to do.
 */
export async function toLookAt({ store, clock }: Hub): Promise<{ id: string; waits: boolean }[]> {
  const { triggers, firings, db } = store
  const now = clock.inStatement()
  const { id, next_at, cursor } = triggers
  const found = await db.select({ id: sql<string>`id`, waits: sql<number>`waits`.mapWith(Number) }).from(
    sql`(SELECT ${firings.trigger_id} AS id, 1 AS waits FROM ${firings} WHERE ${firings.state} = 'waiting'
             GROUP BY ${firings.trigger_id}
           UNION ALL SELECT id, 0 FROM (SELECT ${id} AS id FROM ${triggers}
             WHERE ${next_at} IS NOT NULL AND ${next_at} <= ${now} ORDER BY ${next_at} LIMIT ${sql.raw(String(AT_ONCE))}) AS due
           UNION ALL SELECT ${id}, 0 FROM ${triggers} WHERE ${next_at} IS NOT NULL AND ${cursor} > ${now}) AS looked`,
  )
  return found.map(row => ({ id: row.id, waits: row.waits === 1 }))
}

/** The trigger, unless it is gone or, with `claimed`, another hub is firing it. */
export async function takeTrigger(
  { store, clock }: Hub,
  tx: Db,
  id: string,
  { claimed = false } = {},
): Promise<Taken | null> {
  const { triggers, realms, users } = store
  const mayStart = hasRole(store, triggers.owner_id, triggers.realm_id, 'operator')
  const found = tx
    .select({
      trigger: triggers,
      realm: realms,
      owner: { id: users.id, username: users.username },
      mayStart: sql<number | boolean>`${mayStart}`,
      now: sql<number>`${clock.inStatement()}`.mapWith(Number),
    })
    .from(triggers)
    .innerJoin(realms, eq(realms.id, triggers.realm_id))
    .innerJoin(users, eq(users.id, triggers.owner_id))
    .where(and(eq(triggers.id, id), isThere(store)))
  const [taken] = await (claimed ? store.claim(found, triggers) : found)
  return taken ? { ...taken, mayStart: Boolean(taken.mayStart) } : null
}

/** Which triggers a call names. */
export const byId = ({ triggers }: Store, id: string): SQL => eq(triggers.id, id)
export const byName = ({ triggers }: Store, realmId: string, name: string): SQL =>
  and(eq(triggers.realm_id, realmId), eq(triggers.name, name))!

export async function findTrigger(
  store: Store,
  db: Db,
  which: SQL,
  { evenRemoved = false } = {},
): Promise<RealmTrigger | null> {
  const where = evenRemoved ? which : and(which, isThere(store))
  const [found] = await db.select().from(store.triggers).where(where)
  return found ?? null
}

/** By realm and name. `mayStart`: whether the owner of each may still start runs. */
export async function listTriggers(
  store: Store,
  db: Db,
  where: SQL | undefined,
  { limit, offset }: { limit: number; offset: number },
) {
  const { triggers, users } = store
  const mayStart = hasRole(store, triggers.owner_id, triggers.realm_id, 'operator')
  const rows = await db
    .select({ trigger: triggers, owner: users.username, mayStart: sql<number | boolean>`${mayStart}` })
    .from(triggers)
    .innerJoin(users, eq(users.id, triggers.owner_id))
    .where(where)
    .orderBy(asc(triggers.name), asc(triggers.id))
    .limit(limit)
    .offset(offset)
  return rows.map(row => ({ ...row, mayStart: Boolean(row.mayStart) }))
}

export const ofRealm = ({ triggers }: Store, realmId: string): SQL => eq(triggers.realm_id, realmId)
export const ofKind = ({ triggers }: Store, kind: TriggerKind): SQL => eq(triggers.kind, kind)
/** In whatever version. */
export function ofTeam({ triggers, dialect }: Store, team: string): SQL {
  // PostgreSQL keeps it as text, too, which it does not take apart.
  const spec = dialect === 'postgres' ? sql`${triggers.spec}::json` : triggers.spec
  const named = sql<string>`(${spec} ->> 'team')`
  const range = `${team}@`
  return or(eq(named, team), eq(sql`substr(${named}, 1, ${sql.raw(String(range.length))})`, range))!
}
/** Those that a team declares, by its name in whatever version; `name`: only that one of them. */
export function declaredIn({ triggers, dialect }: Store, source?: { team: string; name: string }): SQL {
  const text = dialect === 'postgres' ? sql`${triggers.source}::json` : triggers.source
  if (!source) return sql`${text} ->> 'name' IS NOT NULL`
  return sql`${text} ->> 'team' = ${source.team} AND ${text} ->> 'name' = ${source.name}`
}
export const thoseThere = (store: Store, ...where: (SQL | undefined)[]): SQL => and(...where, isThere(store))!

/** The time by the clock of the database. */
export async function timeNow({ clock }: Hub, tx: Db): Promise<number> {
  const [row] = await tx
    .select({ now: sql<number>`${clock.inStatement()}`.mapWith(Number) })
    .from(sql`(SELECT 1) AS one`)
  return row!.now
}

export async function insertTrigger({ triggers }: Store, tx: Db, trigger: RealmTrigger): Promise<void> {
  await tx.insert(triggers).values(trigger)
}

/** When it is due next. */
export function nextOf(trigger: RealmTrigger): number | null {
  const isLive = trigger.enabled && !trigger.paused && trigger.removed_at === null
  return isLive ? (kindOf(trigger).nextAt?.(trigger) ?? null) : null
}

/** Writes everything that changes in the life of a trigger, with the time at which it is due next. */
export async function putTrigger({ triggers }: Store, tx: Db, trigger: RealmTrigger): Promise<RealmTrigger> {
  const put = { ...trigger, next_at: nextOf(trigger) }
  const { id, created_at: _, created_by: __, realm_id: ___, kind: ____, ...values } = put
  await tx.update(triggers).set(values).where(eq(triggers.id, id))
  return put
}

export async function setCursor({ triggers }: Store, tx: Db, id: string, cursor: number, nextAt: number | null) {
  await tx.update(triggers).set({ cursor, next_at: nextAt }).where(eq(triggers.id, id))
}

export async function setProblem({ triggers }: Store, tx: Db, id: string, problem: RealmTrigger['problem']) {
  await tx.update(triggers).set({ problem }).where(eq(triggers.id, id))
}

/** All triggers, with those that were removed. */
export async function everyTrigger({ triggers, db }: Store) {
  const { id, kind, removed_at, spec } = triggers
  return db.select({ id, kind, removed_at, spec }).from(triggers)
}

/** Deletes the removed triggers of which no firing is left. */
export async function deleteRemoved({ triggers, firings }: Store, tx: Db): Promise<void> {
  const left = tx.select({ one: sql`1` }).from(firings).where(eq(firings.trigger_id, triggers.id))
  await tx.delete(triggers).where(and(isNotNull(triggers.removed_at), notExists(left)))
}
