// Chains: the end of a top run starts another team, once, and never in a circle.

import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CadreError } from '../../lib/error.ts'
import { folder } from '../support/folder.ts'
import { type TriggerHome, triggerHome } from '../support/triggers.ts'

const NEXT = teamText('next', 'inputs: [{ name: said, type: string, default: "" }]')
const BUILD = teamText('build', 'outputs: [{ name: number, type: number, value: "{{ 7 }}" }]')

function teamText(
  name: string,
  more = '',
  phases = '[{ name: go, type: gate, commands: [{ name: ok, run: "true" }] }]',
) {
  return `name: "@local/${name}"\nversion: 1.0.0\n${more}\nphases: ${phases}\n`
}

function teamFolder(text: string): string {
  const at = folder()
  writeFileSync(join(at, 'team.yml'), text)
  return at
}

/** Starts a run of a folder, as a schedule that a person starts by hand, and waits for its end. Returns its id. */
async function runOf(t: TriggerHome, team: string, name = 'by-hand'): Promise<string> {
  if (!t.triggers.list({ limit: 100, offset: 0 }).triggers.some(each => each.name === name)) {
    await t.add({ name, team })
  }
  const { run_id } = await t.triggers.runNow({ name }, { force: true, by: 'local:ada' })
  await t.ended(run_id!)
  return run_id!
}

const chainTo = (t: TriggerHome, team: string, fields: object = {}) =>
  t.triggers.add({ name: 'deploy', kind: 'chain', team, after: '@local/build', ...fields }, 'local:ada')

const ASKS = teamText('asks', '', '[{ name: ask, type: gate, review: { prompt: "Go on?" } }]')
const builds = (number: number) => teamFolder(BUILD.replace('7 }}', `${number} }}`))
const wordsOf = (t: TriggerHome, name = 'deploy') => t.rows(name).map(row => row.split(' ').slice(1, 3).join(' '))

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    ({ code }: CadreError) => code,
  )
const starterOf = (t: TriggerHome, run: string) => t.daemon.engine.record(run).started_by

test('the end of a run starts the next one, which knows what it was', async () => {
  await using t = await triggerHome()
  const said =
    '{{ run.team }} {{ run.version }} {{ run.state }} {{ string(int(run.outputs.number)) }} {{ run.started_by.kind }}'
  await chainTo(t, teamFolder(NEXT), { inputs: { said } })
  const build = await runOf(t, teamFolder(BUILD))
  // It stands in the transaction that ended the run.
  expect(t.firings('deploy')).toMatchObject([{ occasion: build, state: 'waiting', reason: null, run_id: null }])
  await t.look()
  const [firing] = t.firings('deploy')
  expect(firing).toMatchObject({ state: 'started', occasion: build })
  await t.ended(firing!.run_id!)
  expect(t.daemon.engine.record(firing!.run_id!).inputs).toEqual({ said: '@local/build 1.0.0 completed 7 schedule' })
  const { id } = t.triggers.get({ name: 'deploy' })
  const by = { kind: 'chain', trigger: id, name: 'deploy', firing: firing!.id, run_id: build, depth: 1 }
  expect(starterOf(t, firing!.run_id!)).toEqual(by as never)
  // The run that it started ended, and nothing follows that one.
  await t.look()
  expect(t.firings('deploy')).toHaveLength(1)
})

test('only ends that it names count, of teams that it names, and of top runs', async () => {
  await using t = await triggerHome()
  const next = teamFolder(NEXT)
  await chainTo(t, next, { name: 'any-scope', after: 'build', on: ['failed', 'cancelled'] })
  await chainTo(t, next, { name: 'other', after: '@local/built' })
  await chainTo(t, next, { name: 'below', after: '@local/one' })
  const failing = teamText('build', '', '[{ name: go, type: gate, commands: [{ name: no, run: "false" }] }]')
  const above = teamFolder(teamText('above', '', '[{ name: call, type: team, team: ./one }]'))
  mkdirSync(join(above, 'one'))
  writeFileSync(join(above, 'one/team.yml'), teamText('one'))
  await runOf(t, teamFolder(BUILD), 'good')
  const bad = await runOf(t, teamFolder(failing), 'bad')
  await runOf(t, above, 'above')
  await t.look()
  expect(t.firings('any-scope')).toMatchObject([{ occasion: bad, state: 'started' }])
  expect([t.firings('other'), t.firings('below')]).toEqual([[], []])
})

