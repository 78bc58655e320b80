// Homes that have lived for longer than a test takes. Called between two daemons of the home.

import { Database } from 'bun:sqlite'
import { join } from 'node:path'

const HOUR_MS = 3_600_000

export function change(home: string, sql: string, ...values: (string | number)[]): void {
  using db = new Database(join(home, 'daemon.db'))
  db.query(sql).run(...values)
}

function factOf(home: string, key: string): string | undefined {
  using db = new Database(join(home, 'daemon.db'), { readonly: true })
  return db.query<{ value: string }, [string]>('SELECT value FROM meta WHERE key = ?').get(key)?.value
}

export const livedIn = (home: string): number => Number(factOf(home, 'lived'))

/** The lived time at which the home deletes old things next. */
export const sweepOf = (home: string): number => JSON.parse(factOf(home, 'ages')!).sweep

/** The home has lived for some hours more. */
export function liveOn(home: string, hours: number): void {
  change(home, "UPDATE meta SET value = ? WHERE key = 'lived'", String(livedIn(home) + hours * HOUR_MS))
}

/**
 * What is in the home was there before it noted ages, so all of it is as old as it says. It has lived for an hour more,
 * so the next start deletes what is old.
 */
export function forgetAges(home: string): void {
  const all = Number.MAX_SAFE_INTEGER
  const known = factOf(home, 'ages')
  const belief = known ? JSON.parse(known) : { offset: Date.now() - livedIn(home), trial: null, sweep: 0 }
  const text = JSON.stringify({ ...belief, marks: [{ at: 0, run: all, audit: all, firing: all }] })
  change(home, "INSERT OR REPLACE INTO meta (key, value) VALUES ('ages', ?)", text)
  liveOn(home, 1)
}
