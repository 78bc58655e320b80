// A map in place: the engine runs the team that stands in the file as it runs one of a folder.

import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { agent, Type } from '../../lib/agent/cadre.ts'
import type { Json } from '../../lib/json.ts'
import { why } from '../../lib/run/engine.ts'
import { until } from '../support/bounded.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'

const HEAD = 'name: "@local/digest"\nversion: 1.2.0\n'

const phase = (t: TestEngine, runId: string, name: string) =>
  t.engine.phases(runId).phases.find(each => each.name === name)!
/** The sub-runs of a phase by their keys. */
const below = (t: TestEngine, runId: string, name: string) =>
  Object.fromEntries(phase(t, runId, name).sub_runs.map(each => [each.run_name!, each.run_id]))

test('its phases read the item, the index and the inputs; its outputs and files are those of the items', async () => {
  await using t = await testEngine()
  const run = await t.run(
    `${HEAD}inputs: [{ name: names, type: list }, { name: greeting, type: string }, { name: unread, type: string }]
outputs:
  - { name: lengths, type: list, value: "{{ phases.each.data.items.map(i, i.outputs.length) }}" }
phases:
  - name: each
    type: map
    items: "{{ inputs.names }}"
    key: "{{ item }}"
    outputs:
      - { name: text, type: file, value: files/say/hello.txt }
      - { name: length, type: number, value: "{{ phases.count.data.length }}" }
    phases:
      - name: say
        agent: exec
        env: { TEXT: "{{ inputs.greeting }} {{ item }} {{ index }}" }
        commands: [{ name: say, run: 'printf "%s" "$TEXT" > "$CADRE_OUT/hello.txt"' }]
      - name: count
        agent: exec
        depends_on: [say]
        commands: [{ name: c, run: 'echo "{\\"length\\": $(wc -c < "$CADRE_FILES/say/hello.txt")}" > "$CADRE_RESULT"' }]
`,
    { names: ['Ada', 'Grace'], greeting: 'Hello', unread: 'x' },
  )
  expect(run).toMatchObject({ state: 'completed', outputs: { lengths: [11, 13] } })
  const each = phase(t, run.run_id, 'each')
  expect(each.files.map(({ path }) => path)).toEqual(['files/each/Ada/hello.txt', 'files/each/Grace/hello.txt'])
  expect(readFileSync(join(t.engine.stateDir(run.run_id), 'files/each/Grace/hello.txt'), 'utf8')).toBe('Hello Grace 1')
  expect(t.engine.record(below(t, run.run_id, 'each').Grace!)).toMatchObject({
    ...{ team: '@local/digest/each', version: '1.2.0', run_name: 'Grace', parent_phase: 'each' },
    call_path: ['@local/digest', '@local/digest/each'],
    inputs: { greeting: 'Hello', item: 'Grace', index: 1 },
  })
})

test('maps in place nest, and hand values and files down', async () => {
  await using t = await testEngine()
  const run = await t.run(
    `${HEAD}inputs: [{ name: teams, type: list }]
phases:
  - name: team
    type: map
    items: "{{ inputs.teams }}"
    key: "{{ item.name }}"
    inputs: { team: "{{ item.name }}" }
    outputs: [{ name: texts, type: list, value: "{{ phases.person.data.items.map(i, i.outputs.text) }}" }]
    phases:
      - name: rules
        agent: exec
        env: { TEXT: "{{ item.name }} greets" }
        commands: [{ name: write, run: 'printf "%s" "$TEXT" > "$CADRE_OUT/rules.txt"' }]
      - name: person
        type: map
        depends_on: [rules]
        items: "{{ item.people }}"
        key: "{{ item }}"
        inputs: [{ name: rules, type: file, value: "{{ phases.rules.files[0].path }}" }]
        agent: exec
        env: { WHO: "{{ inputs.team }} {{ item }} {{ index }}", RULES: "{{ inputs.rules }}" }
        commands: [{ name: say, run: 'printf "{\\"text\\": \\"%s: %s\\"}" "$(cat "$RULES")" "$WHO" > "$CADRE_RESULT"' }]
        outputs: [{ name: text, value: "{{ phases.person.data.text }}" }]
`,
    {
      teams: [
        { name: 'red', people: ['Ada', 'Grace'] },
        { name: 'blue', people: ['Alan'] },
      ],
    },
  )
  expect(run.state).toBe('completed')
  expect(phase(t, run.run_id, 'team').data).toMatchObject({
    items: [
      { outputs: { texts: ['red greets: red Ada 0', 'red greets: red Grace 1'] } },
      { outputs: { texts: ['blue greets: blue Alan 0'] } },
    ],
  })
  const red = below(t, run.run_id, 'team').red!
  const ada = t.engine.record(below(t, red, 'person').Ada!)
  expect(ada.call_path).toEqual(['@local/digest', '@local/digest/team', '@local/digest/team/person'])
  expect(ada.inputs).toMatchObject({ item: 'Ada', index: 0, team: 'red' })
})

