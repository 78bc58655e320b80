// The file beside a SQLite database that says which database was here last. A copy that is put in its place does not
// have the same mark inside, or a lower count.

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

export interface Marked {
  lineage: string
  mark: string
  /** The mark before, while the new one is being written into the database. */
  before: string | null
  /** The count of commits, or a lower one. */
  count: number
}

export class MarkFile {
  readonly #path: string

  constructor(database: string) {
    this.#path = `${database}.mark`
  }

  /** Null when there is none, or none that can be read. */
  read(): Marked | null {
    try {
      const found: Partial<Marked> | null = JSON.parse(readFileSync(this.#path, 'utf8'))
      const { lineage, mark, before = null, count } = found ?? {}
      if (lineage === undefined || mark === undefined || count === undefined) return null
      return { lineage, mark, before, count }
    } catch {
      return null
    }
  }

  write(marked: Marked): void {
    const temporary = `${this.#path}.draft`
    writeFileSync(temporary, `${JSON.stringify(marked)}\n`, { mode: 0o600 })
    const handle = openSync(temporary, 'r')
    fsyncSync(handle)
    closeSync(handle)
    renameSync(temporary, this.#path)
  }
}
