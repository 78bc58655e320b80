// Kill at every write: the canonical run dies by SIGKILL at its first write, at its second, and so on to the last, each
// time as a new run. Whenever it died, the next process completes it, changes nothing that was recorded, and the vendor
// has got each entry once.

import { afterAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { canonical, RUN_ID } from '../support/canonical.ts'
import { bundled } from '../support/chaos-bundle.ts'
import { folder } from '../support/folder.ts'
import { openHome } from '../support/home-rows.ts'
import { checkInvariants, checkKept } from '../support/invariants.ts'
import { killedAt, walkOfKills } from '../support/kill-walk.ts'

const program = await bundled('canonical.ts')
afterAll(() => program.remove())

/** Posts by `<N> <path> <key>`: every run has a vendor's address of its own. */
const posts = new Map<string, number>()
const vendor = Bun.serve({
  port: 0,
  async fetch(request) {
    const url = new URL(request.url)
    if (request.method === 'GET') {
      return new Response('found', { status: posts.has(`${url.pathname} ${url.searchParams.get('key')}`) ? 200 : 404 })
    }
    const { key } = (await request.json()) as { key: string }
    posts.set(`${url.pathname} ${key}`, (posts.get(`${url.pathname} ${key}`) ?? 0) + 1)
    return new Response('written')
  },
})
afterAll(() => vendor.stop(true))

const posted = (n: number, what: string) =>
  [...posts].filter(([place]) => place.startsWith(`/${n}/${what} `)).map(([, count]) => count)

/** Lets the run die at its write number `n`. False when it had fewer. */
async function dieAt(n: number): Promise<{ died: boolean; asked: boolean }> {
  const home = folder()
  const url = `http://127.0.0.1:${vendor.port}/${n}`
  const died = await killedAt(n, home, program.program, url)
  const before = checkInvariants(home)

  const asked = (await canonical(home, url)) === 'awaiting_input'
  if (asked) {
    expect(questions(home)).toEqual([{ phase: 3, reason: 'unknown', entries: '["m"]' }])
    expect(posted(n, 'mail').length).toBeLessThanOrEqual(1)
    expect(await canonical(home, url, 'complete')).toBe('completed')
  }
  checkKept(before, checkInvariants(home, true))
  checkFiles(home)
  expect(posted(n, 'ticket')).toEqual([1, 1])
  expect(posted(n, 'mail').every(count => count === 1)).toBe(true)
  expect(posted(n, 'event').every(count => count === 1)).toBe(true)
  if (!asked) expect(posted(n, 'mail')).toEqual([1])
  return { died, asked }
}

/** What a person was asked. */
function questions(home: string) {
  const db = openHome(home)
  try {
    return db.query('SELECT position AS phase, reason, entries FROM reviews WHERE run_id = ?').all(RUN_ID)
  } finally {
    db.close()
  }
}

/** Every file is where it belongs, with what it was given: as the sub-runs wrote it, and as it was handed up twice. */
function checkFiles(home: string): void {
  const runs = join(home, 'runs', RUN_ID, 'files')
  const one = (value: number) => ({ 'a.txt': `${value + 1}\n`, 'b.txt': `${value}\n`.padEnd(300_000, '.') })
  const worked = (value: number) => ({ ...one(value), [`worked-${value}.txt`]: `${value}\n` })
  const expected = { down: worked(1), 'each/0': worked(10), 'each/k20': worked(20) }
  for (const [place, files] of Object.entries(expected)) {
    expect([place, readdirSync(join(runs, place)).sort()]).toEqual([place, Object.keys(files).sort()])
    for (const [name, text] of Object.entries(files)) {
      expect([place, name, readFileSync(join(runs, place, name), 'utf8') === text]).toEqual([place, name, true])
    }
  }
  expect(readFileSync(join(runs, 'sweep/sweep.txt'), 'utf8')).toBe('failed\n')
}

/** Every write takes two minutes on a slow machine; the gate takes one of six, from another one each time. */
const EVERY = process.env.CADRE_SLOW_TESTS ? 1 : 6

test('wherever it dies, it is completed, and nothing is written twice', async () => {
  let asked = 0
  const writes = await walkOfKills(async n => {
    const end = await dieAt(n)
    if (end.asked) asked++
    return end.died
  }, EVERY)
  console.log(`kill at one write of ${EVERY}: ${writes} writes, ${asked} times a person was asked`)
  // How many changes share a commit is a matter of moments.
  expect(writes).toBeGreaterThanOrEqual(30)
  // Between the receipt and the record of the reply nobody can know; everywhere else nobody is asked. Which write that is
  // differs from run to run, so that a walk may miss it.
  expect(asked).toBeLessThanOrEqual(8)
}, 300_000)
