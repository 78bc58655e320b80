// What a template gives is compared with what its place takes before a run, as far as that is known: each mistake with its
// place and a form that works. What is known only at run time is no mistake.

import { describe, expect, test } from 'bun:test'
import { HEAD, problems, scope, team } from './load.ts'

const INPUTS = `inputs:
  - { name: n, type: number }
  - { name: t }
  - { name: yes, type: boolean }
  - { name: l, type: list }
  - { name: o, type: object }
  - { name: f, type: file }
`
const EXEC = "agent: exec, commands: [{ name: c, run: 'true' }]"
const PHASES = `phases:
  - { name: a, ${EXEC} }
  - { name: each, type: map, items: "{{ inputs.l }}", team: ./sub }
`
const SUB = {
  'sub/team.yml': `name: "@local/sub"\nversion: 1.0.0\ninputs: [{ name: n, type: number }, { name: t }]\nphases:\n  - { name: a, ${EXEC} }\n`,
}

/** The problems of an output of a type with this expression. */
const ofOutput = (expression: string, type: string) => {
  const outputs = `outputs:\n  - { name: x, type: ${type}, value: ${JSON.stringify(`{{ ${expression} }}`)} }\n`
  return problems(`${HEAD}${INPUTS}${outputs}${PHASES}`, SUB)
}
const types = ['string', 'number', 'boolean', 'list', 'object'] as const

