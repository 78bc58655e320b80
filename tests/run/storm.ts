// The fault storm: stretches of an engine on one home, each a process (storm-engine.ts), until the time is over; then a
// calm. After each stretch the process has ended by itself, everything recorded is whole, and the quiet runs, which have
// nothing to do with it, are as they were. Ends with 0, or with 1 and what must not be.
//
//   bun tests/run/storm.ts FOLDER SEED SECONDS [fill]      FOLDER/home may be a small disk, which `fill` fills

import { expect } from 'bun:test'
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openHome } from '../support/home-rows.ts'
import { checkInvariants, checkKept, type Recorded } from '../support/invariants.ts'
import { endLeftIn } from '../support/left.ts'
import { environmentAt } from '../support/program.ts'
import { randomFrom } from '../support/random.ts'
import type { Stretch, Witnesses } from './storm-engine.ts'

/** Long enough for what has to be over in seconds. */
const SHORTEST_MS = 10_000
const LONGEST_MS = 15_000
/** For what goes on for ever: a busy machine has all the time that it needs to be done. */
const CALM_MS = 80_000

const [folder, seed, seconds, fill] = process.argv.slice(2) as [string, string, string, string?]
const home = join(folder, 'home')
const calls = join(folder, 'calls')
const going = join(folder, 'going')
const outside = { away: join(folder, 'away'), trap: join(folder, 'trap'), fill: fill === 'fill' }
for (const path of [home, outside.away, outside.trap]) mkdirSync(path, { recursive: true })
const random = randomFrom(Number(seed))
const secret = `hidden-${crypto.randomUUID()}`

async function live(stretch: Stretch): Promise<Witnesses> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'storm-engine.ts'), JSON.stringify(stretch)], {
    env: environmentAt(folder),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, said, words] = await Promise.all([child.exited, child.stderr.text(), child.stdout.text()])
  if (code !== 0) throw new Error(`the process ended with ${child.signalCode ?? code}:\n${said.slice(-6_000)}`)
  return stretch.witnesses ?? JSON.parse(words.split('\n')[1]!)
}

/** All that is recorded of the quiet runs whose time has not come. */
function rowsOf({ gate, done }: Witnesses): string {
  const db = openHome(home)
  try {
    const below = 'SELECT id FROM runs WHERE root_id IN (?, ?)'
    const tables = ['runs', 'phases', 'items', 'reviews', 'receipts', 'deliveries']
    return tables
      .map(table => {
        const rows = db.query(`SELECT * FROM ${table} WHERE ${table === 'runs' ? 'id' : 'run_id'} IN (${below})`)
        return JSON.stringify(rows.all(gate, done), null, 1)
      })
      .join('\n')
  } finally {
    db.close()
  }
}

type Called = [does: string, run: string, name: string, attempt: number, at: number]

/** How often the quiet runs were called: once a file, once a process, once when a retry was due. */
function checkCalls({ gate, retry, stay, done }: Witnesses, lives: number, opened: boolean): void {
  const all = readFileSync(calls, 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Called)
  const of = (...runs: string[]) => all.filter(([, run]) => runs.includes(run))
  expect(of(gate).map(([, , name]) => name)).toEqual(opened ? ['before.txt', 'after.txt'] : ['before.txt'])
  expect(
    of(done)
      .map(([, , name]) => name)
      .sort(),
  ).toEqual(['large.txt', 'small.txt'])
  const known = new Set([gate, retry, stay, done])
  expect(all.filter(([, run]) => !known.has(run)).map(([, , name]) => name)).toEqual(['item.txt', 'item.txt'])
  const stays = of(stay)
  expect(stays.length).toBeLessThanOrEqual(lives)
  expect(new Set(stays.map(([, , , attempt]) => attempt)).size).toBe(stays.length)
  const retries = of(retry)
  // When they were made says nothing: a clock that leaps ahead makes them due, and may leap back before they begin.
  for (const [n, [, , , attempt]] of retries.entries()) expect(attempt).toBe(n + 1)
}

/** No file of the home has the secret, save the artifacts, which are their agents' own. */
function checkSecret(at = home): void {
  for (const name of readdirSync(at)) {
    const path = join(at, name)
    const found = lstatSync(path)
    if (found.isDirectory() && name !== 'files' && name !== 'work') {
      if ((found.mode & 0o500) !== 0o500) chmodSync(path, 0o700)
      checkSecret(path)
    } else if (found.isFile() && (found.mode & 0o400) !== 0) {
      expect([path, readFileSync(path).includes(secret)]).toEqual([path, false])
    }
  }
}

let before: Recorded | null = null
let rows: string | null = null
let witnesses: Witnesses | null = null
let lives = 0

async function next(calm: boolean, ms: number): Promise<void> {
  const stretch = { home, calls, going, outside, seed: Number(seed) + lives, ms, witnesses, calm, secret }
  witnesses = await live(stretch)
  lives++
  const after = checkInvariants(home, calm, new Set(existsSync(going) ? readFileSync(going, 'utf8').split('\n') : []))
  if (before) checkKept(before, after)
  before = after
  checkCalls(witnesses, lives, calm)
  if (!calm) {
    rows ??= rowsOf(witnesses)
    expect(rowsOf(witnesses)).toBe(rows)
  }
  checkSecret()
  expect(readdirSync(outside.trap)).toEqual([])
}

const until = performance.now() + Number(seconds) * 1_000
try {
  while (performance.now() < until)
    await next(false, Math.min(SHORTEST_MS + random.below(LONGEST_MS - SHORTEST_MS), until - performance.now()))
  await next(true, CALM_MS)
} catch (error) {
  console.error(`after ${lives} stretches: ${error instanceof Error ? error.message : error}`)
  if (existsSync(home) && process.env.CADRE_KEEP_STORM) {
    Bun.spawnSync(['cp', '-a', folder, process.env.CADRE_KEEP_STORM])
    console.error(`what is left: ${process.env.CADRE_KEEP_STORM}`)
  }
  await endLeftIn(home)
  process.exit(1)
}
const db = openHome(home)
const count = (table: string) => db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()!.n
console.log(
  JSON.stringify({ stretches: lives, runs: count('runs'), phases: count('phases'), reviews: count('reviews') }),
)
db.close()