const FAILING = `${HEAD}inputs: [{ name: dir, type: string }, { name: names, type: list }]
phases:
  - name: each
    type: map
    items: "{{ inputs.names }}"
    key: "{{ item.name }}"
    on_item_failure: continue
    outputs: [{ name: text, value: "{{ phases.say.data.text }}" }]
    phases:
      - name: first
        agent: exec
        env: { DIR: "{{ inputs.dir }}", NAME: "{{ item.name }}" }
        commands: [{ name: first, run: 'echo "$NAME" >> "$DIR/firsts"' }]
      - name: say
        agent: exec
        depends_on: [first]
        env: { TEXT: "{{ item.text }}", FILE: "{{ inputs.dir }}/{{ item.name }}" }
        commands: [{ name: say, run: 'test -e "$FILE" && echo "{\\"text\\": \\"$TEXT\\"}" > "$CADRE_RESULT"' }]
  - name: names
    agent: exec
    depends_on: [each]
    env: { ALL: "{{ phases.each.data.items.map(i, or(i.outputs.text, '-')).join(' ') }}" }
    commands: [{ name: names, run: 'echo "{\\"all\\": \\"$ALL\\"}" > "$CADRE_RESULT"' }]
`

test('an item that fails has null outputs, and `resume --failed` repeats what did not complete in it', async () => {
  await using t = await testEngine()
  const dir = folder()
  await Bun.write(join(dir, 'a'), '')
  const names = ['a', 'b', 'c'].map(name => ({ name, text: name.toUpperCase() }))
  const { run_id, state } = await t.run(FAILING, { dir, names })
  expect(state).toBe('completed')
  expect(phase(t, run_id, 'names').data).toEqual({ all: 'A - -' })
  const items = () => (phase(t, run_id, 'each').data as { items: object[] }).items
  expect(items()).toMatchObject([
    { state: 'completed', outputs: { text: 'A' } },
    { state: 'failed', outputs: { text: null }, error: { code: 'exit', message: 'command say exited with code 1' } },
    { state: 'failed', outputs: { text: null }, error: { code: 'exit', message: 'command say exited with code 1' } },
  ])
  const runs = below(t, run_id, 'each')
  await Bun.write(join(dir, 'b'), '')
  await t.engine.resume(run_id, { failed: true })
  await t.engine.ended(run_id)
  expect(items()).toMatchObject([
    { state: 'completed' },
    { state: 'completed', outputs: { text: 'B' } },
    { state: 'failed' },
  ])
  expect(phase(t, run_id, 'names').data).toEqual({ all: 'A B -' })
  expect(below(t, run_id, 'each')).toEqual(runs)
  expect(readFileSync(join(dir, 'firsts'), 'utf8').trim().split('\n').sort()).toEqual(['a', 'b', 'c'])
})

test('an error in it has its place in the one file, and `why` goes down to it', async () => {
  await using t = await testEngine()
  const run = await t.run(FAILING.replace('    on_item_failure: continue\n', ''), {
    dir: folder(),
    names: [{ name: 'a' }],
  })
  expect(run).toMatchObject({ state: 'failed', error: { phase: 'each' } })
  const found = why(t.engine.store, run.run_id, id => t.engine.bundle(id)).lines.join('\n')
  expect(found).toContain('team.yml:18:31: No such key: text')
  expect(found).toContain('Sub-run a')
})

