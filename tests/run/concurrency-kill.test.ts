// Kill at every write of runs that need one key: whenever the process died, the next one lets each of them execute, one
// after the other, and nobody keeps a place.

import { afterAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundled } from '../support/chaos-bundle.ts'
import { folder } from '../support/folder.ts'
import { openHome } from '../support/home-rows.ts'
import { checkInvariants, checkKept } from '../support/invariants.ts'
import { keyed, RUN_IDS } from '../support/keyed.ts'
import { killedAt, walkOfKills } from '../support/kill-walk.ts'

const program = await bundled('keyed.ts')
afterAll(() => program.remove())

test('wherever the process dies, every run executes alone and gives its place up', async () => {
  const writes = await walkOfKills(async n => {
    const home = folder()
    const died = await killedAt(n, home, program.program)
    const before = checkInvariants(home)
    expect(await keyed(home)).toEqual(['completed 2', 'completed 1', 'completed 1'])
    checkKept(before, checkInvariants(home, true))
    const db = openHome(home)
    expect(db.query('SELECT * FROM key_places').all()).toEqual([])
    db.close()
    // An attempt that was killed is repeated before anybody else begins.
    const begun = readFileSync(join(home, 'begun'), 'utf8').trimEnd().split('\n')
    const turns = begun.filter((id, at) => id !== begun[at - 1])
    const [first, ...others] = RUN_IDS
    expect(turns[0]).toBe(first)
    expect(turns.filter(id => id !== first).toSorted()).toEqual(others)
    expect(turns.filter(id => id === first).length).toBeLessThanOrEqual(2)
    return died
  })
  console.log(`kill at every write of three runs of one key: ${writes} writes`)
  expect(writes).toBeGreaterThanOrEqual(8)
}, 120_000)
