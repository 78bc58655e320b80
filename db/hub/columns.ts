// The column builders of the hub's schema, in two dialects with the same meaning. JSON is stored as text in both, so
// that the stored bytes are the same. Times are epoch milliseconds.

import { type SQL, sql } from 'drizzle-orm'
import {
  boolean,
  bigint as pgBigint,
  customType as pgCustom,
  index as pgIndex,
  integer as pgInteger,
  primaryKey as pgPrimaryKey,
  pgTable,
  text as pgText,
  uniqueIndex as pgUniqueIndex,
} from 'drizzle-orm/pg-core'
import {
  customType,
  index,
  integer,
  primaryKey,
  type SQLiteColumn,
  sqliteTable,
  text,
  uniqueIndex,
} from 'drizzle-orm/sqlite-core'

declare const sealedText: unique symbol
/** Text that only a hub with the right key can read (lib/hub/core/sealer.ts). */
export type Sealed = string & { readonly [sealedText]: true }

const jsonCodec = {
  dataType: () => 'text',
  toDriver: (value: unknown): string => JSON.stringify(value),
  fromDriver: (text: string) => JSON.parse(text),
}

export const sqlite = {
  table: sqliteTable,
  index,
  uniqueIndex,
  primaryKey,
  /** A number that the database assigns and never reuses. */
  id: () => integer().primaryKey({ autoIncrement: true }),
  /** `name` is given where the column has another name in the database. */
  text: (name = '') => text(name),
  /** What a sealer made, and no other text. */
  sealed: () => text().$type<Sealed>(),
  /** Text that sorts by its bytes. */
  key: () => text(),
  /** What an index takes of a key: the whole, here. */
  startOf: (column: SQLiteColumn): SQLiteColumn | SQL => column,
  /**
   * The part of a name after its scope, or the whole of one without a scope. In SQLite's migration each part of it stands in
   * quotes by itself, which have to be taken out by hand.
   */
  afterScope: (column: SQLiteColumn): SQL => sql`substr(${column}, instr(${column}, '/') + 1)`,
  /** A text of any length in an index that need not have it, which PostgreSQL's cannot. */
  inIndex: (column: SQLiteColumn): SQLiteColumn[] => [column],
  /** A column of an index that is sorted from the greatest value down. */
  descending: (column: SQLiteColumn): SQLiteColumn | SQL => sql`${column} desc`,
  /** Whole numbers and epoch milliseconds. */
  int: () => integer({ mode: 'number' }),
  bool: () => integer({ mode: 'boolean' }),
  json: <T>() => customType<{ data: T; driverData: string }>(jsonCodec)(),
}

export type Columns = typeof sqlite

/**
 * Characters of a key that PostgreSQL's indexes hold. They take no rows above 2,704 bytes, and a key that is compressed
 * well enough may not be counted on.
 */
export const KEY_START = 2_250
/** The same of a name. */
const NAME_START = 300

const pgBuilders: object = {
  table: pgTable,
  index: pgIndex,
  uniqueIndex: pgUniqueIndex,
  primaryKey: pgPrimaryKey,
  id: () => pgInteger().primaryKey().generatedAlwaysAsIdentity(),
  text: (name = '') => pgText(name),
  sealed: () => pgText(),
  // The database's own collation may pass over signs, or sort by language.
  key: () => pgCustom<{ data: string }>({ dataType: () => 'text COLLATE "C"' })(),
  startOf: (column: { name: string }) => sql.raw(`left("${column.name}", ${KEY_START})`),
  // Names are short, but the column has no bound.
  afterScope: (column: { name: string }) =>
    sql.raw(`left(substr("${column.name}", strpos("${column.name}", '/') + 1), ${NAME_START})`),
  inIndex: () => [],
  // In the order of ORDER BY … DESC, or PostgreSQL would sort.
  descending: (column: { desc(): { nullsFirst(): unknown } }) => column.desc().nullsFirst(),
  int: () => pgBigint({ mode: 'number' }),
  bool: () => boolean(),
  json: <T>() => pgCustom<{ data: T; driverData: string }>(jsonCodec)(),
} satisfies Record<keyof Columns, unknown>

/**
 * The same builders for PostgreSQL with the types of SQLite's builders, so that queries are written once. Drizzle has
 * no type for both dialects, so the cast is made here, once, and the store's tests run on both databases.
 */
export const postgres = pgBuilders as Columns
