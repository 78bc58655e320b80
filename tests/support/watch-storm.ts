// Files that come into a watched folder, by renames and by slow writes, while the daemon that watches it is killed again
// and again. Afterwards each file has started one run, with all of its bytes.

import { expect } from 'bun:test'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { until } from './bounded.ts'
import { files, spawnDaemon } from './daemon.ts'
import { folder } from './folder.ts'
import { rowsOf } from './home.ts'
import { type Random, randomFrom } from './random.ts'

const SETTLE_MS = 2_000
const PARTS = 4
const PART = 'x'.repeat(1_000)
/** How many files are written at once by slow writers. */
const WRITERS = 20
const BOUND_MS = 300_000

const TEAM = `name: "@local/reader"
version: 1.0.0
inputs: [{ name: file, type: string, required: true }]
phases:
  - { name: ask, type: gate, when: "false", review: { prompt: "Go on?" } }
`

export interface WatchStorm {
  seed: number
  /** How many files come, half of them by a rename. */
  files: number
  kills: number
  /** For how long a daemon lives, at most. */
  lifeMs: number
}

export async function watchStorm({ seed, files: many, kills, lifeMs }: WatchStorm) {
  const random = randomFrom(seed)
  const [home, at, beside] = [folder(), folder(), folder()]
  const team = files({ 'reader/team.yml': TEAM })
  const env = { CADRE_LOG_LEVEL: 'error' }
  mkdirSync(at, { recursive: true })

  let daemon = await spawnDaemon({ home, env })
  const spec = { name: 'in', kind: 'watch', team: `${team}/reader`, folder: at, settle: `${SETTLE_MS}ms`, poll: '5s' }
  const inputs = { file: '{{ files[0].path }}' }
  await daemon.call('/v1/triggers/add', { ...spec, inputs }, { authorization: `Bearer ${daemon.token}` })

  const written = writeAll(at, beside, many, kills * lifeMs, random)
  for (let killed = 0; killed < kills; killed++) {
    await Bun.sleep(lifeMs * (0.3 + random() * 0.7))
    await daemon.kill('SIGKILL')
    daemon = await spawnDaemon({ home, env })
  }
  const gaps = await written
  const count = (sql: string) => rowsOf<{ n: number }>(home, sql)[0]!.n
  await until(
    () => count("SELECT count(DISTINCT variables ->> '$.files[0].name') AS n FROM firings") === many,
    'each file has a firing',
    BOUND_MS,
  )
  // What is wrong would be reported by then.
  await Bun.sleep(2 * SETTLE_MS)
  await until(
    () => count('SELECT count(*) AS n FROM runs WHERE completed_at IS NULL') === 0,
    'all runs have ended',
    BOUND_MS,
  )
  await daemon.kill('SIGKILL')
  return { kills, ...check(home, gaps) }
}

/** Writes all files within about `ms`. Returns how long each slow writer paused at most. */
async function writeAll(
  at: string,
  beside: string,
  many: number,
  ms: number,
  random: Random,
): Promise<Map<string, number>> {
  const gaps = new Map<string, number>()
  let next = 0
  const writer = async () => {
    for (let n = next++; n < many; n = next++) {
      const name = `f-${n}.txt`
      await Bun.sleep((ms / many) * WRITERS * random())
      if (n % 2 === 0) {
        writeFileSync(join(beside, name), PART.repeat(PARTS))
        renameSync(join(beside, name), join(at, name))
      } else gaps.set(name, await writeSlowly(join(at, name), random))
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, writer))
  return gaps
}

async function writeSlowly(path: string, random: Random): Promise<number> {
  await using file = await open(path, 'w')
  let gap = 0
  let last = performance.now()
  for (let part = 0; part < PARTS; part++) {
    await file.write(PART)
    await Bun.sleep(50 + random() * 150)
    gap = Math.max(gap, performance.now() - last)
    last = performance.now()
  }
  return gap
}

/** A writer that paused for longer than a file rests may be reported half-way: its end counts in any case. */
function check(home: string, gaps: ReadonlyMap<string, number>) {
  const firings = rowsOf<{ state: string; run_id: string; variables: string }>(
    home,
    'SELECT * FROM firings ORDER BY seq',
  )
  const runs = rowsOf<{ id: string; inputs: string }>(home, 'SELECT id, inputs FROM runs')
  expect(firings.filter(({ state }) => state !== 'started')).toEqual([])
  expect(runs.map(({ id }) => id).sort()).toEqual(firings.map(({ run_id }) => run_id).sort())
  const fileOf = new Map(runs.map(({ id, inputs }) => [id, basename(JSON.parse(inputs).file)]))
  const reports = Map.groupBy(firings, ({ variables }) => JSON.parse(variables).files[0].name as string)
  let paused = 0
  for (const [name, all] of reports) {
    const bytes = all.map(({ variables }) => JSON.parse(variables).files[0].bytes as number)
    expect(all.map(({ run_id }) => fileOf.get(run_id))).toEqual(all.map(() => name))
    expect([name, bytes.at(-1)]).toEqual([name, PART.length * PARTS])
    if ((gaps.get(name) ?? 0) > SETTLE_MS / 2) paused++
    else expect([name, bytes.length]).toEqual([name, 1])
  }
  return { files: reports.size, runs: runs.length, paused }
}
