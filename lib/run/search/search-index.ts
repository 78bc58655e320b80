// The index of searches: `search.db` in the home, which one thread fills from the run database, behind its commits. It
// holds nothing that the run database does not have, and begins anew when it is missing, damaged, or of another copy.

import { type Database, SQLiteError } from 'bun:sqlite'
import { rmSync } from 'node:fs'
import { openDatabase } from '../../../db/open.ts'
import { indexedText, searchedRuns } from './text.ts'

/** Another form of the index begins it anew. */
const VERSION = '4'

/** Runs that are indexed in one transaction; about 20 ms. */
const AT_ONCE = 200

/**
 * The index knows which runs have a term, and not where in their texts: it is half as large, and filled in half of the time
 * (measured for a million runs: 175 MB instead of 326 MB).
 */
const TABLES = `
  CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5(text, detail = none, columnsize = 0, tokenize = "trigram case_sensitive 1");
  CREATE VIRTUAL TABLE IF NOT EXISTS terms USING fts5vocab(texts, row);`

/** What the run database keeps of the index: up to which change and run it is complete on disk, and which index that is. */
export interface Kept {
  token: string
  seq: number
  filled: number
}

export class SearchIndex {
  readonly #file: string
  /** The run database, for reading only. */
  readonly #runs: Database
  #db: Database

  constructor(file: string, runs: Database) {
    this.#file = file
    this.#runs = runs
    this.#db = this.#open()
    if (!this.#isUsable()) this.#beginAnew()
  }

  get db(): Database {
    return this.#db
  }

  /** The last change that is indexed. */
  get seq(): number {
    return Number(this.#mark('seq') ?? 0)
  }

  /** The runs up to this number are indexed, but for changes after `seq`. */
  get filled(): number {
    return Number(this.#mark('filled') ?? 0)
  }

  /** Indexes some of what has changed, or else of the runs that it may have. Returns whether there is more to do. */
  fillSome(): boolean {
    const { seq } = this
    const changes = this.#runs
      .query<{ seq: number; run: number }, [number]>(
        `SELECT seq, run FROM search_changes WHERE seq > ? ORDER BY seq LIMIT ${AT_ONCE}`,
      )
      .all(seq)
    if (changes.length > 0) {
      this.#put([...new Set(changes.map(({ run }) => run))], { seq: changes.at(-1)!.seq })
      return true
    }
    const { filled } = this
    const { upto } = this.#runs.query<{ upto: number }, []>('SELECT run AS upto FROM search_upto').get()!
    if (filled >= upto) return false
    const numbers = this.#runs
      .query<{ number: number }, [number, number]>(
        `SELECT rowid AS number FROM runs WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT ${AT_ONCE}`,
      )
      .all(filled, upto)
      .map(({ number }) => number)
    this.#put(numbers, { filled: numbers.at(-1) ?? upto })
    return true
  }

  /** Makes what is indexed durable. The run database may then forget the changes up to `seq`. */
  keep(): Kept {
    const { seq, filled } = this
    const next: Kept = { token: crypto.randomUUID(), seq, filled }
    const current = this.#mark('kept')
    this.#db.transaction(() => {
      if (current !== null) this.#set('former', current)
      this.#set('kept', JSON.stringify(next))
    })()
    this.#db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    return next
  }

  close(): void {
    this.#db.close()
  }

  /** Closes and removes it. The next one begins anew. */
  remove(): void {
    this.#db.close()
    removeFiles(this.#file)
  }

  #beginAnew(): void {
    this.remove()
    this.#db = this.#open()
    const { seq } = this.#runs.query<{ seq: number | null }, []>('SELECT max(seq) AS seq FROM search_changes').get()!
    this.#db.transaction(() => {
      this.#set('version', VERSION)
      this.#set('seq', String(seq ?? 0))
      const kept = keptIn(this.#runs)
      if (kept) this.#set('kept', JSON.stringify(kept))
    })()
  }

