// Measures one look at the schedules of a home of which none is due, which a serving daemon makes every second: over one
// schedule, over 10,000, and over 10,000 beside a million firings. The floor is a search of one index.
//
//   bun bench/triggers.ts [--schedules 10000] [--firings 1000000]

import type { Database } from 'bun:sqlite'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Daemon } from '../lib/daemon/runs/daemon.ts'
import { tick } from '../lib/daemon/triggers/tick.ts'
import { Triggers } from '../lib/daemon/triggers/triggers.ts'
import { createLog } from '../lib/log/log.ts'

const { values } = parseArgs({
  options: { schedules: { type: 'string', default: '10000' }, firings: { type: 'string', default: '1000000' } },
})
const SCHEDULES = Number(values.schedules)
const FIRINGS = Number(values.firings)
const LOOKS = 500
const MINUTE_MS = 60_000

const home = mkdtempSync(join(tmpdir(), 'cadre-bench-triggers-'))
const TEAM = 'name: "@local/bench"\nversion: 1.0.0\nphases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]\n'

/** Schedules as `add` makes them, which refuses so many. */
function addMore(db: Database): void {
  db.run(
    `WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?)
     INSERT INTO triggers SELECT 't' || n, 'more-' || n, kind, spec, revision, source, enabled, paused, problem, cursor,
       next_at + n, created_at, created_by, removed_at FROM triggers, n WHERE name = 'first'`,
    [SCHEDULES - 1],
  )
}

/** Final firings, one in three of them started, spread over the schedules. */
function addFirings(db: Database, now: number): void {
  db.run(
    `WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
     INSERT INTO firings (id, trigger_id, revision, occasion, at, seen_at, started_at, state, reason, run_id, count, variables)
     SELECT 'f' || n, 't' || (1 + n % ?2), 1, 'o' || n, ?3 - n, ?3 - n, iif(n % 3, NULL, ?3 - n),
       iif(n % 3, 'skipped', 'started'), iif(n % 3, 'missed', NULL), iif(n % 3, NULL, 'r' || n), 1, '{}' FROM n`,
    [FIRINGS, SCHEDULES - 1, now],
  )
}

interface Took {
  p50: number
  p99: number
}

async function measure(work: () => unknown): Promise<Took> {
  for (let n = 0; n < LOOKS / 10; n++) await work()
  const took: number[] = []
  for (let n = 0; n < LOOKS; n++) {
    const began = performance.now()
    await work()
    took.push(performance.now() - began)
  }
  took.sort((one, other) => one - other)
  return { p50: took[LOOKS / 2]!, p99: took[Math.ceil(LOOKS * 0.99) - 1]! }
}

const micro = (ms: number) => `${(ms * 1_000).toFixed(0)} µs`.padStart(9)
const say = (what: string, { p50, p99 }: Took, floor?: Took) =>
  console.log(
    `${what.padEnd(42)} p50 ${micro(p50)}  p99 ${micro(p99)}${floor ? `  ${(p50 / floor.p50).toFixed(1)} × floor` : ''}`,
  )

try {
  const daemon = await Daemon.open({ home, log: createLog({ level: 'error' }), env: {} })
  const { db } = daemon
  await daemon.openRuns.recover()
  const triggers = new Triggers(daemon)
  const team = join(home, 'team')
  mkdirSync(team)
  writeFileSync(join(team, 'team.yml'), TEAM)
  // Due in a year at the earliest.
  const at = new Date(Date.now() + 365 * 24 * 60 * MINUTE_MS).toISOString()
  await triggers.add({ name: 'first', kind: 'schedule', team, at: `${at.slice(0, 16)}Z`, tz: 'UTC' }, 'local:bench')
  const floorOf = () =>
    measure(() => db.query<unknown, [number]>('SELECT id FROM triggers WHERE next_at <= ?').all(Date.now()))
  const look = () => measure(() => tick(daemon, triggers))

  const floor = await floorOf()
  say('floor: a search of one index', floor)
  say('a look at 1 schedule', await look(), floor)
  addMore(db)
  say(`a look at ${SCHEDULES} schedules`, await look(), await floorOf())
  addFirings(db, Date.now())
  say(`a look at ${SCHEDULES}, beside ${FIRINGS} firings`, await look(), await floorOf())
  await daemon.close()
} finally {
  rmSync(home, { recursive: true, force: true })
}