test('each way in which a run ends counts', async () => {
  await using t = await triggerHome()
  await chainTo(t, teamFolder(NEXT), { after: 'asks', on: ['completed', 'failed', 'cancelled'] })
  const team = teamFolder(ASKS.replace('version: 1.0.0', 'version: 1.0.0\nconcurrency: { key: asks }'))
  await t.add({ name: 'by-hand', team })
  const begin = async () => (await t.triggers.runNow({ name: 'by-hand' }, { force: true, by: 'local:ada' })).run_id!
  const { engine, db } = t.daemon
  const [asks, waits] = [await begin(), await begin()]
  // One that waits for its key, one that goes on, and one that a fault of the engine ends.
  await engine.cancel(waits)
  await engine.cancel(asks)
  await t.ended(asks)
  const faulty = await begin()
  db.transaction(() => engine.store.runs.abandon(faulty, { code: 'internal', message: 'a fault' } as never, 1, 1))()
  expect(t.firings('deploy').map(({ occasion }) => occasion)).toEqual([waits, asks, faulty])
})

test('a resumed run counts once, or once an attempt where that is asked for', async () => {
  await using t = await triggerHome()
  const mark = join(folder(), 'mark')
  const command = `[{ name: go, type: gate, commands: [{ name: look, run: "test -e ${mark}" }] }]`
  const ends = { after: '@local/build', on: ['completed', 'failed'] }
  await chainTo(t, teamFolder(NEXT), { name: 'once', ...ends })
  await chainTo(t, teamFolder(NEXT), { name: 'again', ...ends, again: true })
  const run = await runOf(t, teamFolder(teamText('build', '', command)))
  await t.look()
  writeFileSync(mark, '')
  await t.daemon.engine.resume(run as never, { by: 'local:ada' } as never)
  await t.ended(run)
  await t.look()
  expect(t.firings('once').map(({ occasion }) => occasion)).toEqual([run])
  expect(t.daemon.db.query("SELECT run ->> 'state' AS state FROM run_ends").all()).toEqual([
    ...[{ state: 'failed' }, { state: 'completed' }],
  ])
  expect(t.firings('again').map(({ occasion }) => occasion)).toEqual([`${run}/1`, `${run}/2`])
  const starters = t.firings('again').map(({ run_id }) => starterOf(t, run_id!))
  expect(starters).toMatchObject([
    { run_id: run, attempt: 1 },
    { run_id: run, attempt: 2 },
  ] as never)
})

test('no end is kept of an attempt that nothing follows', async () => {
  await using t = await triggerHome()
  const mark = join(folder(), 'mark')
  const command = `[{ name: go, type: gate, commands: [{ name: look, run: "test -e ${mark}" }] }]`
  await chainTo(t, teamFolder(NEXT), { on: ['completed', 'failed'] })
  const run = await runOf(t, teamFolder(teamText('build', '', command)))
  writeFileSync(mark, '')
  await t.daemon.engine.resume(run as never, { by: 'local:ada' } as never)
  await t.ended(run)
  expect(t.daemon.db.query("SELECT run ->> 'state' AS state FROM run_ends").all()).toEqual([{ state: 'failed' }])
})

test('ends are recorded while it is paused, and not while it is disabled', async () => {
  await using t = await triggerHome()
  await chainTo(t, teamFolder(NEXT))
  const build = teamFolder(BUILD)
  t.triggers.pause({ name: 'deploy' }, 'the week of the fair', 'local:ada')
  await runOf(t, build)
  t.triggers.resume({ name: 'deploy' }, 'none', 'local:ada')
  t.triggers.disable({ name: 'deploy' }, 'local:ada')
  await runOf(t, build)
  await t.triggers.enable({ name: 'deploy' }, 'local:ada')
  await t.look()
  const detail = 'paused by local:ada: the week of the fair'
  expect(t.firings('deploy')).toMatchObject([{ state: 'skipped', reason: 'paused', detail }])
})

