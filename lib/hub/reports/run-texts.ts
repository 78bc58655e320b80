// What searches look in of each run: its name, its team and its id, with an index of their trigrams, so that a search costs
// no more where there are many runs. Triggers of the database fill it with each run, whichever version of a hub writes that;
// the texts of older runs come later, as a chore. Until all are there, and where the engine has no such index, a search reads
// the runs themselves.

import { inArray, type SQL, sql } from 'drizzle-orm'
import { postgres, sqlite } from '../../../db/hub/columns.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { MOST_COUNTED } from '../../wire/budget.ts'
import { BatchSize } from '../core/batch-size.ts'
import { hasTable } from '../core/has-table.ts'
import type { Hub } from '../core/hub.ts'

/** The shortest text that the index has. */
const TERM = 3
/** So many runs PostgreSQL reads in the time in which it collects some 200,000 by the index. */
const NEWEST = 30_000
/** What stands before the realm among the trigrams of PostgreSQL, and in no text. */
const REALM_MARK = '\x01'

const numbered = sqlite.table('run_texts', { number: sqlite.int(), run_id: sqlite.text(), text: sqlite.text() })
const listed = postgres.table('run_texts', {
  run_id: postgres.text(),
  realm_id: postgres.text(),
  text: postgres.text(),
})
const ofDialect = ({ table, int, text }: typeof sqlite) => table('run_text_fill', { one: int(), down_to: text() })
/** The runs down to which the texts of older runs have come. Without a row, all are there. */
const fills = { sqlite: ofDialect(sqlite), postgres: ofDialect(postgres) }

/** The realm of a list, or a condition of realms; undefined: all. */
export type Where = { realm: string } | { reached: SQL | undefined }

export interface FoundTexts {
  /** How many there are, at most one more than is counted. */
  count: number
  /** The condition that a run is one of them. */
  isFound: SQL
}

/** The runs of these realms with `text` in what is searched, by the index; null if it cannot say. */
export async function findTexts(store: Store, where: Where, text: string): Promise<FoundTexts | null> {
  const { db, runs, dialect } = store
  if (text.includes('\0') || !(await hasTexts(store))) return null
  const { count, ids } = dialect === 'sqlite' ? inSqlite(store, where, text) : inPostgres(store, where, text)
  const [row] = await db
    .select({
      count: sql<number>`${count}`.mapWith(Number),
      missing: sql<number>`(SELECT count(*) FROM ${fills[dialect]})`.mapWith(Number),
    })
    .from(sql`(SELECT 1) AS one`)
  return row!.missing > 0 ? null : { count: row!.count, isFound: sql`${runs.run_id} ${ids}` }
}

/** How many there are, as far as is counted. */
const countOf = (found: SQL): SQL =>
  sql`(SELECT count(*) FROM (SELECT 1 FROM ${found} LIMIT ${MOST_COUNTED + 1}) AS found)`

/** The ids of the realms, as a query; null for all. */
function idsOf({ db, realms }: Store, where: Where): SQL | null {
  if ('realm' in where) return sql`(SELECT CAST(${where.realm} AS text))`
  return where.reached === undefined ? null : sql`${db.select({ id: realms.id }).from(realms).where(where.reached)}`
}

/** The numbers of the runs of a realm are a range. A text that is too short for the index is looked for in all texts. */
function inSqlite(store: Store, where: Where, text: string) {
  const isShort = Array.from(text).length < TERM
  const number = isShort ? sql`run_texts.number` : sql`run_grams.rowid`
  const has = isShort
    ? sql`instr(run_texts.text, ${text.toLowerCase()}) > 0`
    : sql`run_grams MATCH ${`"${text.replaceAll('"', '""')}"`}`
  const table = isShort ? sql`run_texts` : sql`run_grams`
  const realms = idsOf(store, where)
  const found =
    realms === null
      ? sql`${table} WHERE ${has}`
      : sql`text_realms AS r CROSS JOIN ${table} WHERE r.realm_id IN ${realms} AND ${has}
          AND ${number} > r.number << 40 AND ${number} < (r.number + 1) << 40`
  return {
    count: countOf(found),
    ids: sql`IN (SELECT run_id FROM run_texts WHERE number IN (SELECT ${number} FROM ${found}))`,
  }
}

