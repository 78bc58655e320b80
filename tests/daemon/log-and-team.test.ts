// What the dashboard asks beyond the calls of interface and command line: the log of a whole tree, the team of a run as
// it was read, and the doctor.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { LogLine, TreeLines } from '../../lib/wire/records/run-records.ts'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'

const TREE = {
  'team.yml': `name: "@local/top"
version: 1.0.0
phases:
  - { name: begin, agent: exec, env: { WHO: "{{ run.name }}" }, commands: [{ name: c, run: 'echo begin; echo "[1,2,3]" > "$CADRE_RESULT"' }] }
  - { name: each, type: map, depends_on: [begin], items: "{{ phases.begin.data }}", team: ./one, inputs: { n: "{{ item }}" } }
  - { name: end, agent: exec, depends_on: [each], commands: [{ name: c, run: echo end }] }
`,
  'one/team.yml': `name: "@local/one"
version: 1.0.0
inputs: [{ name: n, type: number, required: true }]
phases:
  - { name: say, agent: exec, env: { N: "{{ inputs.n }}" }, commands: [{ name: c, run: 'for k in 1 2 3; do echo "$N says $k"; sleep 0.02; done' }] }
`,
}

let daemon: RunningDaemon
let path: string
let runId: string

beforeAll(async () => {
  daemon = await spawnDaemon()
  path = files(TREE)
  runId = (await daemon.call('/v1/runs/start', { path, run_name: 'Tree' })).run_id
  expect((await daemon.ended(runId)).state).toBe('completed')
})
afterAll(() => daemon.stop())

async function logOf(query: Record<string, string>): Promise<(LogLine & { run_id: string })[]> {
  const reply = await fetch(`${daemon.url}/v1/runs/log?${new URLSearchParams(query)}`)
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/x-ndjson'])
  const pieces = (await reply.text())
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line) as TreeLines)
  return pieces.flatMap(({ run_id, lines }) => lines.map(line => ({ run_id, ...line })))
}

test('the log of a tree has every line of every run once, in the order of time', async () => {
  const lines = await logOf({ run_id: runId })
  expect(lines.map(({ text }) => text).toSorted()).toEqual(
    ['begin', 'end', ...[1, 2, 3].flatMap(n => [1, 2, 3].map(k => `${n} says ${k}`))].toSorted(),
  )
  expect(lines.map(({ at }) => at)).toEqual(lines.map(({ at }) => at).toSorted((a, b) => a - b))
  expect([lines[0]!.text, lines.at(-1)!.text]).toEqual(['begin', 'end'])
  expect(new Set(lines.map(({ run_id }) => run_id)).size).toBe(4)
  for (const own of Object.values(Object.groupBy(lines, ({ run_id }) => run_id))) {
    expect(own!.map(({ seq }) => seq)).toEqual(own!.map((_, index) => index + 1))
  }

  expect((await logOf({ run_id: runId, below: 'no' })).map(({ text }) => text)).toEqual(['begin', 'end'])
  const below = lines.find(({ text }) => text === '2 says 1')!.run_id
  expect((await logOf({ run_id: below })).map(({ text }) => text)).toEqual(['2 says 1', '2 says 2', '2 says 3'])
  expect((await fetch(`${daemon.url}/v1/runs/log?run_id=none`)).status).toBe(404)
})

test('a log that is longer than a page comes whole', async () => {
  const long = files({
    'team.yml': `name: "@local/long"
version: 1.0.0
phases: [{ name: say, agent: exec, commands: [{ name: c, run: seq 25000 }] }]
`,
  })
  const { run_id } = await daemon.call('/v1/runs/start', { path: long })
  await daemon.ended(run_id)
  const lines = await logOf({ run_id })
  expect(lines).toHaveLength(25_000)
  expect(lines.every(({ seq, text }, index) => seq === index + 1 && text === String(seq))).toBe(true)
})

test('the team of a run is told as it was read, after its file has gone, too', async () => {
  rmSync(join(path, 'team.yml'))
  const { name, phases } = await daemon.call('/v1/runs/team', { run_id: runId })
  expect(name).toBe('@local/top')
  expect(phases.map((phase: { name: string; depends_on: string[] }) => [phase.name, phase.depends_on])).toEqual([
    ['begin', []],
    ['each', ['begin']],
    ['end', ['each']],
  ])
  expect(phases[1]).toMatchObject({ type: 'map', items: '{{ phases.begin.data }}', inputs: { n: '{{ item }}' } })
  expect(phases[0].entries[0].env).toEqual({ WHO: '{{ run.name }}' })
})

test('the doctor needs the local token, and finds what is not set up', async () => {
  expect((await daemon.post('/v1/agents/doctor')).status).toBe(401)
  const headers = { authorization: `Bearer ${daemon.token}` }
  const { findings } = await daemon.call('/v1/agents/doctor', {}, headers)
  expect(findings.find(({ agent }: { agent: string }) => agent === 'wiki').state).toBe('unset')
  const one = await daemon.call('/v1/agents/doctor', { agent: 'wiki' }, headers)
  expect(one.findings).toMatchObject([{ agent: 'wiki', state: 'wrong' }])
  expect((await daemon.post('/v1/agents/doctor', { agent: 'wikki' }, headers)).status).toBe(400)
})
