// A database that takes no more, as on a full disk.

import type { Database } from 'bun:sqlite'
import { expect } from 'bun:test'

/** Fills all but the last places of pages. `free` lets it grow again. */
export function fillDatabase(db: Database): { free(): void } {
  const { page_count } = db.query<{ page_count: number }, []>('PRAGMA page_count').get()!
  db.run('CREATE TABLE filler (text)')
  db.run(`PRAGMA max_page_count = ${page_count + 10}`)
  const fill = db.query('INSERT INTO filler VALUES (hex(randomblob(?)))')
  for (const bytes of [1_500, 100, 1]) {
    expect(() => {
      for (;;) fill.run(bytes)
    }).toThrow('full')
  }
  return { free: () => db.run('PRAGMA max_page_count = 1000000') }
}
