// Kills processes with SIGKILL at random moments of random storms. After every kill the home must keep every rule,
// earlier records must be unchanged, and every recorded file must have its bytes. After some kills the storm ends, and
// then every run must end, with nothing written twice. Loading the modules takes most of the time and tests nothing.
// Therefore one process has several engines with their own homes, each of which counts as killed, and the next process
// loads while one is still running.

import { expect } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundled } from './chaos-bundle.ts'
import { openHome } from './home-rows.ts'
import { checkInvariants, checkKept, type Recorded } from './invariants.ts'
import { endLeftIn } from './left.ts'
import { environmentAt } from './program.ts'
import { type Random, randomFrom } from './random.ts'

const LONGEST_LIFE_MS = 500
/** The number of kills of a home before its storm ends. */
const STORM = 16
const HOMES = 8
const STORMS_AT_ONCE = 2

export interface Toll {
  kills: number
  homes: number
  runs: number
  phases: number
  posts: number
}

/**
 * Runs storms with random numbers from `seed` until `kills` kills. `onCalm` is called after each storm with the totals so
 * far.
 */
export async function chaos(seed: number, kills: number, onCalm: (toll: Toll) => void = () => {}): Promise<Toll> {
  const toll: Toll = { kills: 0, homes: 0, runs: 0, phases: 0, posts: 0 }
  const engine = await bundled('chaos-engine.ts')
  let number = 0
  let broken = false
  const goesOn = () => !broken && toll.kills < kills
  const storms = async () => {
    while (goesOn()) {
      await storm(engine.program, seed + number++, goesOn, toll).catch(error => {
        broken = true
        throw error
      })
      onCalm(toll)
    }
  }
  const over = await Promise.allSettled(Array.from({ length: STORMS_AT_ONCE }, storms))
  engine.remove()
  for (const end of over) if (end.status === 'rejected') throw end.reason
  return toll
}

async function storm(program: string, seed: number, goesOn: () => boolean, toll: Toll): Promise<void> {
  const random = randomFrom(seed)
  const folder = mkdtempSync(join(tmpdir(), 'cadre-chaos-'))
  const homes = Array.from({ length: HOMES }, (_, n) => join(folder, `home${n}`))
  for (const home of homes) mkdirSync(home)
  const vendor = fickleVendor(random)
  const start = (...more: string[]) =>
    new Life(program, folder, [vendor.url, String(random.below(2 ** 31)), String(HOMES), ...more])
  let next = start()
  try {
    let before: Recorded[] = []
    for (let kill = 0; kill < STORM && (kill === 0 || goesOn()); kill++) {
      const life = next
      const lived = life.until(random, before.length > 0)
      next = start()
      await lived
      toll.kills += HOMES
      before = check(homes, before, false)
    }
    next.kill()
    next = start('calm')
    await next.calm()
    check(homes, before, true)
    const twice = [...vendor.posts].filter(([, count]) => count > 1)
    expect(twice).toEqual([])
    for (const home of homes) count(home, toll)
    toll.homes += HOMES
    toll.posts += vendor.posts.size
  } catch (error) {
    console.error(`seed ${seed}; what is left: ${folder}`)
    throw error
  } finally {
    next.kill()
    vendor.stop()
    await Promise.all(homes.map(endLeftIn))
  }
  rmSync(folder, { recursive: true })
}

function check(homes: readonly string[], before: readonly Recorded[], settled: boolean): Recorded[] {
  return homes.map((home, n) => {
    const after = checkInvariants(home, settled)
    if (before[n]) checkKept(before[n], after)
    return after
  })
}

/** One process, from loading until it is killed or calm. */
class Life {
  readonly #child
  readonly #said: Promise<string>
  readonly #words

  constructor(program: string, folder: string, args: string[]) {
    this.#child = Bun.spawn([process.execPath, program, folder, ...args], {
      env: environmentAt(folder),
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    this.#said = this.#child.stderr.text()
    this.#words = this.#child.stdout.getReader()
  }

  /** Lets the process run from its first access to the home until SIGKILL. */
  async until(random: Random, early: boolean): Promise<void> {
    await this.#words.read()
    this.#go()
    // Some processes are killed while they still recover what the previous one left.
    if (early && random.once(6)) await Bun.sleep(random.below(15))
    else {
      await this.#words.read()
      await Bun.sleep(random() * LONGEST_LIFE_MS)
    }
    this.kill()
    await this.#child.exited
    expect([this.#child.signalCode, await this.#said]).toEqual(['SIGKILL', ''])
  }

  async calm(): Promise<void> {
    this.#go()
    expect([await this.#child.exited, await this.#said]).toEqual([0, ''])
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  #go(): void {
    this.#child.stdin.write('go\n')
    this.#child.stdin.flush()
  }
}

/** A vendor that writes before it replies, and may not reply at all. Counts its writes by path and key. */
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
  const db = openHome(home)
  const rows = (table: string) => db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()!.n
  toll.runs += rows('runs')
  toll.phases += rows('phases WHERE completed_at IS NOT NULL')
  db.close()
}
