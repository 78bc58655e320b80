import { describe, expect, test } from 'bun:test'
import { bundleFromJson } from '../../lib/team/compile/bundle.ts'
import type { MapPhase } from '../../lib/team/model/compiled-team.ts'
import { agentRefs, secretReader, teamsOf } from '../../lib/team/model/model.ts'
import { HEAD, load, problems, scope } from './load.ts'

const OUTER = `${HEAD}inputs:
  - { name: who, type: string }
  - { name: token, type: string, secret: true }
  - { name: page, type: file }
  - { name: other, type: object }
phases:
  - name: fetch
    agent: exec
    commands: [{ name: a, run: 'true' }]
`

/** A map of `phases`, which stand four columns further in than here. */
const mapOf = (phases: string, more = '') => `${OUTER}  - name: each
    type: map
    depends_on: [fetch]
    items: "{{ phases.fetch.data.items }}"
${more}    phases:
${phases.replaceAll(/^/gm, '      ').trimEnd()}
`

const say = (env: string, more = '') => `- name: say
  agent: exec
  env: { A: "${env}" }
${more}  commands: [{ name: a, run: 'true' }]
`

describe('its team', () => {
  test('has the name of the file with the phase, and the version of the file', async () => {
    const inner = `- name: below
  type: map
  items: "{{ item.list }}"
  phases:
    - { name: say, agent: exec@eu, commands: [{ name: a, run: 'true' }] }
`
    const bundle = await load(mapOf(inner))
    expect(bundle.keys()).toEqual(['.', './/each', './/each//below'])
    expect(teamsOf(bundle).map(([, { name, version }]) => `${name} ${version}`)).toEqual([
      '@local/test 1.0.0',
      '@local/test/each 1.0.0',
      '@local/test/each/below 1.0.0',
    ])
    expect((bundle.team('.').phases[1] as MapPhase).team).toBe('.//each')
    expect(Object.keys(bundle.json().teams)).toEqual(['.'])
    expect(bundle.package('.//each')).toEqual(bundle.package('.'))
    expect(secretReader(bundle, './/each//below')).toEqual(secretReader(bundle, '.'))
    expect(agentRefs(bundle.team('.//each//below'))).toEqual(['exec@eu'])
  })

  test('is the same in a stored bundle, whichever team is asked for first', async () => {
    const bundle = await load(mapOf(say('{{ item.id }} {{ inputs.who }}')))
    const stored = bundleFromJson(bundle.json())
    expect(stored.team('.//each').inputs).toEqual(bundle.team('.//each').inputs)
    expect(stored.team('.//each').inPlace).toEqual({ untyped: ['item'] })
    expect(stored.keys()).toEqual(bundle.keys())
    expect(stored.id).toBe(bundle.id)
    expect(() => stored.team('.//other')).toThrow('the bundle has no team .//other')
  })

  test('gets what its phases name of the item and of the inputs, and nothing else', async () => {
    const bundle = await load(mapOf(say('{{ inputs.who }} {{ inputs.token }}', '  when: index > 0\n')))
    const inner = bundle.team('.//each')
    expect(inner.inputs.map(({ name, secret, required }) => [name, secret, required])).toEqual([
      ['who', false, false],
      ['token', true, false],
    ])
    const { inputs } = bundle.team('.').phases[1] as MapPhase
    const given = { who: 'Ada', token: 't', other: { a: 1 } }
    expect(inputs.evaluate(scope({ inputs: given, item: { id: 1 }, index: 3 }))).toEqual({
      who: 'Ada',
      token: 't',
      index: 3,
    })
    expect(inputs.given).toEqual(new Set(['inputs.who', 'inputs.token']))
  })

  test('has also what the map gives, which maps below read too', async () => {
    const inner = `- name: below
  type: map
  items: "{{ inputs.lines }}"
  inputs: [{ name: file, type: file, value: "{{ item.path }}" }]
  phases:
    - name: say
      agent: exec
      env: { A: "{{ inputs.lines[0] + inputs.who + item.name }}", FILE: "{{ inputs.file }}" }
      commands: [{ name: a, run: 'true' }]
`
    const bundle = await load(mapOf(inner, '    inputs: { lines: "{{ item.lines }}" }\n'))
    const [, each] = bundle.team('.').phases as [unknown, MapPhase]
    const [below] = bundle.team('.//each').phases as [MapPhase]
    expect(bundle.team('.//each').inputs.map(({ name }) => name)).toEqual(['who'])
    expect(bundle.team('.//each').inPlace).toEqual({ untyped: ['lines'] })
    expect(bundle.team('.//each//below').inputs.map(({ name, type }) => `${name} ${type}`)).toEqual([
      'who string',
      'file file',
    ])
    expect(bundle.team('.//each//below').inPlace).toEqual({ untyped: ['item', 'lines'] })
    const lines = [{ name: 'x', path: 'files/x' }]
    expect(each.inputs.evaluate(scope({ inputs: { who: 'Ada' }, item: { lines }, index: 0 }))).toEqual({
      who: 'Ada',
      lines,
    })
    const nested = { inputs: { who: 'Ada', lines }, item: lines[0]!, index: 0 }
    expect(below.inputs.evaluate(scope(nested))).toEqual({ who: 'Ada', lines, item: lines[0]!, file: 'files/x' })
  })

  test('is a phase of the name of the map where the map has an agent', async () => {
    const bundle = await load(`${OUTER}  - name: each
    type: map
    items: "{{ [1] }}"
    on_item_failure: continue
    agent: exec
    retry: { attempts: 3 }
    env: { A: "{{ item }}" }
    commands: [{ name: a, run: 'true' }]
    outputs: [{ name: code, type: number, value: "{{ phases.each.data.commands[0].exit_code }}" }]
`)
    const [, each] = bundle.team('.').phases as [unknown, MapPhase]
    expect(each.onItemFailure).toBe('continue')
    expect(each.retry.attempts).toBe(1)
    const inner = bundle.team('.//each')
    expect(inner.phases.map(({ name, type, retry }) => [name, type, retry.attempts])).toEqual([['each', 'standard', 3]])
    expect(inner.outputs.map(({ name }) => name)).toEqual(['code'])
  })
})

