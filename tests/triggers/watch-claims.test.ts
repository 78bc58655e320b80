// Files that a watch moves away before their run begins: whatever is killed or removed, each is in one place.

import { afterAll, expect, test } from 'bun:test'
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { giveBack } from '../../lib/daemon/triggers/watch-claim.ts'
import { bundled } from '../support/chaos-bundle.ts'
import { folder } from '../support/folder.ts'
import { rowsOf } from '../support/home.ts'
import { killedAt, walkOfKills } from '../support/kill-walk.ts'
import { looks, told, watchHome } from '../support/watch-home.ts'

const ADA = 'local:ada'
const CLAIMED = '.cadre-claimed'

const program = await bundled('watch-process.ts')
afterAll(() => program.remove())

/** All writes take some minutes; the gate takes one of six, from another one each time. */
const EVERY = process.env.CADRE_SLOW_TESTS ? 1 : 6

/** The files in a folder, by their paths in it. */
const filesIn = (at: string): string[] =>
  readdirSync(at, { recursive: true, withFileTypes: true })
    .filter(each => each.isFile())
    .map(each => join(each.parentPath, each.name).slice(at.length + 1))
    .sort()

test('a claimed file is its run’s alone', async () => {
  const { t, at, put } = await watchHome({ claim: true, depth: 2 })
  await using _ = t
  mkdirSync(join(at, 'deep'))
  put('deep/a.txt', 'hello')
  await looks(t)
  const [firing] = t.firings('in')
  const run = firing!.run_id!
  expect(firing).toMatchObject({ state: 'started', occasion: expect.stringContaining(join(at, 'deep/a.txt@5-')) })
  const path = join(at, CLAIMED, run, 'deep/a.txt')
  expect(filesIn(at)).toEqual([path.slice(at.length + 1)])
  expect(t.daemon.engine.record(run)).toMatchObject({
    inputs: { file: path },
    started_by: { kind: 'watch', files: [{ path, name: 'a.txt', bytes: 5 }] },
  })
  put('deep/a.txt', 'hello')
  await looks(t)
  expect(told(t)).toEqual(['a.txt started', 'a.txt started'])
  expect(t.daemon.db.query('SELECT * FROM watch_claims').all()).toEqual([])
  // Once more: the file goes on to the second run.
  await t.ended()
  const { run_id } = await t.triggers.refire(firing!.id, { again: true, by: ADA })
  expect(existsSync(path)).toBe(false)
  expect(readFileSync(join(at, CLAIMED, run_id!, 'deep/a.txt'), 'utf8')).toBe('hello')
})

test('when one of them is gone, the others go back, and can be fired again', async () => {
  const { t, at, put } = await watchHome({ claim: true, batch: '1ms', overlap: 'queue', inputs: { hold: true } })
  await using _ = t
  put('first')
  await looks(t)
  put('a')
  put('b')
  await looks(t)
  expect(told(t)).toEqual(['first started', 'a+b waiting overlap'])
  rmSync(join(at, 'b'))
  await t.answer()
  await t.look()
  const [, firing] = t.firings('in')
  expect(firing).toMatchObject({ state: 'refused', reason: 'inputs', detail: `${join(at, 'b')} is gone` })
  await looks(t)
  expect(filesIn(at).filter(path => !path.includes('first'))).toEqual(['a'])
  expect(t.firings('in')[1]!.files!.map(({ path }) => path)).toEqual([join(at, 'a'), join(at, 'b')])
  expect(await t.triggers.refire(firing!.id, { again: false, by: ADA })).toMatchObject({ reason: 'inputs' })
  await looks(t)
  expect(told(t).slice(1)).toEqual(['a+b refused inputs', 'a+b refused inputs'])
  expect(filesIn(at).filter(path => !path.includes('first'))).toEqual(['a'])
})

test('what goes back replaces no file that came meanwhile, and may go back twice', async () => {
  const { t, at, put } = await watchHome({ claim: true })
  await using _ = t
  put('a', 'one')
  await looks(t)
  const [firing] = t.firings('in')
  const run_id = firing!.run_id!
  const { path: to, bytes, mtime } = firing!.files![0]!
  const claim = { firing_id: firing!.id, run_id, files: [{ from: join(at, 'a'), to, bytes, mtime }] }
  const home = { daemon: t.daemon, tables: t.triggers.tables }
  put('a', 'two')
  await giveBack(home, claim)
  expect([join(at, 'a'), to].map(file => readFileSync(file, 'utf8'))).toEqual(['two', 'one'])
  expect(t.said.join()).toContain('a claimed file stays where it is')
  rmSync(join(at, 'a'))
  // It was killed between the two halves of a move.
  linkSync(to, join(at, 'a'))
  for (let n = 0; n < 2; n++) await giveBack(home, claim)
  expect(filesIn(at)).toEqual(['a'])
})

test('nothing is moved out of the folder by a link', async () => {
  const { t, at, put } = await watchHome({ claim: true })
  await using _ = t
  const outside = folder()
  symlinkSync(outside, join(at, CLAIMED))
  put('a')
  await looks(t)
  expect([filesIn(outside), told(t)]).toEqual([[], ['a waiting']])
  rmSync(join(at, CLAIMED))
  await t.look()
  expect(told(t)).toEqual(['a started'])
})

test('wherever it is killed, each file is claimed by the one run that it started', async () => {
  const writes = await walkOfKills(async n => {
    const [home, at] = [folder(), folder()]
    for (const name of ['a', 'b', 'c', 'd', 'e']) writeFileSync(join(at, name), name)
    const died = await killedAt(n, home, program.program, at)
    expect(await killedAt(0, home, program.program, at)).toBe(false)
    const firings = rowsOf<{ state: string; run_id: string; variables: string }>(home, 'SELECT * FROM firings')
    const runs = rowsOf<{ id: string; started_by: string }>(home, 'SELECT id, started_by FROM runs')
    expect(firings.map(({ state }) => state)).toEqual(firings.map(() => 'started'))
    expect(runs.map(({ id }) => id).sort()).toEqual(firings.map(({ run_id }) => run_id).sort())
    const known = runs.flatMap(({ id, started_by }) =>
      (JSON.parse(started_by).files as { path: string; name: string }[]).map(({ path, name }) => {
        expect(path).toBe(join(at, CLAIMED, id, name))
        return path.slice(at.length + 1)
      }),
    )
    expect(filesIn(at)).toEqual(known.sort())
    expect(known.map(path => path.at(-1)).sort()).toEqual(['a', 'b', 'c', 'd', 'e'])
    return died
  }, EVERY)
  console.log(`kill at one write of ${EVERY}: ${writes} writes`)
  expect(writes).toBeGreaterThanOrEqual(20)
}, 300_000)
