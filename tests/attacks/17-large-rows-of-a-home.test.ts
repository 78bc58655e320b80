// The lists of a daemon read and send little of runs whose inputs and results are large, the whole is there for whoever
// asks for one thing, and commands print it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { jsonBytes, REPLY_BYTES } from '../../lib/wire/budget.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { openHome } from '../support/home-rows.ts'

const LARGE = 'x'.repeat(900_000)
/** What a reply has beside its items. */
const FRAME = 10_000

const TEAM = `name: "@local/large"
version: 1.0.0
inputs:
  - { name: text, type: string }
phases:
${Array.from({ length: 8 }, (_, at) => `  - { name: p${at}, agent: exec, commands: [{ name: say, run: "true" }] }\n`).join('')}outputs:
  - { name: text, value: "{{ inputs.text }}" }
`

let daemon: RunningDaemon
let run_id: string

beforeAll(async () => {
  const path = files({ 'team.yml': TEAM })
  daemon = await spawnDaemon()
  ;({ run_id } = await daemon.call('/v1/runs/start', { path, inputs: { text: LARGE } }))
  await daemon.ended(run_id)
  using db = openHome(daemon.home)
  // Results as agents of other systems return them.
  db.run("UPDATE phases SET data = json_object('text', ?), text = 'said'", [LARGE])
  db.run('UPDATE phases SET text = ? WHERE position = 3', [LARGE.repeat(2)])
  db.run("UPDATE phases SET data = '{}' WHERE position = 7")
})
afterAll(() => daemon.stop())

test('a list has the bytes of inputs and outputs that are large, and `runs/get` the whole', async () => {
  const { runs } = await daemon.call('/v1/runs/list')
  expect(runs[0]).toMatchObject({ inputs: null, inputs_bytes: LARGE.length + 11, outputs: null })
  expect(runs[0].outputs_bytes).toBe(LARGE.length + 11)
  const run = await daemon.call('/v1/runs/get', { run_id })
  expect(run).toMatchObject({ inputs: { text: LARGE }, outputs: { text: LARGE } })
})

test('the phases of a run fit into a reply, and one phase is whole', async () => {
  const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })
  expect(jsonBytes(phases)).toBeLessThan(REPLY_BYTES + FRAME)
  expect(phases[3]).toMatchObject({ text: null, text_bytes: 2 * LARGE.length })
  expect(phases[7]).toMatchObject({ data: {}, text: 'said' })
  const left = phases.filter((phase: { data: unknown }) => phase.data === null)
  expect(left).toHaveLength(3)
  const { phases: one } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id, phase: left[0].name })
  expect(one).toHaveLength(1)
  expect(one[0].data).toEqual({ text: LARGE })
})

test('the events of a run do not carry what is large', async () => {
  const headers = { authorization: `Bearer ${daemon.token}` }
  const told = await (await fetch(`${daemon.url}/v1/runs/stream?run_id=${run_id}`, { headers })).text()
  expect(told).toContain('event: end')
  expect(told.length).toBeLessThan(30_000)
})

test('commands list large runs, and show the whole of one', async () => {
  const listed = await command(['runs', '--json'], { home: daemon.home })
  expect(listed.stdout.length).toBeLessThan(10_000)
  const shown = await command(['show', run_id, '--json'], { home: daemon.home })
  expect(JSON.parse(shown.stdout).inputs).toEqual({ text: LARGE })
  const phases = await command(['phases', run_id], { home: daemon.home })
  expect(phases.stdout).toContain('… (1.7 MiB)')
})
