// What docs/write-a-team.md says that later phases can read of each kind of phase, compared with what they read.

import { expect, test } from 'bun:test'
import type { JsonObject } from '../../lib/json.ts'
import { testEngine } from '../support/engine.ts'

const exec = (run: string) => `agent: exec, commands: [{ name: c, run: ${JSON.stringify(run)} }]`
const TEAM = {
  'team.yml': `name: "@local/shapes"
version: 1.0.0
inputs: [{ name: list, type: list, default: [a, b] }]
phases:
  - { name: plain, ${exec('echo out; echo x > "$CADRE_OUT/x.txt"')} }
  - { name: result, ${exec(`echo '{"own":1}' > "$CADRE_RESULT"`)} }
  - { name: broken, on_failure: continue, ${exec('exit 3')} }
  - { name: passed, when: "false", ${exec('true')} }
  - { name: team, type: team, team: ./one, inputs: { name: x } }
  - { name: map, type: map, items: "{{ inputs.list }}", key: "{{ item }}", team: ./one, inputs: { name: "{{ item }}" } }
  - { name: gate, type: gate, commands: [{ name: g, run: "true" }] }
outputs:
  - { name: plain, type: object, value: "{{ phases.plain }}" }
  - { name: result, type: object, value: "{{ phases.result.data }}" }
  - { name: broken, type: object, value: "{{ phases.broken }}" }
  - { name: passed, type: list, value: "{{ [phases.passed.state, phases.passed.reason, phases.passed.error, phases.passed.data.x] }}" }
  - { name: team, type: object, value: "{{ phases.team }}" }
  - { name: map, type: object, value: "{{ phases.map.data }}" }
  - { name: gate, type: object, value: "{{ phases.gate.data }}" }
`,
  'one/team.yml': `name: "@local/one"
version: 1.0.0
inputs: [{ name: name, required: true }]
outputs:
  - { name: said, type: string, value: "{{ inputs.name }}" }
  - { name: page, type: file, value: files/print/page.txt }
phases:
  - { name: print, ${exec('echo page > "$CADRE_OUT/page.txt"')} }
`,
}

test('what phases give is of the documented form', async () => {
  const t = await testEngine()
  const { state, outputs, error } = await t.run(TEAM)
  expect([state, error]).toEqual(['completed', null])
  const { plain, result, broken, passed, team, map, gate } = outputs as Record<string, JsonObject>
  const report = { name: 'c', exit_code: 0, duration_ms: expect.any(Number), stdout: 'out\n' }
  const file = (path: string) => ({
    name: path.split('/').at(-1)!,
    path,
    bytes: expect.any(Number),
    sha256: expect.any(String),
  })
  expect(plain).toEqual({
    state: 'completed',
    reason: null,
    error: null,
    text: 'c passed',
    data: { commands: [report] },
    files: [file('files/plain/x.txt')],
  })
  expect(result).toEqual({ own: 1 })
  expect(broken).toMatchObject({ state: 'failed', error: { code: 'exit', message: expect.any(String) }, data: null })
  expect(passed).toEqual(['skipped', 'when', null, null] as never)
  expect(team).toMatchObject({ data: { said: 'x', page: 'files/team/page.txt' }, files: [file('files/team/page.txt')] })
  const item = (key: string) => ({
    ...{ key, run_id: expect.any(String), state: 'completed' },
    outputs: { said: key, page: `files/map/${key}/page.txt` },
  })
  expect(map).toEqual({ total: 2, completed: 2, failed: 0, cancelled: 0, items: [item('a'), item('b')] })
  expect(gate).toEqual({ commands: [{ ...report, name: 'g', stdout: '' }] })
  await t.close()
})