describe('what an expression gives is known of', () => {
  const cases: [expression: string, type: (typeof types)[number]][] = [
    ['size(phases.a.text)', 'number'],
    ['phases.a.text', 'string'],
    ['phases.a.state', 'string'],
    ['phases.a.files', 'list'],
    ['phases.a.data.n > 1', 'boolean'],
    ['phases.each.data.failed', 'number'],
    ['phases.each.data.items', 'list'],
    ['phases.a.data.list.map(i, i.x)', 'list'],
    ["phases.a.data.s + '!'", 'string'],
    ['1 + phases.a.data.n', 'number'],
    ['string(phases.a.data.n)', 'string'],
    ['timestamp(run.started_at)', 'string'],
    ['run.started_at', 'number'],
    ['inputs.n', 'number'],
    ['inputs.t', 'string'],
    ['inputs.f', 'string'],
    ['inputs.yes', 'boolean'],
    ['inputs.l', 'list'],
    ['inputs.o', 'object'],
    ["inputs['n']", 'number'],
    ['inputs', 'object'],
    ["{'a': phases.a.data}", 'object'],
    ['[phases.a.data]', 'list'],
    ['inputs.yes ? inputs.t : phases.a.text', 'string'],
    ["or(inputs.t, '-')", 'string'],
  ]
  test.each(cases)('%s', async (expression, type) => {
    for (const other of types) {
      const found = await ofOutput(expression, other)
      expect(found.map(each => each.replace(/^\S+ /, ''))).toEqual(
        other === type ? [] : [expect.stringMatching(/^expected .*, but `.*` gives .*: output `x` has `type: /)],
      )
    }
  })
})

test.each([
  'phases.a.data',
  'phases.a.data.n',
  'phases.a.data.?n.orValue(1)',
  "phases.a.data.list.first().orValue('')",
  'phases.a.data.list[0]',
  '([1] + phases.a.data.list)[0]',
  "inputs.yes ? dyn('a') : 1",
  'inputs.yes ? phases.a.data.x : phases.a.text',
  'or(phases.a.data.n, 1)',
  "or(inputs.n, '-')",
  'math.greatest(1, phases.a.data.n)',
  'fromJson(phases.a.text)',
  'cel.bind(x, phases.a.data.n, x)',
  'phases.a.data.n * 2',
  'phases.a.error',
  'null',
])('what %s gives is known only at run time', async expression => {
  for (const type of types) expect(await ofOutput(expression, type)).toEqual([])
})

describe('the mistake has its place, and a form that works', () => {
  test.each([
    [
      'size(phases.a.text)',
      'string',
      'has `type: string`; declare `type: number`, or write `{{ string(size(phases.a.text)) }}`',
    ],
    ['inputs.l', 'string', 'has `type: string`; declare `type: list`, or write `{{ toJson(inputs.l) }}`'],
    ['phases.a.text', 'number', 'has `type: number`; declare `type: string`, or write `{{ double(phases.a.text) }}`'],
    ['inputs.n', 'file', 'has `type: file`; declare `type: number`'],
  ])('output %s %s', async (expression, type, end) => {
    const [found] = await ofOutput(expression, type)
    expect(found).toEndWith(end)
    const at = `  - { name: x, type: ${type}, value: "{{ `.length + 1
    expect(found).toStartWith(`11:${at} `)
  })

  /** The phase at line 11. */
  const ofPhase = (phase: string) => problems(`${HEAD}${INPUTS}phases:\n  - ${phase}\n`)

  test.each([
    [
      'name: s, agent: issues, action: search, sources: [{ name: e, ref: x, limit: "{{ inputs.t }}" }]',
      'expected a whole number from 1 to 10000, but `inputs.t` gives text: write `{{ int(inputs.t) }}`',
    ],
    [
      'name: s, agent: wiki, action: update_page, target_entries: [{ name: e, ref: 1, title: "{{ size(inputs.l) }}", file: f }]',
      'expected text, but `size(inputs.l)` gives a number: write `{{ string(size(inputs.l)) }}`',
    ],
    [
      'name: s, agent: git, action: create_pr, labels: "{{ inputs.t }}"',
      'expected a list, but `inputs.t` gives text: write `{{ [inputs.t] }}`',
    ],
    [
      `name: s, agent: git, action: create_pr, draft: "{{ inputs.t + 'x' }}"`,
      "expected true or false, but `inputs.t + 'x'` gives text: write `{{ (inputs.t + 'x') == 'true' }}`",
    ],
    [
      'name: s, agent: git, action: create_pr, labels: [a, "{{ inputs.n }}"]',
      'expected text, but `inputs.n` gives a number: write `{{ string(inputs.n) }}`',
    ],
    [
      'name: s, agent: http, sources: [{ name: e, url: u, method: "{{ inputs.n }}" }]',
      'expected one of GET, POST, but `inputs.n` gives a number',
    ],
    [
      `name: s, agent: chat, notify: { on_fail: { message: "{{ inputs.l }}" } }`,
      'expected text, but `inputs.l` gives a list: write `{{ toJson(inputs.l) }}`',
    ],
    [
      `name: s, type: gate, commands: [{ name: c, run: 'true', env: { A: "{{ inputs.l }}" } }]`,
      'expected text or a number or true or false or nothing, but `inputs.l` gives a list: write `{{ toJson(inputs.l) }}`',
    ],
  ])('%s', async (phase, message) => {
    const [found, ...others] = await ofPhase(`{ ${phase} }`)
    expect(others).toEqual([])
    const at = `  - { ${phase}`.indexOf('{{') + 3
    expect(found).toBe(`11:${at + 1} ${message}`)
  })

  test('a number is a `ref`, any value is a body, and any value is a prompt', async () => {
    for (const phase of [
      'name: s, agent: issues, action: search, sources: [{ name: e, ref: "{{ inputs.n }}" }]',
      'name: s, agent: http, target_entries: [{ name: e, url: u, body: "{{ inputs.l }}" }]',
      'name: s, agent: http, sources: [{ name: e, url: u, expect_status: "{{ [200, 404] }}" }]',
      'name: s, agent: http, sources: [{ name: "e", url: "u{{ inputs.n }}{{ inputs.l }}" }]',
      'name: s, type: gate, review: { prompt: "{{ inputs.l }}" }',
      `name: s, type: gate, commands: [{ name: c, run: 'true', env: { A: "{{ inputs.n }}", B: "{{ inputs.yes }}" } }]`,
    ])
      expect(await ofPhase(`{ ${phase} }`)).toEqual([])
  })
})

test('an input of a sub-team gets what it is declared to be', async () => {
  const phase = (inputs: string) => `  - { name: b, type: team, team: ./sub, inputs: { ${inputs} } }\n`
  const of = (inputs: string) => problems(`${HEAD}${INPUTS}phases:\n${phase(inputs)}`, SUB)
  expect(await of('n: "{{ inputs.t }}", t: "{{ inputs.n }}"')).toEqual([
    '11:58 input `n` of @local/sub: expected a number, but `inputs.t` gives text: write `{{ double(inputs.t) }}`',
    '11:79 input `t` of @local/sub: expected text, but `inputs.n` gives a number: write `{{ string(inputs.n) }}`',
  ])
  expect(await of('n: "{{ inputs.n }}", t: "{{ inputs.t }} {{ inputs.n }}"')).toEqual([])
})

test.each([
  ['string', 'inputs.n', 7, '7'],
  ['string', 'inputs.l', [1], '[1]'],
  ['number', 'inputs.t', '7', 7],
  ['number', 'inputs.yes', true, 1],
  ['number', 'inputs.l', [1, 2], 2],
  ['boolean', 'inputs.t', 'true', true],
  ['boolean', 'inputs.n', 0, false],
  ['boolean', 'inputs.l', [1], true],
  ['list', 'inputs.t', 'a', ['a']],
  ['object', 'inputs.t', '{"a":1}', { a: 1 }],
] as const)('the form for a %s of %s gives one', async (type, expression, value, result) => {
  const [found] = await ofOutput(expression, type)
  const [, form] = /or write `(.*)`$/.exec(found!)!
  const name = expression.slice('inputs.'.length)
  const text = `${HEAD}${INPUTS}outputs: [{ name: x, type: ${type}, value: ${JSON.stringify(form)} }]\n${PHASES}`
  const { outputs } = await team(text, SUB)
  expect(outputs[0]!.value.evaluate(scope({ inputs: { [name]: value as never } }))).toEqual(result as never)
})
