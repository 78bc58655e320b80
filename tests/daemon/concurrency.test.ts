// A concurrency key as people meet it: what validate and plan say, and what commands show of a run that waits.

import { expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { command, files, spawnDaemon, startCommand } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const ASK = `name: "@local/deploy"
version: 1.0.0
inputs: [{ name: env, type: string, required: true }]
concurrency: { key: "deploy-{{ inputs.env }}" }
phases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]
`
const NESTED = `name: "@local/all"
version: 1.0.0
concurrency: { key: all, limit: 3, when_full: skip }
phases: [{ name: down, type: team, team: ./deploy, inputs: { env: prod } }]
`

test('validate and plan say which key is held, and which is not', async () => {
  const home = folder()
  const path = files({ 'team.yml': NESTED, 'deploy/team.yml': ASK })
  const valid = await command(['validate', path], { home })
  expect(valid.stdout).toBe(
    `${path} is valid\nnote: only a top run of @local/deploy holds its key deploy-{{ inputs.env }}; as a sub-run @local/deploy does not hold it\n`,
  )
  const plan = await command(['plan', path], { home })
  expect(plan.stdout).toContain('at most 3 runs at once hold the key all; another is cancelled at once\n')
  expect(plan.stdout).toContain('without its key deploy-{{ inputs.env }}')
  const alone = await command(['plan', `${path}/deploy`, '-i', 'env=prod', '--json'], { home })
  expect(JSON.parse(alone.stdout).concurrency).toEqual({ key: 'deploy-prod', limit: 1, when_full: 'queue' })
  const unknown = await command(['plan', `${path}/deploy`, '--json'], { home })
  expect([unknown.code, JSON.parse(unknown.stdout).concurrency.key]).toEqual([2, null])
})

test('commands say what a run waits for, and a daemon that was killed goes on in the same order', async () => {
  const home = folder()
  const path = files({ 'team.yml': ASK })
  let daemon = await spawnDaemon({ home })
  const start = (env: string): Promise<{ run_id: string; state: string }> =>
    daemon.call('/v1/runs/start', { path, inputs: { env } })
  const [first, second, third] = [await start('prod'), await start('prod'), await start('prod')]
  expect([second.state, third.state]).toEqual(['queued', 'queued'])
  const waits = `run ${first.run_id}, which holds the key deploy-prod`
  const why = await command(['why', second.run_id], { home })
  expect(why.stdout.split('\n')[0]).toBe(`Run ${second.run_id} of @local/deploy waits for ${waits}.`)
  expect((await command(['runs'], { home })).stdout).toContain('waits for the key deploy-prod')
  expect((await command(['tree', second.run_id], { home })).stdout).toContain(`waits for ${waits}`)

  await daemon.kill('SIGKILL')
  const left = await command(['why', second.run_id], { home })
  expect(left.stdout.split('\n')[0]).toBe('The run was interrupted: no process goes on with it.')
  daemon = await spawnDaemon({ home })
  const stateOf = async (run: { run_id: string }) => (await daemon.call('/v1/runs/get', run)).state
  const asks = (run: { run_id: string }) =>
    until(async () => (await stateOf({ run_id: run.run_id })) === 'awaiting_input', 'the run asks')
  await asks(first)
  expect([await stateOf({ run_id: second.run_id }), await stateOf({ run_id: third.run_id })]).toEqual([
    'queued',
    'queued',
  ])
  await daemon.call('/v1/runs/cancel', { run_id: second.run_id })
  expect(await daemon.ended(second.run_id)).toMatchObject({ state: 'cancelled', started_at: null })
  await daemon.call('/v1/runs/cancel', { run_id: first.run_id })
  await asks(third)
  expect((await daemon.stop()).code).toBe(0)
})

test('`run` says that it waits, and begins when the key is free', async () => {
  const home = folder()
  const path = files({
    'team.yml': ASK,
    'quick/team.yml': ASK.replace(
      /phases: .*/,
      'phases: [{ name: go, agent: exec, commands: [{ name: x, run: "true" }] }]',
    ),
  })
  const daemon = await spawnDaemon({ home })
  const { run_id } = await daemon.call('/v1/runs/start', { path, inputs: { env: 'prod' } })
  const child = startCommand(['run', `${path}/quick`, '-i', 'env=prod'], { home })
  let said = ''
  const decoder = new TextDecoder()
  const reading = (async () => {
    for await (const chunk of child.stderr) said += decoder.decode(chunk, { stream: true })
  })()
  await until(() => said.includes('waits for the key deploy-prod'), 'the command says what it waits for')
  await daemon.call('/v1/runs/cancel', { run_id })
  expect(await child.exited).toBe(0)
  await reading
  expect(said).toContain('completed')
  await daemon.stop()
})
