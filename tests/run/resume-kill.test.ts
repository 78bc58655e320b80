// Kill at every write of a resume that evaluates a map anew: whenever it died, the next process ends it as if nothing had
// been, keeps the run of each key, and has written each key once.

import { afterAll, expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { bundled } from '../support/chaos-bundle.ts'
import { folder } from '../support/folder.ts'
import { openHome, treeOf as rowsOf } from '../support/home-rows.ts'
import { checkInvariants, checkKept } from '../support/invariants.ts'
import { killedAt, walkOfKills } from '../support/kill-walk.ts'
import { type Form, ITEMS, RUN_ID, renewed } from '../support/renewed.ts'

const program = await bundled('renewed.ts')
afterAll(() => program.remove())

/** Posts by `/<N>/<title>`: each life has an address of its own. */
const posts = new Map<string, number>()
const vendor = Bun.serve({
  port: 0,
  fetch({ method, url }) {
    const { pathname } = new URL(url)
    if (method === 'GET') return new Response(null, { status: posts.has(pathname) ? 200 : 404 })
    posts.set(pathname, (posts.get(pathname) ?? 0) + 1)
    return new Response('written')
  },
})
afterAll(() => vendor.stop(true))
const urlOf = (life: number) => `http://127.0.0.1:${vendor.port}/${life}`

/** The runs of the tree in order: key, id. */
function treeOf(home: string): [string | null, string][] {
  const db = openHome(home)
  try {
    return rowsOf(db, RUN_ID).map(entry => [entry.run_name, entry.id])
  } finally {
    db.close()
  }
}

/** The runs of the keys and those below them, by key. */
const byKey = (tree: [string | null, string][]) =>
  Object.fromEntries(tree.flatMap(([key, id], at) => (key === null ? [] : [[key, [id, tree[at + 1]![1]]]])))

const CASES: { from: string; form: Form; all: string[]; keys: string[] }[] = [
  { from: 'list', form: 'folder', all: ['c0', 'd1', 'b2'], keys: ['c', 'd', 'b', 'a'] },
  { from: 'list', form: 'place', all: ['c0', 'd1', 'b2'], keys: ['c', 'd', 'b', 'a'] },
  { from: 'each', form: 'folder', all: ['a0', 'b1', 'c2'], keys: ['a', 'b', 'c'] },
]

/** Every write takes a minute on a slow machine; the gate takes one of six, from another one each time. */
const EVERY = process.env.CADRE_SLOW_TESTS ? 1 : 6

test.each(CASES)(
  'wherever a resume from $from of a map in a $form dies, it is completed, and every key keeps its run',
  async ({ from, form, all, keys }) => {
    posts.clear()
    const first = folder()
    expect(await renewed(first, urlOf(0), 1, from, form)).toEqual({
      state: 'completed',
      outputs: { all: ['a0', 'b1', 'c2'] },
    })
    const before = byKey(treeOf(first))
    const writes = await walkOfKills(async n => {
      const home = folder()
      cpSync(first, home, { recursive: true })
      for (const key of ITEMS[0]) posts.set(`/${n}/${key}`, 1)
      const died = await killedAt(n, home, program.program, urlOf(n), from, form)
      const left = checkInvariants(home)
      expect(await renewed(home, urlOf(n), 2, from, form)).toEqual({ state: 'completed', outputs: { all } })
      checkKept(left, checkInvariants(home, true))
      const tree = treeOf(home)
      expect(tree.map(([key]) => key)).toEqual([null, ...keys.flatMap(key => [key, null])])
      expect(byKey(tree)).toMatchObject(before)
      for (const key of keys) expect([n, key, posts.get(`/${n}/${key}`)]).toEqual([n, key, 1])
      return died
    }, EVERY)
    console.log(`kill at the writes of a resume from ${from}, one of ${EVERY}: ${writes} writes`)
    expect(writes).toBeGreaterThanOrEqual(10)
  },
  120_000,
)
