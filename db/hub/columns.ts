// The column builders of the hub's schema, in two dialects with the same meaning. JSON is stored as text in both, so
// that the stored bytes are the same. Times are epoch milliseconds.

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
import { customType, index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

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
  text: () => text(),
  /** Whole numbers and epoch milliseconds. */
  int: () => integer({ mode: 'number' }),
  bool: () => integer({ mode: 'boolean' }),
  json: <T>() => customType<{ data: T; driverData: string }>(jsonCodec)(),
}

export type Columns = typeof sqlite

const pgBuilders: object = {
  table: pgTable,
  index: pgIndex,
  uniqueIndex: pgUniqueIndex,
  primaryKey: pgPrimaryKey,
  id: () => pgInteger().primaryKey().generatedAlwaysAsIdentity(),
  text: () => pgText(),
  int: () => pgBigint({ mode: 'number' }),
  bool: () => boolean(),
  json: <T>() => pgCustom<{ data: T; driverData: string }>(jsonCodec)(),
} satisfies Record<keyof Columns, unknown>

/**
 * The same builders for PostgreSQL with the types of SQLite's builders, so that queries are written once. Drizzle has
 * no type for both dialects, so the cast is made here, once, and the store's tests run on both databases.
 */
export const postgres = pgBuilders as Columns
