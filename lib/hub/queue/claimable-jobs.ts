// The statements that find jobs which can be claimed. Each reads by an index what it returns and no more, so that its cost
// does not grow with the number of jobs that wait. A waiting job is found by its kind, by the daemon that it is meant for
// and by what it needs (index `jobs_queue`, in the order in which jobs are delivered), a lapsed lease by its end
// (`jobs_lease`). What a job needs is decided once for all waiting jobs that need the same.

import { and, asc, desc, eq, getTableColumns, isNotNull, isNull, or, type SQL, sql } from 'drizzle-orm'
import { isAmong, prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { inState, isLapsed, type JobRow } from '../core/job-rows.ts'

type Kind = JobRow['kind']

/** Orders about runs that exist. They take no slot, and need nothing but their daemon. */
export const ORDER_KINDS: Kind[] = ['cancel', 'decide']
export const RUN_KINDS: Kind[] = ['run', 'resume']

/** Whether jobs are meant for one daemon, or for any. */
type Target = 'one' | 'any'

/** Waiting jobs of one kind that need the same. */
export interface JobGroup extends Pick<JobRow, 'kind' | 'needs' | 'needs_key'> {
  meant: Target
}

/** What is made for each of some keys, when it is first asked for. */
function builtOnce<Key, T>(make: (key: Key) => T): (key: Key) => T {
  const known = new Map<Key, T>()
  return key => {
    const found = known.get(key) ?? make(key)
    known.set(key, found)
    return found
  }
}

/**
 * An order waits until a daemon has accepted its run. A daemon that had it before could not know the run, and would
 * refuse the order while the run goes to another. A cancel keeps the run from being accepted meanwhile.
 */
function isDeliverable({ jobs, runs }: Store): SQL {
  // PostgreSQL might answer an EXISTS by reading all runs.
  const acceptedBy = sql`(SELECT ${runs.daemon_id} FROM ${runs} WHERE ${runs.run_id} = ${jobs.run_id})`
  return or(eq(jobs.kind, sql.raw(`'run'`)), isNotNull(acceptedBy))!
}

/** The waiting jobs of a kind that are meant for one daemon, or for any. */
function isWaiting(store: Store, slot: Slot<'realm' | 'daemon'>, meant: Target, kind: SQL): SQL {
  const { jobs } = store
  const daemon = meant === 'any' ? isNull(jobs.daemon_id) : eq(jobs.daemon_id, slot('daemon'))
  return and(
    eq(jobs.realm_id, slot('realm')),
    inState(store, 'waiting'),
    eq(jobs.kind, kind),
    daemon,
    isDeliverable(store),
  )!
}

/** Rows `kinds` with the column `column1`. */
const kindsAsRows = (kinds: readonly Kind[]): SQL =>
  sql.raw(`(VALUES ${kinds.map(kind => `('${kind}')`).join(', ')}) AS kinds`)

/**
 * The different needs of the waiting jobs of some kinds, each once. The index is asked for the next key after the last
 * one, so that the cost is that of the different needs, however many jobs wait.
 */
function selectGroups(store: Store, slot: Slot<'realm' | 'daemon'>, meant: Target, kinds: readonly Kind[]): SQL {
  const { jobs } = store
  // PostgreSQL takes the index, and not the first rows of the table, only when the order is asked for.
  const first = (column: typeof jobs.needs | typeof jobs.needs_key, kind: SQL, more: SQL) =>
    sql`(SELECT ${column} FROM ${jobs} WHERE ${and(isWaiting(store, slot, meant, kind), more)}
      ORDER BY ${jobs.daemon_id}, ${jobs.needs_key} LIMIT 1)`
  const kind = sql`found.kind`
  return sql`SELECT ${sql.raw(`'${meant}'`)} AS meant, kind, needs_key,
      ${first(jobs.needs, kind, sql`${jobs.needs_key} = found.needs_key`)} AS needs
    FROM (
      WITH RECURSIVE found(kind, needs_key) AS (
        SELECT column1, ${first(jobs.needs_key, sql`column1`, sql`true`)} FROM ${kindsAsRows(kinds)}
        UNION ALL
        SELECT kind, ${first(jobs.needs_key, kind, sql`${jobs.needs_key} > found.needs_key`)}
        FROM found WHERE needs_key IS NOT NULL
      )
      SELECT kind, needs_key FROM found WHERE needs_key IS NOT NULL
    ) AS found`
}

interface JobGroupRow extends Omit<JobGroup, 'needs'> {
  needs: string | null
}

const readGroup = ({ needs, ...rest }: JobGroupRow): JobGroup => ({
  ...rest,
  needs: needs === null ? null : JSON.parse(needs),
})

const groupColumns = {
  meant: sql<Target>`meant`,
  kind: sql<Kind>`kind`,
  needs_key: sql<string>`needs_key`,
  needs: sql<string | null>`needs`,
}

const groupsOfKinds = builtOnce((kinds: readonly Kind[]) =>
  prepared((store, db, slot: Slot<'realm' | 'daemon'>) => {
    const [one, any] = [selectGroups(store, slot, 'one', kinds), selectGroups(store, slot, 'any', kinds)]
    return db.select(groupColumns).from(sql`(${one} UNION ALL ${any}) AS alike`)
  }),
)

const ALL_KINDS = [...ORDER_KINDS, ...RUN_KINDS]

/** What waits for a daemon, or for any: orders, and with `work` also runs and resumptions. */
export async function waitingGroupsFor(
  store: Store,
  db: Db,
  realm: string,
  daemon: string,
  work: boolean,
): Promise<JobGroup[]> {
  return (await groupsOfKinds(work ? ALL_KINDS : ORDER_KINDS)(store, db, { realm, daemon })).map(readGroup)
}

const runsForAny = prepared((store, db, slot: Slot<'realm' | 'daemon'>) =>
  db.select(groupColumns).from(sql`(${selectGroups(store, slot, 'any', ['run'])}) AS alike`),
)

/** The runs that wait for any daemon. */
export async function waitingRunsForAny(store: Store, realm: string): Promise<JobGroup[]> {
  return (await runsForAny(store, store.db, { realm, daemon: '' })).map(readGroup)
}

/** A job with the name of the user who asked for it. */
export interface ClaimedJob extends JobRow {
  by: string | null
}

/** The columns of a job that is claimed. */
const claimedColumns = ({ jobs, users }: Store) => ({
  ...getTableColumns(jobs),
  by: sql<string | null>`(SELECT ${users.username} FROM ${users} WHERE ${users.id} = ${jobs.created_by})`,
})

/** The waiting jobs of a kind with the same needs, in the order in which they are delivered. */
export const jobsOfGroup = builtOnce((meant: Target) =>
  prepared((store, db, slot: Slot<'realm' | 'daemon' | 'kind' | 'key' | 'limit'>) => {
    const { jobs } = store
    return (
      db
        .select(claimedColumns(store))
        .from(jobs)
        .where(and(isWaiting(store, slot, meant, sql`${slot('kind')}`), eq(jobs.needs_key, slot('key'))))
        // PostgreSQL uses the order of the index only when the daemon, the same for all rows, stands here too.
        .orderBy(asc(jobs.daemon_id), desc(jobs.priority), asc(jobs.created_at), asc(jobs.id))
        .limit(slot('limit'))
    )
  }),
)

/** The daemons for which jobs wait, each once for a kind. The index is asked for the next one after the last. */
export const daemonsWithJobs = prepared((store, db, slot: Slot<'realm'>) => {
  const { jobs } = store
  const first = (kind: SQL, more: SQL) => {
    const those = and(
      eq(jobs.realm_id, slot('realm')),
      inState(store, 'waiting'),
      eq(jobs.kind, kind),
      more,
      isDeliverable(store),
    )
    return sql`(SELECT ${jobs.daemon_id} FROM ${jobs} WHERE ${those} ORDER BY ${jobs.daemon_id} LIMIT 1)`
  }
  const found = sql`(
    WITH RECURSIVE found(kind, id) AS (
      SELECT column1, ${first(sql`column1`, isNotNull(jobs.daemon_id))} FROM ${kindsAsRows(ALL_KINDS)}
      UNION ALL
      SELECT kind, ${first(sql`found.kind`, sql`${jobs.daemon_id} > found.id`)} FROM found WHERE id IS NOT NULL
    )
    SELECT kind, id FROM found WHERE id IS NOT NULL
  ) AS found`
  return db.select({ kind: sql<Kind>`kind`, id: sql<string>`id` }).from(found)
})

/** Jobs that were delivered and not accepted in time. */
const hasLapsed = (store: Store, slot: Slot<'realm' | 'now'>): SQL =>
  and(eq(store.jobs.realm_id, slot('realm')), isLapsed(store, slot('now')), isDeliverable(store))!

export const lapsedJobs = prepared((store, db, slot: Slot<'realm' | 'now'>) =>
  db.select().from(store.jobs).where(hasLapsed(store, slot)).orderBy(store.jobs.lease_until),
)

/** Those of some kinds that are not meant for another daemon. */
export const lapsedJobsFor = prepared((store, db, slot: Slot<'realm' | 'now' | 'daemon' | 'kinds'>) => {
  const { jobs } = store
  const open = or(isNull(jobs.daemon_id), eq(jobs.daemon_id, slot('daemon')))
  return db
    .select(claimedColumns(store))
    .from(jobs)
    .where(and(hasLapsed(store, slot), isAmong(store, jobs.kind, slot('kinds')), open))
    .orderBy(jobs.lease_until)
})
