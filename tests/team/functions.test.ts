import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Json } from '../../lib/json.ts'
import { FUNCTION_NAMES } from '../../lib/team/cel/calls.ts'
import { Evaluation } from '../../lib/team/cel/evaluation.ts'
import { cel, parseExpression } from '../../lib/team/cel/expression.ts'
import { HEAD, problems, scope } from './load.ts'

const guide = await Bun.file(join(import.meta.dir, '../../docs/write-a-team.md')).text()
const table = guide.slice(guide.indexOf('\n## All functions'))
const rows = [...table.matchAll(/^\| `(.+?)` +\| .+ \| `(.+)` +\|$/gm)].map(([, call, example]) => ({
  name: call!.replace(/\(.*$/, '').split('.').at(-1)!,
  example: example!.replaceAll('\\|', '|'),
}))

const phases = [...guide.matchAll(/^```yaml\n(- name: [\s\S]+?)^```/gm)].map(([, text]) => text!)

const names = { phases: new Set<string>(), inputs: new Set(['v']), item: false, files: new Set<string>() }

function evaluate(text: string, v: Json = null): Json {
  const parsed = parseExpression(text, names)
  expect(parsed.mistakes).toEqual([])
  return parsed.evaluate(new Evaluation(scope({ inputs: { v }, file: path => `/state/${path}` })))
}

describe('docs/write-a-team.md', () => {
  test('lists every function, and no other', () => {
    expect(rows.map(row => row.name).sort()).toEqual([...FUNCTION_NAMES].sort())
  })

  test('every function is one of the environment', () => {
    const registered = new Set(
      cel()
        .getDefinitions()
        .functions.map(each => each.name),
    )
    expect(FUNCTION_NAMES.filter(name => !registered.has(name))).toEqual([])
  })

  test.each(rows)('$name: $example', ({ example }) => expect(evaluate(example)).toBe(true))
})

test.each(phases)('a phase of the guide is valid: %s', async phase => {
  const before = ['report', 'fetch'].map(name => `- { name: ${name}, agent: exec, commands: [{ name: c, run: x }] }\n`)
  expect(phases.length).toBeGreaterThan(0)
  expect(await problems(`${HEAD}phases:\n${before.join('')}${phase}`)).toEqual([])
})

describe('of values whose type is known at run time only', () => {
  const cases: [text: string, v: Json, result: Json][] = [
    ['inputs.v.reverse()', 'añb', 'bña'],
    ['inputs.v.reverse()', [1, 'a'], ['a', 1]],
    ['inputs.v.sort()', [2.5, 1, 2], [1, 2, 2.5]],
    ['inputs.v.sort()', ['b', 'a'], ['a', 'b']],
    [
      'inputs.v.sortBy(x, x.name).map(x, x.id)',
      [
        { name: 'b', id: 1 },
        { name: 'a', id: 2 },
      ],
      [2, 1],
    ],
    ['inputs.v.distinct()', [1, 1.5, 1, { a: 1 }, { a: 1 }, null, null], [1, 1.5, { a: 1 }, null]],
    ['inputs.v.flatten()', [[1], [[2]], 3], [1, [2], 3]],
    ['inputs.v.flatten(5)', [[1], [[2]], 3], [1, 2, 3]],
    ['inputs.v.first()', [7], 7],
    ['inputs.v.first()', [], null],
    ['math.round(inputs.v)', 2.5, 3],
    ['math.round(inputs.v)', 3, 3],
    ['inputs.v.map(x, math.sign(x))', [-2, 0, 3, -1.5], [-1, 0, 1, -1]],
    ['math.greatest(inputs.v)', [1, 2.5], 2.5],
    ['sum(inputs.v)', [], 0],
    ['sum(inputs.v)', [1, 2.5], 3.5],
    [
      'sum(inputs.v.map(point, point[1]))',
      [
        [1000, 2],
        [2000, 3],
      ],
      5,
    ],
    ["inputs.v.replace('$', '$&')", 'a$', 'a$&'],
    ["inputs.v.replace('a', 'b', 2)", 'aaa', 'bba'],
    ["inputs.v.replace('', '-')", 'ab', '-a-b-'],
    ["inputs.v.replace('', '-', 2)", 'ab', '-a-b'],
    ["inputs.v.format([1, 'a', [1, null]])", '%d %s %s %%', '1 a [1,null] %'],
    ["inputs.v.format([255, 255, 1.5, 'hi'])", '%x %X %e %x', 'ff FF 1.500000e+0 6869'],
    ['fromJson(inputs.v)', '{"a":[1,1.5,"x"]}', { a: [1, 1.5, 'x'] }],
    ['fromJson(toJson(inputs.v)) == inputs.v', { a: [1, { b: null }] }, true],
    ['inputs.v.?a.optMap(x, x + 1)', { a: 1 }, 2],
    ['inputs.v.?b.optMap(x, x + 1)', { a: 1 }, null],
    ["inputs.v[?'a'].orValue(0)", { a: 1 }, 1],
    ['[1, 2] == inputs.v', [1, 2], true],
    ["{'a': [1.0]} == inputs.v", { a: [1] }, true],
    ['{"a": 1} in inputs.v', [{ a: 1 }], true],
    ['[inputs.v] in [[1]]', 1, true],
    ['inputs.v == 1u', 1, true],
  ]
  test.each(cases)('%s of %j', (text, v, result) => expect(evaluate(text, v)).toEqual(result))
})

describe('refused', () => {
  const cases: [text: string, v: Json, message: string][] = [
    ['inputs.v.format([1])', 'x', 'format: 1 values are given and 0 are used'],
    ['inputs.v.format([])', '%s', 'format: there is no value for `%s`'],
    ['inputs.v.format([1])', '%y', 'format: `%` must be followed by one of s d f e b o x X %'],
    ['inputs.v.sort()', [1, 'a'], 'the values to sort must be of one kind: numbers, texts, bools or times'],
    ['inputs.v.slice(1, 5)', [1], 'slice(1, 5): the list has 1 items'],
    ['math.greatest(inputs.v)', [], 'math.greatest: the list is empty'],
    ['sum(inputs.v)', [1, 'a'], 'sum takes numbers'],
    ['math.greatest(inputs.v, "a")', 1, 'math.greatest takes numbers'],
    ['fromJson(inputs.v)', '{', 'fromJson: the text is not JSON'],
    ['inputs.v.optMap(x, x)', 1, 'this function must be called on an optional value, such as `a.?b`'],
    ['math.bitShiftLeft(1, inputs.v)', -1, 'a shift must not be negative'],
  ]
  test.each(cases)('%s of %j', (text, v, message) => expect(() => evaluate(text, v)).toThrow(message))
})

describe('an unknown function is answered with the nearest', () => {
  const cases: [text: string, offset: number, message: string][] = [
    [
      'inputs.v.splitt(",")',
      9,
      'there is no function `splitt` (did you mean `split`?): docs/write-a-team.md lists all functions',
    ],
    [
      'sizes(inputs.v)',
      0,
      'there is no function `sizes` (did you mean `size`?): docs/write-a-team.md lists all functions',
    ],
    ['len(inputs.v)', 0, 'there is no function `len` (did you mean `size`?): docs/write-a-team.md lists all functions'],
    [
      'inputs.v.toLowerCase()',
      9,
      'there is no function `toLowerCase` (did you mean `lowerAscii`?): docs/write-a-team.md lists all functions',
    ],
    [
      'math.max(1, 2)',
      5,
      'there is no function `max` (did you mean `math.greatest`?): docs/write-a-team.md lists all functions',
    ],
    ['bytes(inputs.v).hex()', 16, 'there is no function `hex`: docs/write-a-team.md lists all functions'],
  ]
  test.each(cases)('%s', (text, offset, message) => {
    expect(parseExpression(text, names).mistakes).toEqual([{ offset, message }])
  })
})

test('file() is allowed only in some places', () => {
  const { files: _, ...elsewhere } = names
  expect(parseExpression("file('a')", elsewhere).mistakes).toEqual([
    { offset: 0, message: '`file()` can be called only in `env`, where a command needs the absolute path' },
  ])
})