test('what ended stays known when its run is deleted before the next look', async () => {
  await using t = await triggerHome()
  await chainTo(t, teamFolder(NEXT), { inputs: { said: '{{ run.state }}' } })
  const build = await runOf(t, teamFolder(BUILD))
  t.daemon.db.query('DELETE FROM runs WHERE id = ?').run(build)
  await t.look()
  const [firing] = t.firings('deploy')
  expect(t.daemon.engine.record(firing!.run_id!).inputs).toEqual({ said: 'completed' })
})

test('by hand it follows the newest end, and none where there is none', async () => {
  await using t = await triggerHome()
  await chainTo(t, teamFolder(NEXT), { inputs: { said: '{{ run.run_id }}' } })
  const now = () => t.triggers.runNow({ name: 'deploy' }, { force: false, by: 'local:ada' })
  expect(await codeOf(now())).toBe('invalid_state')
  const build = teamFolder(BUILD)
  await runOf(t, build)
  const newest = await runOf(t, build)
  const { id, run_id } = await now()
  expect(t.daemon.engine.record(run_id!).inputs).toEqual({ said: newest })
  expect(starterOf(t, run_id!)).toMatchObject({ kind: 'chain', run_id: newest, manual: { by: 'local:ada' } })
  const again = await t.triggers.refire(id, { again: true, by: 'local:ada' })
  expect(t.daemon.engine.record(again.run_id!).inputs).toEqual({ said: newest })
})

test('with overlap skip an end that comes while a run of it goes on is skipped', async () => {
  await using t = await triggerHome()
  await chainTo(t, teamFolder(ASKS), { overlap: 'skip' })
  const build = teamFolder(BUILD)
  await runOf(t, build)
  await t.look()
  await runOf(t, build)
  await t.look()
  expect(wordsOf(t)).toEqual(['started', 'skipped overlap'])
})

test('of the ends that come while a run of it goes on, the newest wait, and what starts nothing takes no place', async () => {
  await using t = await triggerHome()
  await chainTo(t, teamFolder(ASKS), { overlap: 'queue', when: 'run.outputs.number > 5.0' })
  const build = builds(7)
  for (let n = 0; n < 4; n++) await runOf(t, build)
  await runOf(t, builds(3), 'small')
  await t.look()
  const judged = ['started', 'skipped superseded', 'skipped superseded', 'waiting overlap', 'skipped when']
  expect(wordsOf(t)).toEqual(judged)
  await t.answer()
  await t.look()
  expect(wordsOf(t)).toEqual(judged.with(3, 'started'))
})

test('an end makes the run before give way', async () => {
  await using t = await triggerHome()
  await chainTo(t, teamFolder(ASKS), { overlap: 'cancel_running' })
  const build = teamFolder(BUILD)
  for (let n = 0; n < 3; n++) await runOf(t, build)
  await t.look()
  expect(wordsOf(t)).toEqual(['started', 'skipped superseded', 'waiting overlap'])
  const [first] = t.firings('deploy')
  await t.ended(first!.run_id!)
  await t.look()
  expect(wordsOf(t)).toEqual(['started', 'skipped superseded', 'started'])
})

test('beyond the most that wait for `at_most`, an end is skipped', async () => {
  await using t = await triggerHome()
  const { id } = await chainTo(t, teamFolder(NEXT), { at_most: { count: 1, per: '30d' } })
  const build = teamFolder(BUILD)
  await runOf(t, build)
  await t.look()
  t.daemon.db.run(
    `WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 9999)
     INSERT INTO firings (id, trigger_id, revision, occasion, at, seen_at, state, reason, count, variables)
     SELECT 'w' || n, ?, 1, 'w' || n, 0, 0, 'waiting', 'limit', 1, '{}' FROM n`,
    [id],
  )
  for (let n = 0; n < 3; n++) await runOf(t, build)
  await t.look()
  const last = t.triggers.firings({ name: 'deploy' }, {}, { limit: 3, offset: 0 }).reverse()
  expect(last.map(({ state, reason }) => `${state} ${reason}`)).toEqual([
    ...['waiting limit', 'skipped limit', 'skipped limit'],
  ])
})

