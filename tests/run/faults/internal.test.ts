// Faults of the engine itself, made by triggers in the run database: the run that they hit ends, and no other is touched.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { brokenInvariants } from '../../../lib/run/store/invariants.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'
import { act, scripted, team } from '../../support/scripted.ts'

const { agents, attempts } = scripted({ note: () => Bun.sleep(20) })

const TEAM = {
  'team.yml': team([
    act('first', 'note'),
    { name: 'each', type: 'map', depends_on: ['first'], items: [1, 2, 3], team: './one' },
    act('last', 'note', { depends_on: ['each'] }),
    act('never', 'note', { depends_on: ['last'], when: '1 > 2' }),
    { name: 'below', type: 'team', depends_on: ['last'], team: './one' },
  ]),
  'one/team.yml': team([act('one', 'note')]),
}

let home: string
let t: TestEngine
beforeEach(async () => {
  attempts.length = 0
  home = folder()
  t = await testEngine({ home, agents })
})
afterEach(() => t.close())

/** Every change that `when` describes throws from now on, however often it is tried. */
function breaks(name: string, table: string, when: string, event = 'UPDATE'): void {
  t.engine.store.db.run(
    `CREATE TRIGGER ${name} BEFORE ${event} ON ${table} WHEN ${when} BEGIN SELECT RAISE(ABORT, 'broken on purpose'); END`,
  )
}

const FAULTS: Record<string, (runId: string) => void> = {
  'the end of a phase': id =>
    breaks('a', 'phases', `NEW.run_id = '${id}' AND NEW.position = 0 AND NEW.state = 'completed'`),
  'the begin of a phase': id =>
    breaks('b', 'phases', `NEW.run_id = '${id}' AND NEW.position = 1 AND NEW.state = 'running'`),
  'the end of a map': id =>
    breaks('c', 'phases', `NEW.run_id = '${id}' AND NEW.position = 1 AND NEW.state = 'completed'`),
  'the end of a sub-run': id =>
    breaks('d', 'runs', `NEW.parent_id = '${id}' AND NEW.item = 1 AND NEW.state = 'completed'`),
  'the skip of a phase': id =>
    breaks('f', 'phases', `NEW.run_id = '${id}' AND NEW.position = 3 AND NEW.state = 'skipped'`),
  'the begin of a sub-run': id => breaks('g', 'runs', `NEW.parent_id = '${id}' AND NEW.parent_position = 4`, 'INSERT'),
  'the begin of an item': id => breaks('h', 'runs', `NEW.parent_id = '${id}' AND NEW.item = 2`, 'INSERT'),
  'the end of a team phase': id =>
    breaks('i', 'phases', `NEW.run_id = '${id}' AND NEW.position = 4 AND NEW.state = 'completed'`),
  'the end of the run': id => breaks('e', 'runs', `NEW.id = '${id}' AND NEW.state = 'completed'`),
}

for (const [what, fault] of Object.entries(FAULTS)) {
  test(`${what} cannot be recorded: the run fails as internal, and no other is touched`, async () => {
    const others = [await t.start(TEAM), await t.start(TEAM)]
    const hit = await t.start(TEAM)
    fault(hit.run_id)
    others.push(await t.start(TEAM))
    expect(await t.engine.ended(hit.run_id)).toMatchObject({
      state: 'failed',
      reason: 'internal',
      error: { code: 'internal', run_id: hit.run_id },
    })
    for (const { run_id } of others) {
      expect(await t.engine.ended(run_id)).toMatchObject({ state: 'completed', attempt: 1 })
    }
    const foreign = attempts.filter(call => others.some(({ run_id }) => call.startsWith(run_id)))
    expect(new Set(foreign).size).toBe(foreign.length)
    expect(foreign.every(call => call.endsWith(' 1'))).toBe(true)
    expect(t.engine.load).toMatchObject({ runs: 0, slots: 0, stalled: null })
    expect(brokenInvariants(t.engine.store.db)).toEqual([])

    const before = attempts.length
    await t.close()
    t = await testEngine({ home, agents })
    await Bun.sleep(50)
    expect(attempts.length).toBe(before)
    expect(t.engine.load).toMatchObject({ runs: 0, slots: 0 })
    t.engine.store.db.run('DROP TRIGGER IF EXISTS a')
    expect((await t.run(TEAM)).state).toBe('completed')
  })
}

test('the hub is informed of questions that were closed without an answer', async () => {
  await t.close()
  const told: string[] = []
  const outbox = {
    record(changes: Iterable<{ run: { id: string }; position: number | null; kind: string }>) {
      for (const { position, kind } of changes) told.push(kind === 'run' ? kind : `${kind} ${position}`)
    },
    recordLog() {},
    endLog() {},
    logGrew() {},
    committed() {},
  }
  t = await testEngine({ home, agents, outbox })
  const { run_id } = await t.start(
    team([{ name: 'ask', type: 'gate', review: { prompt: 'Go on?' } }, act('noted', 'note')]),
    {},
    { synced: true },
  )
  breaks('asked', 'phases', `NEW.run_id = '${run_id}' AND NEW.position = 1 AND NEW.state = 'completed'`)
  told.length = 0
  expect(await t.engine.ended(run_id)).toMatchObject({ state: 'failed', reason: 'internal' })
  // A change that another group of commits changes once more is told once more.
  expect([...new Set(told)].toSorted()).toEqual(['phase 0', 'phase 1', 'review 0', 'run'])
  expect(brokenInvariants(t.engine.store.db)).toEqual([])
})
