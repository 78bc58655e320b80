// kill -9 at random moments in random storms. After every kill the home keeps every rule; what was recorded before is
// there unchanged; every few kills the storm ends, and then everything does, with nothing written twice.

import { expect } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../../db/open.ts'
import { checkInvariants, checkKept, type Recorded } from './invariants.ts'
import { type Random, randomFrom } from './random.ts'

const PROGRAM = join(import.meta.dir, 'chaos-engine.ts')
const LONGEST_LIFE_MS = 250
/** Kills of one home before its storm ends. */
const STORM = 12

export interface Toll {
  kills: number
  homes: number
  runs: number
  phases: number
  posts: number
}

/**
 * Storms with chances from `seed` for `ms` milliseconds or `kills` kills, whichever is over first. `onCalm` hears after
 * each storm what it all came to so far.
 */
export async function chaos(
  seed: number,
  limit: { ms?: number; kills?: number },
  onCalm: (toll: Toll) => void = () => {},
): Promise<Toll> {
  const { ms = Number.POSITIVE_INFINITY, kills = Number.POSITIVE_INFINITY } = limit
  const toll: Toll = { kills: 0, homes: 0, runs: 0, phases: 0, posts: 0 }
  const started = performance.now()
  for (let home = 0; toll.kills < kills && performance.now() - started < ms; home++) {
    const time = () => performance.now() - started < ms && toll.kills < kills
    await storm(seed + home, time, toll)
    onCalm(toll)
  }
  return toll
}

async function storm(seed: number, time: () => boolean, toll: Toll): Promise<void> {
  const random = randomFrom(seed)
  const home = mkdtempSync(join(tmpdir(), 'cadre-chaos-'))
  const vendor = fickleVendor(random)
  try {
    let before: Recorded | null = null
    for (let kill = 0; kill < STORM && (kill === 0 || time()); kill++) {
      await live(home, vendor.url, random, before !== null)
      toll.kills++
      const after = checkInvariants(home)
      if (before) checkKept(before, after)
      before = after
    }
    const calm = start(home, vendor.url, random, 'calm')
    const [code, said] = await Promise.all([calm.exited, calm.stderr.text()])
    expect([code, said]).toEqual([0, ''])
    if (before) checkKept(before, checkInvariants(home))
    const twice = [...vendor.posts].filter(([, count]) => count > 1)
    expect(twice).toEqual([])
    count(home, toll)
    toll.homes++
    toll.posts += vendor.posts.size
  } catch (error) {
    console.error(`seed ${seed}; what is left: ${home}`)
    throw error
  } finally {
    vendor.stop()
  }
  rmSync(home, { recursive: true })
}

function start(home: string, url: string, random: Random, ...more: string[]) {
  const args = [process.execPath, PROGRAM, home, url, String(random.below(2 ** 31)), ...more]
  return Bun.spawn(args, { env: { PATH: process.env.PATH!, HOME: home }, stdout: 'pipe', stderr: 'pipe' })
}

/** One life: from its start to SIGKILL. */
async function live(home: string, url: string, random: Random, early: boolean): Promise<void> {
  const child = start(home, url, random)
  const said = child.stderr.text()
  const life = random() * LONGEST_LIFE_MS
  // Some die while they still put together what the one before left.
  if (!early || !random.once(8)) await child.stdout.getReader().read()
  await Bun.sleep(life)
  child.kill('SIGKILL')
  await child.exited
  expect([child.signalCode, await said]).toEqual(['SIGKILL', ''])
}

/** Writes first, then answers, or not. Counts what it wrote by path and key. */
function fickleVendor(random: Random) {
  const posts = new Map<string, number>()
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      if (request.method === 'GET') {
        return new Response(null, { status: posts.has(`${pathname} ${searchParams.get('key')}`) ? 200 : 404 })
      }
      const place = `${pathname} ${await request.text()}`
      await Bun.sleep(random.below(10))
      if (random.once(10)) return new Response(null, { status: 409 })
      posts.set(place, (posts.get(place) ?? 0) + 1)
      await Bun.sleep(random.below(10))
      return new Response('written', { status: random.once(10) ? 500 : 200 })
    },
  })
  return { posts, url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) }
}

function count(home: string, toll: Toll): void {
  const db = openDatabase(join(home, 'daemon.db'))
  const rows = (table: string) => db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()!.n
  toll.runs += rows('runs')
  toll.phases += rows('phases WHERE completed_at IS NOT NULL')
  db.close()
}
