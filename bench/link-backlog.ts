// A daemon that was offline for long: what its return costs both sides, and whether a new run has to wait for it.

import { Database } from 'bun:sqlite'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../db/open.ts'
import { newDatabase, newHome, numbers, secondsSince, told, until } from './link-measure.ts'
import { inChunks, memory, post, startDaemon, teamText, type World } from './link-world.ts'

/** Brings `lines` log lines to the hub, which a daemon wrote while the hub was away. */
export async function backlog(world: World, lines: number): Promise<void> {
  const home = newHome()
  let daemon = await startDaemon(home, world)
  const team = newHome()
  await Bun.write(join(team, 'team.yml'), teamText('@admin/lines'))
  await world.hub.stop()
  const count = 10
  for (const _ of numbers(count))
    await post(daemon.url, null, 'runs/start', { path: team, inputs: { lines: lines / count } })
  await until(async () => (await post(daemon.url, null, 'runs/list', { state: 'completed', limit: 1 })).total === count)
  await daemon.stop()
  const bytes = readdirSync(join(home, 'runs')).reduce(
    (sum, id) => sum + statSync(join(home, 'runs', id, 'log.jsonl')).size,
    0,
  )
  await world.restart()
  const started = performance.now()
  daemon = await startDaemon(home, world)
  const fresh = await world.call('dispatch/run', { realm_id: world.realm, team: '@admin/noop' })
  let waited = 0
  const rows = new Database(join(home, 'daemon.db'), { readonly: true })
  const left = rows.query<{ n: number }, []>(
    'SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM runs WHERE log_due = 1) AS n',
  )
  await until(async () => {
    if (waited === 0) {
      const { state } = await world.call('runs/get', { run_id: fresh.run_id })
      if (state === 'completed') waited = secondsSince(started)
    }
    await Bun.sleep(20)
    return waited > 0 && left.get()!.n === 0
  })
  const took = secondsSince(started)
  const peaks = [await memory(daemon.pid, 'VmHWM'), await memory(world.hub.pid, 'VmHWM')]
  rows.close()
  await daemon.stop()
  const floor = (await rowFloor(world, Math.min(lines, 100_000))) * (lines / Math.min(lines, 100_000))
  const rate = (seconds: number) => `${Math.round(lines / seconds)} lines/s, ${(bytes / seconds / 1e6).toFixed(1)} MB/s`
  told(
    `a backlog of ${lines} lines`,
    `${(took / floor).toFixed(1)} ×`,
    `${took.toFixed(1)} s, ${rate(took)}; floor ${rate(floor)} (rows)`,
  )
  told('  peak memory of the daemon, of the hub', peaks.map(peak => `${peak} MiB`).join(', '))
  told(
    '  a run dispatched at its begin is complete on the hub',
    `${waited.toFixed(1)} s`,
    'after the start of the daemon',
  )
}

/** Seconds to insert `count` lines as rows, 500 a statement and 10,000 a transaction. */
async function rowFloor({ dialect, database }: World, count: number): Promise<number> {
  const row = (seq: number) => ({
    run_id: '01900000-0000-7000-8000-000000000000',
    seq,
    phase: 'p',
    at: Date.now(),
    stream: 'stdout',
    text: String(seq),
  })
  const columns = 'run_id TEXT, seq BIGINT, phase TEXT, at BIGINT, stream TEXT, text TEXT, PRIMARY KEY (run_id, seq)'
  if (dialect === 'postgres') {
    const sql = new Bun.SQL(database, { max: 1 })
    await sql.unsafe(`CREATE TABLE floor_lines (${columns})`)
    const started = performance.now()
    await inChunks(numbers(count), 10_000, some =>
      sql.begin(tx => inChunks(some, 500, part => tx`INSERT INTO floor_lines ${tx(part.map(row))}`)),
    )
    const took = secondsSince(started)
    await sql.close()
    return took
  }
  const db = openDatabase(newDatabase())
  db.run(`CREATE TABLE floor_lines (${columns})`)
  const insert = db.query(`INSERT INTO floor_lines VALUES ${Array(500).fill('(?, ?, ?, ?, ?, ?)').join(', ')}`)
  const started = performance.now()
  await inChunks(numbers(count), 10_000, async some =>
    db.transaction(() => {
      for (let at = 0; at < some.length; at += 500)
        insert.run(...some.slice(at, at + 500).flatMap(seq => Object.values(row(seq))))
    })(),
  )
  const took = secondsSince(started)
  db.close()
  return took
}