describe('mistakes are reported at their place in the one file', () => {
  test.each([
    [
      'a name that is not there',
      mapOf(say('{{ inputs.whom }}')),
      ['19:30 no input `whom` (did you mean `who`?) is declared'],
    ],
    [
      'a phase outside of the map',
      mapOf(say('{{ phases.fetch.data }}')),
      ['19:30 `fetch` is outside of this map: name it in the `inputs` of the map, and read `inputs.<name>` here'],
    ],
    [
      'a dependency outside of the map',
      mapOf(say('x', '  depends_on: [fetch]\n')),
      ['20:22 `fetch` is outside of this map: the map begins after the phases in its own `depends_on`'],
    ],
    [
      'a phase inside, from outside',
      `${mapOf(say('x'))}  - name: last
    agent: exec
    depends_on: [say]
    commands: [{ name: a, run: 'true' }]
`,
      ['23:18 there is no phase `say`'],
    ],
    ['a field', mapOf(say('x', '  timout: 5s\n')), ['20:9 unknown field `timout` (did you mean `timeout`?)']],
    ['two phases of one name', mapOf(say('x') + say('x')), ['21:15 another phase is named `say`']],
    ['an unknown agent', mapOf('- { name: a, agent: exce }'), [expect.stringMatching(/^17:27 unknown agent `exce`/)]],
    ['no phases', mapOf('').replace('    phases:\n', '    phases: []\n'), ['16:13 expected at least 1 in this list']],
    [
      'nothing to do',
      `${OUTER}  - { name: each, type: map, items: "{{ [1] }}" }\n`,
      ['12:5 `phases` is missing: what is done with each item (or `team`, a folder or a package that does it)'],
    ],
    [
      'a team beside phases',
      mapOf(say('x'), '    team: ./a\n').replace('./a', './a'),
      [
        '16:5 `team` and `phases` exclude each other: a map has one of them',
        expect.stringMatching(/^16:11 there is no team.yml in/),
      ],
    ],
    [
      'an agent beside phases',
      mapOf(say('x'), '    agent: exec\n'),
      ['16:5 `agent` and `phases` exclude each other: put the agent into a phase of `phases`'],
    ],
    [
      'a retry of the whole',
      mapOf(say('x'), '    retry: { attempts: 2 }\n'),
      ['16:5 a map cannot be retried as a whole: put `retry` on its phases'],
    ],
    [
      'a name of its own',
      mapOf(say('x'), '    inputs: { item: 1 }\n'),
      ['16:15 `item` is what the map itself gives: choose another name'],
    ],
    [
      'a secret that would not be masked',
      mapOf(say('x'), '    inputs: { a: "{{ inputs.token }}" }\n'),
      ['16:29 `token` is secret: the phases of the map read it as `inputs.token` without this'],
    ],
    [
      'a value of the wrong type',
      mapOf(say('x'), '    inputs: [{ name: a, type: number, value: five }]\n'),
      ['16:46 expected a number, not text'],
    ],
    ['a type that is missing', mapOf(say('x')).replace('    type: map\n', ''), ['12:5 `type: map` is missing']],
    [
      'a type that is missing beside an agent',
      `${OUTER}  - { name: each, items: [1], agent: exec, commands: [{ name: a, run: x }] }\n`,
      ['12:5 `type: map` is missing'],
    ],
    ['the item as an input', mapOf(say('{{ inputs.item }}')), ['19:30 `item` is no input: write `item` alone']],
    [
      'outputs that name no phase of the map',
      mapOf(say('x'), '    outputs: [{ name: o, value: "{{ phases.each.text }}" }]\n'),
      ['16:44 `each` is outside of this map: name it in the `inputs` of the map, and read `inputs.<name>` here'],
    ],
    [
      'outputs of a map with a team',
      `${OUTER}  - { name: each, type: map, items: "{{ [1] }}", team: ./a, outputs: [] }\n`,
      [expect.stringMatching(/^12:56 there is no team.yml/), expect.stringMatching(/^12:61 unknown field `outputs`/)],
    ],
  ])('%s', async (_, text, expected) => expect(await problems(text)).toEqual(expected))

  test('a sub-team that is named in it', async () => {
    const inner = `- name: call
  type: team
  team: ./one
  inputs: { a: 5, b: 1 }
`
    const one = `${HEAD}inputs: [{ name: a, type: string }]\nphases: [{ name: x, agent: exec, commands: [{ name: a, run: x }] }]\n`
    expect(await problems(mapOf(inner), { 'one/team.yml': one })).toEqual([
      '20:22 input `a` of @local/test: expected text, not a number',
      '20:25 @local/test has no input `b` (did you mean `a`?)',
    ])
  })

  test('where the names of nested maps become too long', async () => {
    const name = 'a'.repeat(100)
    const nest = (depth: number): string =>
      depth === 0
        ? `{ name: x, agent: exec, commands: [{ name: a, run: x }] }`
        : `{ name: ${name}, type: map, items: "{{ [1] }}", phases: [${nest(depth - 1)}] }`
    const found = await problems(`${HEAD}phases: [${nest(10)}]\n`)
    expect(found).toEqual([expect.stringMatching(/^3:\d+ the names of these maps are longer than 1000 characters/)])
  })
})
