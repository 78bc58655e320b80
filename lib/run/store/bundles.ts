// Tables `bundles` and `meta`: the frozen teams of runs, and facts about this database.

import type { Database } from 'bun:sqlite'

export class Bundles {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  insert(id: string, text: string): void {
    this.#db.query('INSERT INTO bundles (id, json) VALUES (?, ?) ON CONFLICT DO NOTHING').run(id, text)
  }

  has(id: string): boolean {
    return this.#db.query<unknown, [string]>('SELECT 1 FROM bundles WHERE id = ?').get(id) !== null
  }

  get(id: string): string | null {
    return this.#db.query<{ json: string }, [string]>('SELECT json FROM bundles WHERE id = ?').get(id)?.json ?? null
  }

  /** Whether a team of a bundle lies in this folder. In JSON no text within quotes has these quotes. */
  hasFolder(folder: string): boolean {
    const written = `"folder":${JSON.stringify(folder)}`
    return this.#db.query<unknown, [string]>('SELECT 1 FROM bundles WHERE instr(json, ?) > 0').get(written) !== null
  }

  /** Deletes the bundles that no run needs any more. */
  dropUnused(): void {
    this.#db.query('DELETE FROM bundles WHERE NOT EXISTS (SELECT 1 FROM runs WHERE bundle_id = bundles.id)').run()
  }
}

export class Facts {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  set(key: string, value: string): void {
    this.#db
      .query('INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value')
      .run(key, value)
  }

  get(key: string): string | null {
    return this.#db.query<{ value: string }, [string]>('SELECT value FROM meta WHERE key = ?').get(key)?.value ?? null
  }

  drop(key: string): void {
    this.#db.query('DELETE FROM meta WHERE key = ?').run(key)
  }

  /** The value of `key`. The first call creates it. */
  once(key: string, create: () => string): string {
    const known = this.get(key)
    if (known !== null) return known
    this.#db.query('INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING').run(key, create())
    return this.get(key)!
  }
}
