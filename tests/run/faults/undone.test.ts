// Changes that are undone: one that throws, and a group whose commit does. What memory holds is what the rows say again, no
// run waits for ever, and nothing is executed twice because of it.

import { afterEach, expect, spyOn, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agent, Type } from '../../../lib/agent/cadre.ts'
import { brokenInvariants } from '../../../lib/run/store/invariants.ts'
import { until, within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'
import { phaseOf, questions } from '../../support/home.ts'
import { act, keyed, scripted, shell, team } from '../../support/scripted.ts'

let held = Promise.withResolvers<void>()
const { agents, calls } = scripted({
  work: (_, value) => ({ value }),
  hold: () => held.promise,
})
const bell = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Is told.',
  settings: Type.Object({}),
  notify: {
    effect: 'once',
    entry: Type.Object({ message: Type.Optional(Type.String()) }),
    run: async () => ({ text: '' }),
  },
})
let t: TestEngine
afterEach(async () => {
  held.resolve()
  held = Promise.withResolvers()
  calls.length = 0
  await t.close()
})
const ended = (runId: string, ms?: number) => within(t.engine.ended(runId), 'the end of the run', ms)

/** Statements of this kind throw from now on, however often they are tried. */
function breaks(event: string, when: string): void {
  t.db.run(`CREATE TRIGGER broken BEFORE ${event} WHEN ${when} BEGIN SELECT RAISE(ABORT, 'broken on purpose'); END`)
}

/** Commits of a change of this kind fail until the returned function is called. */
function breaksCommit(event: string, when: string): () => void {
  t.db.run('CREATE TABLE absent (id INTEGER PRIMARY KEY)')
  t.db.run('CREATE TABLE pointing (id INTEGER REFERENCES absent (id) DEFERRABLE INITIALLY DEFERRED)')
  t.db.run(`CREATE TRIGGER uncommitted AFTER ${event} WHEN ${when} BEGIN INSERT INTO pointing VALUES (1); END`)
  return () => t.db.run('DROP TRIGGER uncommitted')
}

const ask = { name: 'ask', type: 'gate', review: { prompt: 'Go on?' } }

test('an answer that throws in a large tree is refused, and no other run waits for it', async () => {
  t = await testEngine({ agents })
  const { run_id } = await t.start({
    'team.yml': team([
      {
        name: 'each',
        type: 'map',
        items: Array.from({ length: 60 }, (_, n) => n),
        team: './one',
        concurrency: 100,
      },
    ]),
    'one/team.yml': team([ask]),
  })
  await questions(t, 60)
  const last = phaseOf(t, run_id, 'each').sub_runs.at(-1)!.run_id
  breaks('UPDATE ON runs', `NEW.id = '${last}' AND NEW.state = 'completed'`)
  const question = (await questions(t, 60)).find(review => review.run_id === last)!
  const answer = () => within(t.engine.decide(question.id, { decision: 'approve', by: 'somebody' }), 'an answer')
  expect(await answer().catch(error => error.message)).toBe('broken on purpose')
  const other = await t.start(team([act('work', 'work')]))
  expect(await ended(other.run_id)).toMatchObject({ state: 'completed' })
  t.db.run('DROP TRIGGER broken')
  await answer()
  expect(t.engine.record(last)).toMatchObject({ state: 'completed' })
})

test('a begin that throws after its phase counts as running leaves no slot behind', async () => {
  t = await testEngine({ agents: { ...agents, bell }, slots: 1 })
  breaks('INSERT ON deliveries', "NEW.event = 'on_phase_start'")
  const { run_id } = await t.start(
    team([act('work', 'work'), { name: 'tell', agent: 'bell', notify: ['on_phase_start'] }]),
  )
  expect(await ended(run_id)).toMatchObject({ state: 'failed', reason: 'internal' })
  expect(t.engine.load).toMatchObject({ runs: 0, slots: 0, free: 1 })
})

test('a disk that is full in the middle of a change holds up nothing once there is space', async () => {
  t = await testEngine({ agents: { ...agents, bell }, slots: 1 })
  const first = await t.start(team([act('hold', 'hold')]))
  const tell = { name: 'tell', agent: 'bell', notify: { on_phase_start: { message: 'x'.repeat(300_000) } } }
  const { run_id } = await t.start(team([act('work', 'work'), tell]))
  await until(() => calls.length === 1, 'the first phase')
  const { page_count } = t.db.query<{ page_count: number }, []>('PRAGMA page_count').get()!
  t.db.run(`PRAGMA max_page_count = ${page_count + 10}`)
  held.resolve()
  await until(() => t.engine.load.stalled !== null, 'the stall')
  t.db.run('PRAGMA max_page_count = 1000000')
  expect(await ended(first.run_id)).toMatchObject({ state: 'completed' })
  expect(await ended(run_id)).toMatchObject({ state: 'completed' })
  expect(calls).toEqual(['hold', 'work'])
  expect(t.engine.load).toMatchObject({ runs: 0, slots: 0 })
})

test('expressions do not see an answer that was undone', async () => {
  t = await testEngine({ agents })
  const { run_id } = await t.start(
    team([
      { ...ask, review: { prompt: 'Which?', inputs: [{ name: 'v', type: 'string', required: true }] } },
      act('one', 'work', { depends_on: ['ask'], when: "phases.ask.data.v == 'first'", value: 'first' }),
      act('two', 'work', { depends_on: ['ask'], when: "phases.ask.data.v == 'second'", value: 'second' }),
    ]),
  )
  const [question] = await questions(t)
  const mend = breaksCommit('UPDATE ON reviews', "NEW.state = 'decided'")
  const answer = (v: string) => t.engine.decide(question!.id, { decision: 'approve', by: 'somebody', values: { v } })
  const refused = await answer('first').catch((error: Error) => error)
  expect(refused).toBeInstanceOf(Error)
  mend()
  await until(() => t.engine.load.stalled === null, 'the next commit')
  await answer('second')
  expect(await ended(run_id)).toMatchObject({ state: 'completed' })
  expect(calls).toEqual(['work second'])
})

