// Inserts many rows by one statement. Each statement opens all indexes of its table and its triggers, which costs more than
// a row.

import type { Database, Statement } from 'bun:sqlite'

export type Value = string | number | null

export class BatchInsert {
  readonly #db: Database
  readonly #into: string
  readonly #row: string
  /** The statements by the number of rows. The database has made them, so it finalises them when it is closed. */
  readonly #statements = new Map<number, Statement<unknown, Value[]>>()

  /** `into` names the table and its columns. `row` is one row of the statement, such as `(?, ?, 'pending')`. */
  constructor(db: Database, into: string, row: string) {
    this.#db = db
    this.#into = into
    this.#row = row
  }

  /** Inserts so many rows. `values` are their parameters, row by row. Returns the rowid of the last one. */
  run(rows: number, values: readonly Value[]): number {
    let statement = this.#statements.get(rows)
    if (!statement) {
      statement = this.#db.query(`INSERT INTO ${this.#into} VALUES ${Array(rows).fill(this.#row).join(', ')}`)
      this.#statements.set(rows, statement)
    }
    return Number(statement.run(...values).lastInsertRowid)
  }
}
