// Statements that are built once. Drizzle otherwise builds a statement for every call, which takes longer than SQLite
// needs to carry it out. The calls that daemons repeat all the time use these.

import { type AnyColumn, type Placeholder, type SQL, sql } from 'drizzle-orm'
import { connectionOf } from './postgres-store.ts'
import type { Db, Store } from './store.ts'

/** The place of a value that is given at each call. */
export type Slot<Name extends string> = (name: Name) => Placeholder

interface Kept<Result> {
  execute(values: Record<string, unknown>): PromiseLike<Result>
}

/**
 * A statement that `build` makes once for each connection. Its values are those that `build` takes from its slot by name.
 * A value goes to the database as it is, so it must not be a JSON, a boolean or null.
 */
export function prepared<Name extends string, Result>(
  build: (store: Store, db: Db, slot: Slot<Name>) => { prepare(): Kept<Result> },
): (store: Store, db: Db, values: Readonly<Record<Name, string | number>>) => Promise<Result> {
  return preparedForAny(build)
}

/** The same for any values, in an object or a list. */
export function preparedForAny<Result>(
  build: (store: Store, db: Db, slot: Slot<string>) => { prepare(): Kept<Result> },
): (store: Store, db: Db, values: object) => Promise<Result> {
  const known = new WeakMap<Db, Kept<Result>>()
  return async (store, db, values) => {
    // On SQLite there are two connections, one that reads and one that writes. A transaction of PostgreSQL is on any
    // connection of the pool, and takes the statements that were built for all of them.
    const on = store.dialect === 'sqlite' ? db : store.db
    let found = known.get(on)
    if (!found) {
      found = build(store, on, slot).prepare()
      known.set(on, found)
    }
    return inTransaction(found, db).execute(values as Record<string, unknown>)
  }
}

const slot = (name: string): Placeholder => sql.placeholder(name)

/**
 * A kept statement of PostgreSQL in a transaction. That a statement of Drizzle has its connection in `client` is not public,
 * and there is no public way: tests/hub/statements.test.ts fails when it is no longer so.
 */
function inTransaction<Result>(found: Kept<Result>, tx: Db): Kept<Result> {
  const connection = connectionOf(tx)
  return connection === undefined ? found : Object.create(found, { client: { value: connection } })
}

// A list is given to PostgreSQL as text, because Bun makes a JSON string of a text that is a parameter of type JSON.

/** The condition that a column of text has one of the values in `names`, a JSON list. */
export function isAmong({ dialect }: Pick<Store, 'dialect'>, column: AnyColumn, names: Placeholder | string): SQL {
  return dialect === 'sqlite'
    ? sql`${column} IN (SELECT value FROM json_each(${names}))`
    : sql`${column} = ANY (ARRAY(SELECT json_array_elements_text(${names}::text::json)))`
}

/** The values in `list`, a JSON list, as rows `t` with the column `value`. */
export function rowsFrom({ dialect }: Pick<Store, 'dialect'>, list: Placeholder): SQL {
  return dialect === 'sqlite' ? sql`json_each(${list}) AS t` : sql`json_array_elements(${list}::text::json) AS t`
}

/** How many values a statement takes as a list, so that other calls get their turn. */
const MOST_VALUES = 500

/** `all` as lists for statements. */
export function inParts(all: readonly unknown[]): string[] {
  const parts: string[] = []
  for (let at = 0; at < all.length; at += MOST_VALUES) parts.push(JSON.stringify(all.slice(at, at + MOST_VALUES)))
  return parts
}