test('a tree that was being ended when its group was undone is ended all the same', async () => {
  t = await testEngine({ agents })
  const start = await t.prepare(team([act('work', 'work')]))
  const { run_id } = await (async () => {
    breaks('UPDATE ON phases', "NEW.state = 'completed'")
    const mend = breaksCommit('UPDATE ON runs', "NEW.reason = 'internal'")
    const run = await start()
    await until(() => t.engine.load.stalled !== null, 'the stall')
    mend()
    return run
  })()
  expect(await ended(run_id)).toMatchObject({ state: 'failed', reason: 'internal' })
  expect(brokenInvariants(t.db)).toEqual([])
})

test('a phase that began in the group that undid a later change of its tree is executed once', async () => {
  t = await testEngine({ agents: { ...agents, bell }, slots: 4 })
  const two = (a: string, b: string) =>
    t.prepare(
      team([
        act('a', 'hold', { value: a }),
        act('b', 'hold', { value: b }),
        { name: 'tell', agent: 'bell', notify: ['on_phase_start'] },
      ]),
    )
  const starts = [await two('a', 'b'), await two('c', 'd'), await two('e', 'f')]
  // The second phase of a run cannot begin in the group in which the first one began.
  const begun = (position: number, more: string) =>
    `EXISTS (SELECT 1 FROM phases WHERE run_id = NEW.run_id AND position = ${position} AND ${more})`
  breaks('INSERT ON deliveries', `${begun(0, 'attempt = 1')} AND ${begun(1, "state = 'running'")}`)
  // A unit and a group take all that there is, however slow the machine is.
  const clock = spyOn(performance, 'now').mockReturnValue(performance.now())
  const runs = await Promise.all(starts.map(start => start()))
  await until(() => calls.length >= 4, 'the first phases').finally(() => clock.mockRestore())
  // What begins later may find another phase of its run at work.
  t.db.run('DROP TRIGGER broken')
  held.resolve()
  for (const { run_id } of runs) expect(await ended(run_id)).toMatchObject({ state: 'completed' })
  expect(calls.toSorted()).toEqual(['hold a', 'hold b', 'hold c', 'hold d', 'hold e', 'hold f'])
  expect(t.engine.load).toMatchObject({ runs: 0, slots: 0 })
})

/** Has a tree read anew: the answer to the question of its phase 1 cannot be recorded. */
async function readAnew(runId: string): Promise<void> {
  const own = (await questions(t)).find(review => review.run_id === runId)!
  breaks('UPDATE ON phases', `NEW.run_id = '${runId}' AND NEW.position = 1 AND NEW.state = 'completed'`)
  const answer = () => t.engine.decide(own.id, { decision: 'approve', by: 'somebody' })
  expect(await answer().catch(error => error.message)).toBe('broken on purpose')
  t.db.run('DROP TRIGGER broken')
  await answer()
}

test('items that are executed keep their places, and others get none beside them', async () => {
  t = await testEngine({ agents })
  const inputs = [{ name: 'v', type: 'string' }]
  const { run_id } = await t.start({
    'team.yml': team([
      keyed(['ask', 'b'], './one', { concurrency: 1, inputs: { v: '{{ item }}' } }),
      { ...ask, name: 'own' },
    ]),
    'one/team.yml': team(
      [{ ...ask, when: "inputs.v == 'ask'" }, act('work', 'hold', { depends_on: ['ask'], value: '{{ inputs.v }}' })],
      { inputs },
    ),
  })
  await until(() => calls.length === 1, 'the second item')
  const first = (await questions(t, 2)).find(review => review.run_id !== run_id)!
  await t.engine.decide(first.id, { decision: 'approve', by: 'somebody' })
  await readAnew(run_id)
  await Bun.sleep(100)
  expect(calls).toEqual(['hold b'])
  held.resolve()
  expect(await ended(run_id)).toMatchObject({ state: 'completed' })
  expect(calls).toEqual(['hold b', 'hold ask'])
})

test('files that are handed over meanwhile are kept', async () => {
  t = await testEngine({ agents })
  const workspace = folder()
  const make = '[ -e go ] || exit 1; echo small > small.txt; truncate -s 300M large.bin'
  const outputs = [
    { name: 'small', type: 'file', value: 'small.txt' },
    { name: 'large', type: 'file', value: 'large.bin' },
  ]
  const files = {
    'team.yml': team([
      { name: 'down', type: 'team', team: './one' },
      { ...ask, name: 'own' },
    ]),
    'one/team.yml': team([shell('make', make)], { outputs }),
  }
  const { run_id } = await t.start(files, {}, { workspace })
  await until(() => phaseOf(t, run_id, 'down').state === 'failed', 'the first attempt')
  await t.engine.cancel(run_id)
  await ended(run_id)
  writeFileSync(join(workspace, 'go'), '')
  await t.engine.resume(run_id)
  const place = (path: string) => join(t.engine.stateDir(run_id), path)
  await until(() => existsSync(place('files/down/small.txt')), 'the first file')
  await readAnew(run_id)
  expect(await ended(run_id, 60_000)).toMatchObject({ state: 'completed' })
  expect(phaseOf(t, run_id, 'down').files.filter(({ path }) => !existsSync(place(path)))).toEqual([])
}, 90_000)