/** Its items and the values that it gives to them come from the outside in each attempt. */
const listed = (given: { list: Json[]; greeting: string }) =>
  agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Looks outside.',
    settings: Type.Object({}),
    source: {
      effect: 'read',
      entry: Type.Object({ name: Type.String() }),
      run: async () => ({ text: '', data: { ...given } }),
    },
  })

const MOVING = (more: string, said: string) => `${HEAD}inputs: [{ name: dir, type: string }]
phases:
  - { name: probe, agent: exec, on_failure: continue, env: { DIR: "{{ inputs.dir }}" }, commands: [{ name: p, run: 'test -e "$DIR/said"' }] }
  - { name: list, agent: listed, depends_on: [probe], sources: [{ name: x }] }
  - name: each
    type: map
    depends_on: [list]
    items: "{{ phases.list.data.list }}"
    key: "{{ item.k }}"
${more}    agent: exec
    env: { DIR: "{{ inputs.dir }}", NAME: "{{ item.k }}", SAID: "${said}" }
    commands: [{ name: say, run: 'echo "$NAME $SAID" >> "$DIR/said"' }]
`

test.each([
  ['nothing but its item', '', 'x', ['b x']],
  ['its position', '', '{{ index }}', ['a 1', 'b 0']],
  [
    'what the map gives',
    '    inputs: { greeting: "{{ phases.list.data.greeting }}" }\n',
    '{{ inputs.greeting }}',
    ['a Hi', 'b Hi', 'c Hi'],
  ],
])(
  'after a resume that evaluates the items anew, one that reads %s runs again if that is another',
  async (_, more, said, again) => {
    const given = { list: ['a', 'b', 'c'].map(k => ({ k, v: k })) as Json[], greeting: 'Hello' }
    await using t = await testEngine({ agents: { listed: listed(given) } })
    const dir = folder()
    const { run_id } = await t.run(MOVING(more, said), { dir })
    const lines = () => readFileSync(join(dir, 'said'), 'utf8').trim().split('\n')
    const first = lines().length
    expect(first).toBe(3)
    const runs = below(t, run_id, 'each')
    given.list = [
      { k: 'b', v: 'other' },
      { k: 'a', v: 'a' },
      { k: 'c', v: 'c' },
    ]
    given.greeting = 'Hi'
    await t.engine.resume(run_id, { failed: true })
    expect(await t.engine.ended(run_id)).toMatchObject({ state: 'completed', attempt: 2 })
    expect(lines().slice(first).sort()).toEqual(again)
    expect(below(t, run_id, 'each')).toEqual(runs)
  },
)

test('a secret of the team is masked in it, and goes on after a restart', async () => {
  const home = folder()
  const dir = folder()
  const team = `${HEAD}inputs: [{ name: token, type: string, secret: true }, { name: dir, type: string }]
phases:
  - name: each
    type: map
    items: [a, b]
    key: "{{ item }}"
    concurrency: 1
    phases:
      - name: use
        agent: exec
        env: { TOKEN: "{{ inputs.token }}", NAME: "{{ inputs.dir }}/{{ item }}" }
        commands: [{ name: use, run: 'echo "$TOKEN"; echo "$TOKEN" > "$NAME"; test -e "$NAME-go" || { touch "$NAME-began"; sleep 60; }' }]
`
  const first = await testEngine({ home })
  const { run_id } = await first.start(team, { token: 's3cr3t-token', dir })
  await until(() => existsSync(join(dir, 'a-began')), 'the first item')
  await first.close()
  await Bun.write(join(dir, 'a-go'), '')
  await Bun.write(join(dir, 'b-go'), '')
  await using t = await testEngine({ home })
  expect(await t.engine.ended(run_id)).toMatchObject({ state: 'completed' })
  expect(readFileSync(join(dir, 'b'), 'utf8')).toBe('s3cr3t-token\n')
  const { a } = below(t, run_id, 'each')
  expect(t.engine.record(a!).inputs).toEqual({ token: '***', dir, item: 'a' })
  expect(phase(t, a!, 'use').data).toMatchObject({ commands: [{ stdout: '***\n' }] })
})