test('what waits when it is disabled starts nothing when it is enabled again', async () => {
  await using t = await triggerHome()
  await chainTo(t, teamFolder(ASKS), { overlap: 'queue' })
  const build = teamFolder(BUILD)
  await runOf(t, build)
  await runOf(t, build)
  await t.look()
  await runOf(t, build)
  t.triggers.disable({ name: 'deploy' }, 'local:ada')
  await t.triggers.enable({ name: 'deploy' }, 'local:ada')
  await t.answer()
  await t.look()
  expect(wordsOf(t)).toEqual(['started', 'skipped removed', 'skipped removed'])
  expect(t.firings('deploy').at(-1)!.detail).toBe('the trigger was disabled while it waited')
})

test('an end is kept once, however many chains follow it', async () => {
  await using t = await triggerHome()
  const next = teamFolder(NEXT)
  for (let n = 0; n < 20; n++) await chainTo(t, next, { name: `c${n}`, inputs: { said: '{{ run.outputs.text }}' } })
  const text = 'x'.repeat(10_000)
  await runOf(t, teamFolder(teamText('build', `outputs: [{ name: text, type: string, value: ${text} }]`)))
  const stored = () =>
    t.daemon.db
      .query('SELECT (SELECT count(*) FROM run_ends) AS ends, (SELECT sum(length(variables)) FROM firings) AS size')
      .get() as { ends: number; size: number }
  expect(stored().ends).toBe(1)
  expect(stored().size).toBeLessThan(1_000)
  await t.look()
  const [firing] = t.firings('c7')
  expect(t.daemon.engine.record(firing!.run_id!).inputs).toEqual({ said: text })
})

test('chains that would start each other are refused, whichever of them comes last', async () => {
  await using t = await triggerHome()
  const [a, b, c] = ['a', 'b', 'c'].map(name => teamFolder(teamText(name))) as [string, string, string]
  const chain = (name: string, after: string, team: string) =>
    t.triggers.add({ name, kind: 'chain', team, after }, 'local:ada')
  expect(await codeOf(chain('self', 'a', a))).toBe('conflict')
  await chain('a-b', '@local/a', b)
  await chain('b-c', 'b', c)
  await expect(chain('c-a', '@local/c', a)).rejects.toThrow('for ever: c-a → a-b → b-c → c-a')
  await chain('c-d', '@local/c', teamFolder(teamText('d')))
  await expect(t.triggers.update({ name: 'c-d' }, { team: a }, undefined, 'local:ada')).rejects.toThrow('c-d → a-b')
  t.triggers.disable({ name: 'a-b' }, 'local:ada')
  await t.triggers.update({ name: 'c-d' }, { team: a }, undefined, 'local:ada')
  await expect(t.triggers.enable({ name: 'a-b' }, 'local:ada')).rejects.toThrow('a-b → b-c → c-d → a-b')
})

test('a circle that no check saw ends by itself', async () => {
  await using t = await triggerHome()
  const next = teamFolder(NEXT)
  await chainTo(t, next)
  // From now on the team that it starts is the one that it follows.
  writeFileSync(join(next, 'team.yml'), BUILD)
  await runOf(t, next)
  for (let n = 0; n < 4; n++) {
    await t.look()
    await t.ended()
  }
  expect(t.rows('deploy').map(row => row.split(' ').slice(1).join(' '))).toEqual(['started', 'refused cycle'])
  expect(t.runs()).toHaveLength(2)
})

test('a chain of runs has 16 that were started by another, at most', async () => {
  await using t = await triggerHome()
  const teams = Array.from({ length: 19 }, (_, at) => teamFolder(teamText(`t${at}`)))
  for (let at = 0; at < 18; at++) {
    await t.triggers.add({ name: `c${at}`, kind: 'chain', team: teams[at + 1]!, after: `t${at}` }, 'local:ada')
  }
  await runOf(t, teams[0]!)
  for (let n = 0; n < 18; n++) {
    await t.look()
    await t.ended()
  }
  expect(t.runs()).toHaveLength(17)
  expect(t.firings('c15')).toMatchObject([{ state: 'started' }])
  expect(t.firings('c16')).toMatchObject([{ state: 'refused', reason: 'depth' }])
  expect(t.firings('c17')).toEqual([])
})