/**
 * By the trigrams, which do not say that they follow each other. PostgreSQL collects all that an index finds, so it looks at
 * the newest runs first, which are enough for what most runs have.
 */
function inPostgres(store: Store, where: Where, text: string) {
  const folded = text.toLowerCase()
  const realms = idsOf(store, where)
  const has = sql`strpos(text, ${folded}::text) > 0`
  const found = sql`run_texts WHERE run_grams(realm_id, text) @@ ${queryOf(realms, folded)} AND ${has}`
  const newest = sql`(SELECT realm_id, text FROM run_texts ORDER BY run_id DESC LIMIT ${NEWEST}) AS newest
    WHERE ${has}${realms === null ? sql`` : sql` AND realm_id IN ${realms}`}`
  return {
    count: sql`(CASE WHEN ${countOf(newest)} > ${MOST_COUNTED} THEN ${MOST_COUNTED + 1} ELSE ${countOf(found)} END)`,
    ids: sql`= ANY (ARRAY(SELECT run_texts.run_id FROM ${found}))`,
  }
}

/** What the index is asked: for all trigrams of a text, or for any that a shorter text begins. */
function queryOf(realms: SQL | null, folded: string): SQL {
  const signs = Array.from(folded)
  const terms = new Set(signs.slice(TERM - 1).map((_, at) => signs.slice(at, at + TERM).join('')))
  const all = signs.length < TERM ? `${lexeme(folded)}:*` : [...terms].map(lexeme).join(' & ')
  if (realms === null) return sql`${all}::text::tsquery`
  const ofRealms = sql`SELECT string_agg(quote_literal(${REALM_MARK}::text || id), ' | ') FROM (${realms}) AS r (id)`
  return sql`(${all}::text::tsquery && coalesce((${ofRealms}), ${lexeme(REALM_MARK)}::text)::tsquery)`
}

const lexeme = (text: string): string => `'${text.replaceAll(/['\\]/g, '$&$&')}'`

/** Whether the database has the index. */
const hasTexts = (store: Store): Promise<boolean> => hasTable(store, 'run_text_fill')

/** Adds the texts of runs that are older than the index, the newest first. */
export async function* addTexts({ store }: Hub): AsyncGenerator<void> {
  if (!(await hasTexts(store))) return
  const size = new BatchSize()
  while (await size.timed(most => store.writeAfter(tx => addSome(store, tx, most)))) yield
}

/** Returns whether there may be more. */
async function addSome({ dialect, runs }: Store, tx: Db, most: number): Promise<boolean> {
  const fill = fills[dialect]
  const [at] = await tx.update(fill).set({ one: 1 }).returning({ down_to: fill.down_to })
  if (!at) return false
  const some = await tx
    .select({ id: runs.run_id })
    .from(runs)
    .where(at.down_to === null ? undefined : sql`${runs.run_id} < ${at.down_to}`)
    .orderBy(sql`${runs.run_id} DESC`)
    .limit(most)
  const ids = some.map(({ id }) => id)
  if (dialect === 'sqlite') for (const id of ids) await tx.insert(numbered).select(numberedText(id))
  else if (ids.length > 0) {
    const texts = sql`SELECT run_id, realm_id, text_of_run(run_name, team, run_id) FROM runs WHERE ${inArray(runs.run_id, ids)} FOR KEY SHARE`
    await tx.insert(listed).select(texts).onConflictDoNothing()
  }
  if (ids.length < most) await tx.delete(fill)
  else await tx.update(fill).set({ down_to: ids.at(-1)! })
  return ids.length === most
}

/** One at a time, because each text takes the next number of its realm. */
const numberedText = (id: string): SQL =>
  sql`SELECT number, run_id, text FROM texts_of_runs WHERE run_id = ${id} AND NOT EXISTS (SELECT 1 FROM run_texts WHERE run_id = ${id})`