  /** A text that is there already stays, so that a change of something else costs a look. */
  #put(numbers: readonly number[], marks: Record<string, number>): void {
    const rows = new Map(searchedRuns(this.#runs, numbers).map(row => [row.number, row]))
    const known = this.#db.query<{ text: string }, [number]>('SELECT text FROM texts WHERE rowid = ?')
    const remove = this.#db.query('DELETE FROM texts WHERE rowid = ?')
    const insert = this.#db.query('INSERT INTO texts (rowid, text) VALUES (?, ?)')
    this.#db.transaction(() => {
      for (const number of numbers) {
        const row = rows.get(number)
        const was = known.get(number)?.text
        const is = row && indexedText(row)
        if (was === is) continue
        if (was !== undefined) remove.run(number)
        if (is !== undefined) insert.run(number, is)
      }
      for (const [name, value] of Object.entries(marks)) this.#set(name, String(value))
    })()
  }

  #open(): Database {
    try {
      return opened(this.#file)
    } catch (error) {
      if (!isDamage(error)) throw error
      removeFiles(this.#file)
      return opened(this.#file)
    }
  }

  #isUsable(): boolean {
    try {
      return this.#isOfTheseRuns()
    } catch (error) {
      if (!isDamage(error)) throw error
      return false
    }
  }

  /**
   * Whether all changes since the last one that is indexed are still there, and the run database is the one that was
   * indexed: it has the token that this index gave it last, or the one before when a process ended in between.
   */
  #isOfTheseRuns(): boolean {
    if (this.#mark('version') !== VERSION) return false
    const kept = keptIn(this.#runs)
    const [own, former] = [this.#kept('kept'), this.#kept('former')]
    if (kept?.token !== own?.token) {
      // Without a token the run database has forgotten nothing yet.
      if (kept && kept.token !== former?.token) return false
      if (!kept && former) return false
      if (kept) {
        this.#set('seq', String(kept.seq))
        this.#set('kept', JSON.stringify(kept))
      }
    }
    const { first, last, upto } = this.#runs
      .query<{ first: number | null; last: number | null; upto: number }, []>(
        `SELECT (SELECT min(seq) FROM search_changes) AS first, (SELECT max(seq) FROM search_changes) AS last,
           run AS upto FROM search_upto`,
      )
      .get()!
    return upto >= this.filled && (last ?? 0) >= this.seq && (first ?? 0) <= this.seq + 1
  }

  #kept(name: 'kept' | 'former'): Kept | null {
    const text = this.#mark(name)
    return text === null ? null : JSON.parse(text)
  }

  #mark(name: string): string | null {
    return (
      this.#db.query<{ value: string }, [string]>('SELECT value FROM marks WHERE name = ?').get(name)?.value ?? null
    )
  }

  #set(name: string, value: string): void {
    this.#db
      .query('INSERT INTO marks (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value')
      .run(name, value)
  }
}

/** Whether the file is damaged, as statements find out. */
export const isDamage = (error: unknown): boolean =>
  error instanceof SQLiteError && /^SQLITE_(NOTADB|CORRUPT)/.test(error.code ?? '')

function opened(file: string): Database {
  const db = openDatabase(file)
  try {
    // What a power cut takes from this file is indexed again: the run database keeps the changes since the last `keep`.
    db.run('PRAGMA synchronous = NORMAL')
    // The text of a deleted run does not stay in unused parts of the file. Some of its trigrams do until FTS5 merges them
    // away: with its own `secure-delete`, a change of state would cost 6.7 ms of processor time instead of 0.06 ms.
    db.run('PRAGMA secure_delete = ON')
    db.run(TABLES)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

function removeFiles(file: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true })
}

const KEPT = 'search_index'

export function keptIn(runs: Database): Kept | null {
  const row = runs.query<{ value: string }, [string]>('SELECT value FROM meta WHERE key = ?').get(KEPT)
  return row && JSON.parse(row.value)
}

/**
 * Forgets some of the changes that are indexed on disk. Returns whether there are more. The last one stays, so that numbers
 * only grow.
 */
export function forgetChanges(runs: Database, kept: Kept): boolean {
  const most = 5_000
  let more = false
  runs
    .transaction(() => {
      runs
        .query('INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value')
        .run(KEPT, JSON.stringify(kept))
      const { changes } = runs
        .query(
          `DELETE FROM search_changes WHERE seq IN (
             SELECT seq FROM search_changes WHERE seq <= ? AND seq < (SELECT max(seq) FROM search_changes)
             ORDER BY seq LIMIT ${most})`,
        )
        .run(kept.seq)
      more = changes === most
    })
    .immediate()
  return more
}

/**
 * Notes runs whose rows have changed, in the transaction of the changes: those that the index may have. A new run may have
 * the number of one that it has, when that was the last one and was deleted.
 */
export function noteChanges(runs: Database, numbers: ReadonlySet<number>): void {
  if (numbers.size === 0) return
  const { upto } = runs.query<{ upto: number }, []>('SELECT run AS upto FROM search_upto').get()!
  // Most runs begin and end above it.
  const indexed = [...numbers].filter(number => number <= upto)
  if (indexed.length === 0) return
  runs.query('INSERT INTO search_changes (run) SELECT value FROM json_each(?)').run(JSON.stringify(indexed))
}

/** Lets the index have all runs that there are, whose changes are noted from now on. */
export function offerRuns(runs: Database): void {
  runs.run('UPDATE search_upto SET run = (SELECT max(rowid) FROM runs) WHERE run < (SELECT max(rowid) FROM runs)')
}

/** About how many changes and runs the index does not have that the run database keeps that of, or else none. */
export function notIndexed(runs: Database, kept: Kept | null): number {
  const { first, last, end } = runs
    .query<{ first: number | null; last: number | null; end: number | null }, []>(
      `SELECT (SELECT min(seq) FROM search_changes) AS first, (SELECT max(seq) FROM search_changes) AS last,
         (SELECT max(rowid) FROM runs) AS "end"`,
    )
    .get()!
  return (last ?? 0) - (kept?.seq ?? first ?? 0) + Math.max(0, (end ?? 0) - (kept?.filled ?? 0))
}
