// What docs/write-a-team.md says of phases that may not run: `when` beside `always`, an output of a phase that was
// skipped, and a run that is skipped for its concurrency key.

import { beforeAll, expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

let daemon: RunningDaemon
beforeAll(async () => {
  daemon = await spawnDaemon()
})

const HEAD = 'name: "@local/phases"\nversion: 1.0.0\n'
const exec = (name: string, run: string, more = '') =>
  `  - { name: ${name}, agent: exec, commands: [{ name: c, run: '${run}' }]${more && `, ${more}`} }\n`

/** Runs a team, and gives the states of its phases with their reasons. */
async function states(text: string, act = async (_: string) => {}): Promise<string[]> {
  const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': text }) })
  await act(run_id)
  await daemon.ended(run_id)
  const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })
  return phases.map(({ name, state, reason }: Record<string, string | null>) =>
    `${name} ${state} ${reason ?? ''}`.trim(),
  )
}

const locked = (lock: string, work: string) =>
  `${HEAD}phases:\n${exec('lock', lock)}${exec('work', work, 'depends_on: [lock]')}${exec('unlock', 'true', "depends_on: [lock, work], always: true, when: phases.lock.state == 'completed'")}`

test('a phase with always and when runs after a failure and a cancel, if its when is true', async () => {
  expect(await states(locked('true', 'exit 4'))).toEqual(['lock completed', 'work failed', 'unlock completed'])
  expect(await states(locked('exit 4', 'true'))).toEqual([
    'lock failed',
    'work skipped upstream',
    'unlock skipped when',
  ])
  const begun = join(folder(), 'begun')
  const cancel = async (run_id: string) => {
    await until(() => existsSync(begun), 'the phase that is cancelled')
    await daemon.call('/v1/runs/cancel', { run_id })
  }
  expect(await states(locked('true', `touch ${begun}; sleep 60`), cancel)).toEqual([
    'lock completed',
    'work cancelled cancelled',
    'unlock completed',
  ])
})

test('a file output of a phase that was skipped is null, if a template names it', async () => {
  const phases = exec('print', 'echo x > "$CADRE_OUT/x.txt"', 'when: inputs.print')
  const text = (value: string) =>
    `${HEAD}inputs: [{ name: print, type: boolean }]\noutputs: [{ name: x, type: file, value: '${value}' }]\nphases:\n${phases}`
  const outputs = async (value: string, print: boolean) => {
    const path = files({ 'team.yml': text(value) })
    const { run_id } = await daemon.call('/v1/runs/start', { path, inputs: { print } })
    const { state, outputs } = await daemon.ended(run_id)
    return [state, outputs]
  }
  expect(await outputs('{{ phases.print.files[0].path }}', true)).toEqual(['completed', { x: 'files/print/x.txt' }])
  expect(await outputs('{{ phases.print.files[0].path }}', false)).toEqual(['completed', { x: null }])
  expect(await outputs('files/print/x.txt', false)).toMatchObject(['failed', null])
})

test('a run that is skipped for its key ends `run` with 1, because it was cancelled', async () => {
  const done = join(folder(), 'done')
  const text = `${HEAD}concurrency: { key: nightly, when_full: skip }\nphases:\n${exec('a', `until [ -e ${done} ]; do sleep 0.1; done`)}`
  const path = files({ 'team.yml': text })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  const skipped = await command(['run', path, '--json'], { home: daemon.home })
  expect(skipped.code).toBe(1)
  expect(JSON.parse(skipped.stdout)).toMatchObject({ state: 'cancelled', reason: 'skipped' })
  writeFileSync(done, '')
  expect((await daemon.ended(run_id)).state).toBe('completed')
})
