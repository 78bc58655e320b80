// Lists of runs, newest first. Each filter that people choose is a range of an index that ends with the id of the run, in
// each realm, so that a page and its count cost no more where there are many runs.

import { type AnyColumn, and, desc, eq, gt, inArray, lte, or, type SQL, sql } from 'drizzle-orm'
import { postgres, sqlite } from '../../../db/hub/columns.ts'
import type { Store } from '../../../db/hub/store.ts'
import { MOST_COUNTED } from '../../wire/budget.ts'
import { refuseInPlace } from '../../wire/in-place.ts'
import { counted } from '../../wire/page.ts'
import { ENDED_RUN_STATES } from '../../wire/states.ts'
import type { Hub } from '../core/hub.ts'
import { beginsWith, literal } from '../core/list-total.ts'
import { startedByThis, unindexed } from '../core/starters.ts'
import { findTexts, type Where } from './run-texts.ts'
import { inState, type ReportedRun, stateColumn } from './runs.ts'

export interface RunFilter {
  state?: string
  team?: string
  search?: string
  started_by?: string
  root_only?: boolean
  begins?: string
  since?: number
  upto?: string
  newer_than?: string
}

interface Page {
  limit: number
  offset: number
}

interface Found {
  rows: { row: ReportedRun; state: string }[]
  total: number
  total_more?: true
}

export async function listRuns(hub: Hub, where: Where, filter: RunFilter, page: Page): Promise<Found> {
  const { store } = hub
  const { runs, daemons, db } = store
  const now = hub.lived()
  const { search } = filter
  const texts = search ? await findTexts(store, where, search) : null
  // Few runs that a search has found are those of its realms already, and in no order.
  const isFew = texts !== null && texts.count <= MOST_COUNTED
  const inRealms = isFew ? texts.isFound : inThese(store, where)
  const others = conditions(store, filter, now)
  const filters = and(others, search ? named(store, search) : undefined)
  const joined = eq(daemons.id, runs.daemon_id)
  const count = async () => {
    if (texts !== null && !isFew && others === undefined) return texts.count
    const one = db.select({ one: sql`1`.as('one') }).from(runs)
    const needsDaemons = filter.state !== undefined && !ENDED_RUN_STATES.includes(filter.state)
    const some = (needsDaemons ? one.leftJoin(daemons, joined) : one).where(and(inRealms, filters))
    const [row] = await db
      .select({ found: sql<number>`count(*)`.mapWith(Number) })
      .from(some.limit(MOST_COUNTED + 1).as('some'))
    return row!.found
  }
  const read = (areMany: boolean) => {
    const isSmall = isFew || filter.state === 'crashed'
    // Those of one realm are in the order of their index.
    const ofSeveral = 'reached' in where && !isSmall
    const newest = ofSeveral && areMany
    const isSorted = isSmall || (ofSeveral && (!areMany || store.dialect === 'postgres'))
    return db
      .select({ row: runs, state: stateColumn(store, now) })
      .from(runs)
      .leftJoin(daemons, joined)
      .where(and(inRealms, filters, newest ? amongNewest(store, where.reached, filters, page) : undefined))
      .orderBy(newestFirst(store, isSorted))
      .limit(page.limit)
      .offset(page.offset)
  }
  // Over a distance the count is not waited for. When there are fewer, all of them are read whatever is known of the newest.
  if (store.dialect === 'postgres') {
    const [found, rows] = await Promise.all([count(), read(true)])
    return { rows, ...counted(found) }
  }
  const found = await count()
  return { rows: await read(found > page.limit + page.offset), ...counted(found) }
}

const inThese = ({ db, runs, realms }: Store, where: Where): SQL =>
  'realm' in where
    ? eq(runs.realm_id, where.realm)
    : inArray(runs.realm_id, db.select({ id: realms.id }).from(realms).where(where.reached))

/** What is asked for beside a text. */
function conditions(store: Store, filter: RunFilter, now: number): SQL | undefined {
  const { runs } = store
  const { state, team, started_by, root_only, begins, since, upto, newer_than } = filter
  // Most runs are completed. A database does not know that there are fewer of the other states than of most teams.
  const isRare = state !== undefined && state !== 'completed'
  return and(
    state ? inState(store, state, now) : undefined,
    team ? ofTeam(store, team, isRare) : undefined,
    root_only ? eq(runs.run_id, runs.root_run_id) : undefined,
    started_by ? startedByThis(store, started_by, isRare) : undefined,
    upto === undefined ? undefined : lte(runs.run_id, upto),
    newer_than === undefined ? undefined : gt(runs.run_id, newer_than),
    begins ? beginsWith(runs.run_id, begins) : undefined,
    since === undefined ? undefined : sql`coalesce(${runs.started_at}, ${runs.created_at}) >= ${since}`,
  )
}

/**
 * Runs of a team that is given by its whole name, or by the part after the scope. They are found by another index if the
 * condition is only `checked`.
 */
export function ofTeam({ runs, dialect }: Store, name: string, checked: boolean): SQL {
  refuseInPlace(name)
  const part = (dialect === 'sqlite' ? sqlite : postgres).afterScope(runs.team)
  const short = name.slice(name.indexOf('/') + 1)
  return and(sql`${checked ? unindexed(part) : part} = ${short}`, name === short ? undefined : eq(runs.team, name))!
}

/** Runs with `text` in the name, the team or the id. */
function named({ runs }: Store, text: string): SQL {
  const pattern = `%${literal(text.toLowerCase())}%`
  const like = (column: AnyColumn) => sql`lower(${column}) LIKE ${pattern} ESCAPE '\\'`
  return or(like(runs.run_name), like(runs.team), like(runs.run_id))!
}

/**
 * The order of lists, newest first: that of the ids, which no step of a clock changes. Where few runs are left, as of those
 * that have crashed, `sorted` keeps the database from looking for them among all runs because these are in that order.
 */
const newestFirst = ({ runs }: Store, sorted: boolean): SQL =>
  sorted ? sql`${runs.run_id} || '' DESC` : sql`${runs.run_id} DESC`

/**
 * A condition that the newest runs of several realms fulfil, as many as the pages up to this one have, and few others. A
 * database would sort all runs of these realms, or read those of all realms, though it has those of each realm in order. As
 * many runs of a realm are at least as new as the last of its newest ones, so an older run of any realm is not among them.
 */
function amongNewest(store: Store, reached: SQL | undefined, filters: SQL | undefined, { limit, offset }: Page): SQL {
  const { db, runs, daemons, realms } = store
  const last = db
    .select({ id: runs.run_id })
    .from(runs)
    .leftJoin(daemons, eq(daemons.id, runs.daemon_id))
    .where(and(eq(runs.realm_id, realms.id), filters))
    .orderBy(desc(runs.run_id))
    .limit(1)
    .offset(limit + offset - 1)
  const newestLast = db
    .select({ id: sql`max((${last}))` })
    .from(realms)
    .where(reached)
  return sql`${runs.run_id} >= coalesce((${newestLast}), '')`
}
