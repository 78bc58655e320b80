// What the measurements of hub and daemons share: how a line is told, how something is waited for, and the floors, which
// do the least that the work needs without a hub around it.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../db/open.ts'
import type { World } from './link-world.ts'
import { type Server, serve } from './server.ts'

/** Removed at the end. */
const folder = mkdtempSync(join(tmpdir(), 'cadre-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

/** A home for a daemon, or the folder of a team. Packages run without a sandbox, which would be measured instead. */
export function newHome(): string {
  const home = mkdtempSync(join(folder, 'home-'))
  writeFileSync(join(home, 'settings.yml'), 'packages: { sandbox: none }\n', { mode: 0o600 })
  return home
}
/** The path of a new database. */
export const newDatabase = (): string => join(folder, `${crypto.randomUUID()}.db`)

export const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n)
export const secondsSince = (started: number): number => (performance.now() - started) / 1_000
export const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`

/** A line ends with its goal, where there is one, and with MISSED if the goal was not reached. */
export function told(name: string, value: string, about = '', goal?: { text: string; met: boolean }): void {
  const end = goal ? `goal ${goal.text}${goal.met ? '' : '  MISSED'}` : ''
  console.log(`${name.padEnd(52)} ${value.padStart(11)}  ${about.padEnd(58)} ${end}`.trimEnd())
}

/** Looks every `pause` ms. */
export async function until(condition: () => boolean | Promise<boolean>, pause = 2): Promise<void> {
  while (!(await condition())) await Bun.sleep(pause)
}

export const floorServer = (name: string): Promise<Server> =>
  serve([join(import.meta.dir, 'floors.ts'), name, newDatabase(), 'token'])

/** Commits one row at a time, durably, in a database of the same kind as the hub's. */
export async function commits({
  dialect,
  database,
}: World): Promise<{ one(): Promise<unknown>; close(): Promise<void> }> {
  if (dialect === 'sqlite') {
    const db = openDatabase(newDatabase())
    db.run('CREATE TABLE floor (id TEXT PRIMARY KEY, state TEXT)')
    const insert = db.query('INSERT INTO floor VALUES (?, ?)')
    return { one: async () => insert.run(crypto.randomUUID(), 'waiting'), close: async () => db.close() }
  }
  const sql = new Bun.SQL(database, { max: 1 })
  await sql.unsafe('CREATE TABLE IF NOT EXISTS floor (id TEXT PRIMARY KEY, state TEXT)')
  return {
    one: () => sql`INSERT INTO floor VALUES (${crypto.randomUUID()}, 'waiting')`,
    close: () => sql.close(),
  }
}
