// Many rows with each statement. The statements are of a few sizes, each of which is built once.

import { getTableColumns, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { kept, type Slot } from './prepared.ts'
import type { Db, Store } from './store.ts'

/** How many rows a statement writes. More rows take several statements. */
const SIZES = [128, 32, 4, 1]

type Names<Table extends SQLiteTable> = readonly (keyof Table['_']['columns'] & string)[]

interface Writing<Table extends SQLiteTable> {
  table(store: Store): Table
  /** The columns that rows give. */
  columns: Names<Table>
  /**
   * What becomes of a row that exists: it stays as it is, or the columns `set` are set, and those of `fill` to values that
   * are not null. Without it, that is an error.
   */
  known?: 'kept' | { key: Names<Table>; set: Names<Table>; fill?: Names<Table> }
}

type Known = 'kept' | { key: readonly string[]; set: readonly string[]; fill?: readonly string[] } | undefined

/** Returns the function that writes rows of a table. Two rows of a call must not have the same key, unless `known` is `kept`. */
export function rowWriter<Table extends SQLiteTable>({ table, columns, known }: Writing<Table>) {
  const statements = SIZES.map(size => ({
    size,
    write: kept((store, db, slot) => insertion(db, table(store), columns, size, slot, known)),
  }))
  /** `endTurn` is awaited between the statements. */
  return async (store: Store, tx: Db, rows: readonly Table['$inferInsert'][], endTurn?: () => unknown) => {
    const encoders = columns.map(name => columnsOf(table(store))[name]!)
    const encoded = (row: Record<string, unknown>) =>
      columns.map((name, at) => (row[name] == null ? null : encoders[at]!.mapToDriverValue(row[name])))
    let at = 0
    for (const { size, write } of statements) {
      for (; rows.length - at >= size; at += size) {
        await write(store, tx, rows.slice(at, at + size).flatMap(encoded))
        await endTurn?.()
      }
    }
  }
}

const columnsOf = (table: SQLiteTable): Record<string, SQLiteColumn> => getTableColumns(table)

/** The statement for `size` rows. Its values have the numbers of their places. */
function insertion(
  db: Db,
  table: SQLiteTable,
  columns: readonly string[],
  size: number,
  slot: Slot<string>,
  known: Known,
) {
  const all = columnsOf(table)
  const value = (row: number, at: number) => sql`${slot(String(row * columns.length + at))}`
  const rows = Array.from({ length: size }, (_, row): Record<string, SQL> => {
    return Object.fromEntries(columns.map((name, at) => [name, value(row, at)]))
  })
  const insert = db.insert(table).values(rows)
  if (known === undefined) return insert
  if (known === 'kept') return insert.onConflictDoNothing()
  const fresh = (name: string) => sql`excluded.${sql.identifier(all[name]!.name)}`
  const set = Object.fromEntries([
    ...known.set.map(name => [name, fresh(name)]),
    ...(known.fill ?? []).map(name => [name, sql`coalesce(${fresh(name)}, ${all[name]})`]),
  ])
  return insert.onConflictDoUpdate({ target: known.key.map(name => all[name]!), set })
}
