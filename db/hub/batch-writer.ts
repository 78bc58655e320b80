// Writes many rows with each statement. The columns are those of the table in the schema, so a new column does not compile
// until every writer of its table gives it a value or names it in `left`. The statements are of a few sizes, each of
// which is built once.

import { eq, getTableColumns, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { inParts, prepared, preparedForAny, rowsFrom, type Slot } from './prepared.ts'
import type { Db, Store } from './store.ts'

/** How many rows a statement inserts. More rows take several statements. */
const SIZES = [128, 32, 4, 1]

type Name<Table extends SQLiteTable> = keyof Table['$inferSelect'] & string
type Write<Row> = (store: Store, tx: Db, rows: readonly Row[], endTurn?: () => unknown) => Promise<void>

interface Writing<Column extends string, Left extends Column> {
  /** Columns that rows do not give: a new row gets their defaults, and a row that exists keeps them. */
  left?: readonly Left[]
  /** The columns of the key by which a row exists. Without it, a row that exists is an error. */
  key?: readonly Column[]
  /** Columns that a row that exists keeps. */
  keeps?: 'all' | readonly Column[]
  /** Columns that a row that exists keeps when the new value is null. */
  keepsForNull?: readonly Column[]
}

/**
 * Returns the function that inserts rows of a table, or updates those that exist. Two rows of a call must not have the
 * same key, unless rows keep all columns. `endTurn` is awaited between the statements.
 */
export function batchWriter<Table extends SQLiteTable, Left extends Name<Table> = never>(
  table: (store: Store) => Table,
  writing: Writing<Name<Table>, Left> = {},
): Write<Omit<Table['$inferSelect'], Left>> {
  const statements = SIZES.map(size => ({
    size,
    write: preparedForAny((store, db, slot) => insertion(db, table(store), writing, size, slot)),
  }))
  return async (store, tx, rows, endTurn) => {
    const columns = written(table(store), writing)
    const encoded = (row: object) => columns.map(([name, column]) => encode(column, row, name))
    let at = 0
    for (const { size, write } of statements) {
      for (; rows.length - at >= size; at += size) {
        await write(store, tx, rows.slice(at, at + size).flatMap(encoded))
        await endTurn?.()
      }
    }
  }
}

/** Returns the function that sets the columns `set` of rows that exist, which it finds by the column `key`. */
export function batchUpdater<Table extends SQLiteTable, Column extends Name<Table>>(
  table: (store: Store) => Table,
  { key, set }: { key: Column; set: readonly Column[] },
): Write<Pick<Table['$inferSelect'], Column>> {
  const update = prepared((store, db, slot: Slot<'rows'>) => {
    const columns = columnsOf(table(store))
    const value = (name: string, at: number) =>
      sql`CAST(t.value->>${sql.raw(`${at}`)} AS ${sql.raw(columns[name]!.getSQLType())})`
    return db
      .update<SQLiteTable>(table(store))
      .set(Object.fromEntries(set.map((name, at) => [name, value(name, at + 1)])))
      .from(rowsFrom(store, slot('rows')))
      .where(eq(columns[key]!, value(key, 0)))
  })
  return async (store, tx, all, endTurn) => {
    const columns = columnsOf(table(store))
    const encoded = all.map(row => [key, ...set].map(name => encode(columns[name]!, row, name)))
    for (const rows of inParts(encoded)) {
      await update(store, tx, { rows })
      await endTurn?.()
    }
  }
}

const columnsOf = (table: SQLiteTable): Record<string, SQLiteColumn> => getTableColumns(table)

/** The columns that rows give, by name. */
const written = (table: SQLiteTable, { left = [] }: { left?: readonly string[] }): [string, SQLiteColumn][] =>
  Object.entries(columnsOf(table)).filter(([name]) => !left.includes(name))

function encode(column: SQLiteColumn, row: object, name: string): unknown {
  const value = (row as Record<string, unknown>)[name]
  return value == null ? null : column.mapToDriverValue(value)
}

/** The statement for `size` rows. Its values have the numbers of their places. */
function insertion(db: Db, table: SQLiteTable, writing: Writing<string, string>, size: number, slot: Slot<string>) {
  const { key, keeps = [], keepsForNull = [] } = writing
  const columns = written(table, writing)
  const value = (row: number, at: number) => sql`${slot(String(row * columns.length + at))}`
  const rows = Array.from({ length: size }, (_, row): Record<string, SQL> => {
    return Object.fromEntries(columns.map(([name], at) => [name, value(row, at)]))
  })
  const insert = db.insert(table).values(rows)
  if (!key) return insert
  if (keeps === 'all') return insert.onConflictDoNothing()
  const fresh = (name: string, column: SQLiteColumn) => {
    const given = sql`excluded.${sql.identifier(column.name)}`
    return keepsForNull.includes(name) ? sql`coalesce(${given}, ${column})` : given
  }
  const set = columns.filter(([name]) => !key.includes(name) && !keeps.includes(name))
  return insert.onConflictDoUpdate({
    target: key.map(name => columnsOf(table)[name]!),
    set: Object.fromEntries(set.map(([name, column]) => [name, fresh(name, column)])),
  })
}
