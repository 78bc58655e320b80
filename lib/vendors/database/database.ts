// What the agent needs of a database, whichever it is, and the table of receipts in which each write leaves its key.

import type { Json } from '../../json.ts'
import type { Statement } from './statement.ts'

export interface Batch {
  /** The names of the columns. They are the same in each batch. */
  columns: string[]
  rows: Json[][]
}

export interface Written {
  /** The number of rows that were inserted, changed or deleted; null when it is not known. */
  affected: number | null
  /** What RETURNING gave. */
  returned: Batch | null
  /** Whether an earlier attempt wrote this, according to the table of receipts. */
  before: boolean
}

/** The table in which each write leaves the key of its entry, in the same transaction. */
export interface Receipt {
  table: string
  key: string
}

export interface Database extends AsyncDisposable {
  /** The version of the server, the user, and what the user can do in spite of a read-only query, with one cheap query. */
  about(): Promise<{ version: string; user: string | null; risks: string[] }>
  /** The rows of a query in a read-only transaction, in batches of limited size, and at most `most` of them. */
  read(statement: Statement, most: number): AsyncGenerator<Batch, void>
  /** Executes a statement in a transaction. With a receipt it is executed only if its key is not there yet. */
  write(statement: Statement, receipt: Receipt | null): Promise<Written>
  /** What was written with this key; null when nothing was. A transaction that still runs is waited for. */
  find(receipt: Receipt): Promise<number | null | undefined>
}

/** The statements for the table of receipts, with the placeholders of the database. The name of the table comes from the settings. */
export function receiptsAt(placeholder: (number: number) => string) {
  return {
    add: (table: string) => `INSERT INTO ${table} (entry_key) VALUES (${placeholder(1)})`,
    count: (table: string) => `UPDATE ${table} SET affected = ${placeholder(1)} WHERE entry_key = ${placeholder(2)}`,
    get: (table: string) => `SELECT affected FROM ${table} WHERE entry_key = ${placeholder(1)}`,
  }
}
