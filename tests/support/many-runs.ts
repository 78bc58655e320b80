// Runs that have ended, written straight into the database of a daemon or a hub that is at work.

import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import type { JsonObject } from '../../lib/json.ts'
import type { TestHub } from './hub.ts'
import { insertRun, runIdAt } from './listed-runs.ts'

export interface MadeRun {
  /** The order in the list: a greater one is newer. */
  number: number
  team?: string
  run_name?: string
  inputs?: JsonObject
  error?: { code: string; message: string }
  state?: string
}

const BEGIN = Date.now() - 3_600_000

export const madeId = (number: number): string => runIdAt(BEGIN + number, number)

/** A run of the home lends them its team, without which none of them could be opened. */
export function addToHome(home: string, made: readonly MadeRun[]): void {
  using db = new Database(join(home, 'daemon.db'))
  db.run('PRAGMA busy_timeout = 5000')
  db.transaction(() => {
    for (const { number, team = '@a/t', state = 'completed', ...more } of made)
      insertRun(db, { id: madeId(number), parent_id: null, team, state, started_at: BEGIN + number, ...more })
    const lent = "SELECT bundle_id, team_key FROM runs WHERE bundle_id <> 'b' LIMIT 1"
    db.run(`UPDATE runs SET (bundle_id, team_key) = (${lent}) WHERE bundle_id = 'b' AND EXISTS (${lent})`)
  }).immediate()
}

export async function addToHub({ store }: TestHub, realm: string, made: readonly MadeRun[]): Promise<void> {
  const rows = made.map(({ number, team = '@a/t', state = 'completed', inputs = {}, ...more }) => {
    const run_id = madeId(number)
    const at = BEGIN + number
    const place = { root_run_id: run_id, call_path: [team], call_depth: 0, tree_key: '', realm_id: realm, team }
    const times = { created_at: at, started_at: at, completed_at: at }
    return { run_id, ...place, ...times, state, inputs, attempt: 1, ...more }
  })
  await store.write(tx => tx.insert(store.runs).values(rows))
}

/** Adds a realm besides the one that a hub of tests has, of the same org. */
export async function addRealm({ store }: TestHub, id: string): Promise<void> {
  const [first] = await store.db.select().from(store.realms)
  await store.write(tx => tx.insert(store.realms).values({ ...first!, id, slug: id }))
}
