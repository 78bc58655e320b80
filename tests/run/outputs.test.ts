// Outputs that cannot be made: a warning of a top run, a failure of a sub-run or of a promised file, and made again.

import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { why } from '../../lib/run/engine.ts'
import { testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'

const HEAD = 'name: "@local/made"\nversion: 1.0.0\n'
const COUNT = `phases:
  - { name: count, agent: exec, commands: [{ name: c, run: 'echo once >> "$LOG"; echo "{}" > "$CADRE_RESULT"' }], env: { LOG: "{{ inputs.log }}" } }
`
const LOG = 'inputs: [{ name: log, type: string }]\n'

test('in a top run they are null, and the run completes with a warning', async () => {
  await using t = await testEngine()
  const log = join(folder(), 'log')
  const run = await t.run(
    `${HEAD}${LOG}outputs:
  - { name: gone, value: "{{ phases.count.data.total }}" }
  - { name: log, value: "{{ inputs.log }}" }
  - { name: wrong, type: number, value: "{{ dyn(inputs.log) }}" }
${COUNT}`,
    { log },
  )
  expect(run).toMatchObject({
    state: 'completed',
    reason: 'outputs',
    outputs: { gone: null, log, wrong: null },
    error: { code: 'invalid_request', run_id: run.run_id },
  })
  expect(run.error!.message).toContain('output gone could not be made: team.yml:5:')
  expect(run.error!.message).toContain("`or(phases.count.data.total, '-')` gives a value instead")
  expect(run.error!.message).toContain('output wrong is declared number, got')

  const found = why(t.engine.store, run.run_id, id => t.engine.bundle(id))
  expect(found.lines[0]).toMatch(/^Run .* completed after .*, but output gone could not be made: /)
  expect(found.lines[1]).toStartWith('A resume would end the same way')
  expect(found.next).toEqual([['show', run.run_id]])

  const plan = t.engine.planResume(run.run_id, { outputs: true })
  expect(plan).toMatchObject({ repeated: [], kept: [{ phase: 'count' }] })
  await t.engine.resume(run.run_id, { outputs: true })
  expect(await t.engine.ended(run.run_id)).toMatchObject({ state: 'completed', reason: 'outputs', attempt: 2 })
  expect(await Bun.file(log).text()).toBe('once\n')
})

test('a run that lacks no output has none to make again, and no phase is repeated beside them', async () => {
  await using t = await testEngine()
  const run = await t.run(`${HEAD}${LOG}${COUNT}`, { log: join(folder(), 'log') })
  await expect(t.engine.resume(run.run_id, { outputs: true })).rejects.toThrow('has all of its outputs')
  await expect(t.engine.resume(run.run_id, { outputs: true, failed: true })).rejects.toThrow('give it alone')
})

test('a promised file that is missing fails the run, and is found when the outputs are made again', async () => {
  await using t = await testEngine()
  const workspace = folder()
  const log = join(folder(), 'log')
  const team = `${HEAD}${LOG}concurrency: { key: made }\noutputs: [{ name: page, type: file, value: out/page.txt }]\n${COUNT}`
  const started = await t.start(team, { log }, { workspace, fromPath: true })
  const run = await t.engine.ended(started.run_id)
  expect(run).toMatchObject({ state: 'failed', reason: 'outputs', outputs: null })
  mkdirSync(join(workspace, 'out'))
  writeFileSync(join(workspace, 'out/page.txt'), 'page')
  await t.engine.resume(run.run_id, { outputs: true })
  expect(await t.engine.ended(run.run_id)).toMatchObject({
    ...{ state: 'completed', reason: null, error: null, attempt: 2 },
    outputs: { page: 'out/page.txt' },
  })
  expect(await Bun.file(log).text()).toBe('once\n')
})

test('in a sub-run they fail it, and the run above goes on when they are made again', async () => {
  await using t = await testEngine()
  const workspace = folder()
  const log = join(folder(), 'log')
  const started = await t.start(
    {
      'team.yml': `name: "@local/above"
version: 1.0.0
${LOG}outputs: [{ name: pages, value: "{{ phases.below.data.page }}" }]
phases:
  - { name: below, type: team, team: ./made, inputs: { log: "{{ inputs.log }}" } }
  - { name: after, agent: exec, depends_on: [below], commands: [{ name: c, run: 'echo after >> "$LOG"' }], env: { LOG: "{{ inputs.log }}" } }
`,
      'made/team.yml': `${HEAD}${LOG}outputs: [{ name: page, type: file, value: out/page.txt }]\n${COUNT}`,
    },
    { log },
    { workspace, fromPath: true },
  )
  const run = await t.engine.ended(started.run_id)
  expect(run).toMatchObject({ state: 'failed', reason: null })
  expect(why(t.engine.store, run.run_id, id => t.engine.bundle(id)).next).toContainEqual([
    ...['resume', run.run_id, '--outputs'],
  ])
  mkdirSync(join(workspace, 'out'))
  writeFileSync(join(workspace, 'out/page.txt'), 'page')
  await t.engine.resume(run.run_id, { outputs: true })
  expect(await t.engine.ended(run.run_id)).toMatchObject({ state: 'completed', attempt: 2 })
  expect(await Bun.file(log).text()).toBe('once\nafter\n')
})

test('in a sub-run a value that cannot be made fails it', async () => {
  await using t = await testEngine()
  const run = await t.run(
    {
      'team.yml': `name: "@local/above"
version: 1.0.0
${LOG}phases: [{ name: below, type: team, team: ./made, inputs: { log: "{{ inputs.log }}" } }]
`,
      'made/team.yml': `${HEAD}${LOG}outputs: [{ name: gone, value: "{{ phases.count.data.total }}" }]\n${COUNT}`,
    },
    { log: join(folder(), 'log') },
  )
  expect(run).toMatchObject({ state: 'failed', error: { phase: 'below' } })
  expect(run.error!.message).toContain('No such key: total')
})
