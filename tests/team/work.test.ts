// No expression holds its process for long, whatever it says and whatever the data: it is refused before the work is done.
// What is asserted is the refusal. Without one each of these takes seconds to years.

import { describe, expect, test } from 'bun:test'
import { CadreError } from '../../lib/error.ts'
import type { Json, JsonObject } from '../../lib/json.ts'
import { HEAD, scope, team } from './load.ts'

const NAMES = ['s', 't', 'list', 'texts', 'o', 'many', 'deep']
const EXEC = 'agent: exec, commands: [{ name: c, run: x }]'

const s = 'x'.repeat(630_000)
const list = Array.from({ length: 100_000 }, (_, at) => at)
const inputs: JsonObject = {
  s,
  t: `${'x'.repeat(315_000)}y`,
  list,
  texts: list.map(at => `text ${at}`),
  o: Object.fromEntries(list.map(at => [`k${at}`, at])),
  many: list.slice(0, 2_000),
}

async function evaluate(expression: string, more: JsonObject = {}): Promise<Json> {
  const declared = NAMES.map(name => `{ name: ${name}, type: ${name === 'o' ? 'object' : 'string'} }`).join(', ')
  const value = JSON.stringify(expression.includes('{{') ? expression : `{{ ${expression} }}`)
  const compiled = await team(
    `${HEAD}inputs: [${declared}]\nphases: [{ name: p, ${EXEC} }]\noutputs: [{ name: o, value: ${value} }]\n`,
  )
  return compiled.outputs[0]!.value.evaluate(scope({ inputs: { ...inputs, ...more } }))
}

/** Binds `<name>1` to four, and each one to four of the one before: 4 to the power of `depth` items in `depth` lists. */
const nested = (name: string, depth: number, inner: string) =>
  Array.from({ length: depth }, (_, at) => {
    const one = at === 0 ? '[1]' : `${name}${at}`
    return `cel.bind(${name}${at + 1}, [${one}, ${one}, ${one}, ${one}], `
  }).join('') +
  inner +
  ')'.repeat(depth)

describe('refused', () => {
  const cases: string[] = [
    // A text in a text
    'inputs.s.contains(inputs.t)',
    'inputs.s.indexOf(inputs.t)',
    'inputs.s.indexOf(inputs.t, 5)',
    'inputs.s.lastIndexOf(inputs.t)',
    'inputs.s.split(inputs.t)',
    'inputs.s.replace(inputs.t, "")',
    'inputs.s.replace("x", inputs.s)',
    'inputs.s.replace("", inputs.s)',
    'inputs.s.split("").map(c, c)',
    'inputs.texts.join(inputs.s)',
    'duration(inputs.s.substring(0, 20000).replace("x", "1s"))',
    // One pass over a text, many times
    'inputs.many.map(a, size(inputs.s))',
    'inputs.many.map(a, inputs.s.size())',
    'inputs.many.map(a, bytes(inputs.s).size())',
    'inputs.many.map(a, string(bytes(inputs.s)))',
    'inputs.many.map(a, bytes(inputs.s) == bytes(inputs.s))',
    'inputs.many.map(a, inputs.s + string(a))',
    'inputs.many.map(a, inputs.s == inputs.s.substring(1) + string(a))',
    'inputs.many.map(a, inputs.s < inputs.t)',
    'inputs.many.map(a, inputs.s.upperAscii())',
    'inputs.many.map(a, inputs.s.trim())',
    'inputs.many.map(a, inputs.s.reverse())',
    'inputs.many.map(a, inputs.s.startsWith(inputs.t))',
    'inputs.many.map(a, strings.quote(inputs.s))',
    'inputs.many.map(a, inputs.s.format([]))',
    'inputs.many.map(a, inputs.s.contains("y"))',
    'inputs.many.map(a, {inputs.s + string(a): 1})',
    'inputs.many.map(a, inputs.many.map(b, inputs.s.substring(b)))',
    '[inputs.s].map(x, x + x)'.replace('.map(x, x + x)', '.map(x, x + x)'.repeat(45)),
    // Lists and objects
    'inputs.many.all(a, inputs.list == inputs.list.map(x, x))',
    'inputs.many.all(a, !([inputs.list] != [inputs.list.map(x, x)]))',
    "inputs.many.all(a, {'a': inputs.list} == {'a': inputs.list.map(x, x)})",
    'inputs.list.all(a, !(-1 in inputs.list))',
    "inputs.many.exists(a, 'no' in inputs.texts)",
    'inputs.texts.filter(a, a in inputs.texts)',
    'inputs.many.all(a, inputs.many in inputs.many.map(b, inputs.many + [b]))',
    'inputs.many.map(a, inputs.o.exists(k, true))',
    'inputs.many.map(a, inputs.list.map(b, b))',
    'inputs.many.exists(a, inputs.list.exists(b, b < 0))',
    'inputs.many.map(a, inputs.list + inputs.list)',
    'inputs.many.map(a, inputs.list.slice(0, 100000))',
    'inputs.many.map(a, inputs.list.reverse())',
    'inputs.many.map(a, inputs.list.sort())',
    'inputs.many.map(a, inputs.list.flatten())',
    'inputs.many.map(a, math.greatest(inputs.list))',
    'inputs.list.map(a, [a]).distinct()',
    'inputs.list.sortBy(x, inputs.list.map(y, y).size())',
    'lists.range(1000000000)',
    'lists.range(1000).map(a, lists.range(1000))',
    '[inputs.list].map(x, x + x)'.replace('.map(x, x + x)', '.map(x, x + x)'.repeat(45)),
    // What shares its parts is as large as it reads
    nested('a', 12, 'a12'),
    nested('a', 12, nested('b', 12, 'a12 == b12')),
    nested('a', 12, 'toJson(a12)'),
    'inputs.many.map(a, inputs.s)',
    'inputs.list.map(a, inputs.list)',
    'inputs.many.map(a, toJson(inputs.o))',
    'inputs.many.map(a, fromJson(toJson(inputs.list)))',
    // Errors that are passed over
    'inputs.list.exists(x, x.gone)',
    'inputs.list.all(x, inputs.list.all(y, y.gone || false))',
    'inputs.list.exists(x, inputs.s.contains(inputs.t) || x < 0)',
    // Dates
    "inputs.many.map(a, timestamp(a).getHours('Europe/Berlin'))",
    // Many in one text
    Array.from({ length: 30 }, () => '{{ inputs.list.map(x, x + 1) }}').join(' '),
  ]
  test.each(cases)('%s', async expression => {
    const refusal = await evaluate(expression).catch(error => error)
    expect(refusal).toBeInstanceOf(CadreError)
    expect(refusal.code).toBe('invalid_request')
    expect(refusal.message).toMatch(/^team\.yml:5:\d+: this takes too many steps: let it work on less data in `/)
  })

  test('a value that is nested too deep is named', async () => {
    let deep: Json = 1
    for (let at = 0; at < 5_000; at++) deep = [deep]
    await expect(evaluate('inputs.deep', { deep })).rejects.toThrow('a value is nested deeper than 500 levels')
    let most: Json = 1
    for (let at = 0; at < 501; at++) most = { a: most }
    expect(await evaluate('inputs.deep', { deep: most })).toEqual(most)
    await expect(evaluate("{'a': inputs.deep}", { deep: most })).rejects.toThrow('nested deeper than 500 levels')
  })
})

describe('not refused', () => {
  const cases: [expression: string, result: Json][] = [
    ['size(inputs.s)', 630_000],
    ['inputs.s.contains("y")', false],
    [`inputs.s.indexOf('${'y'.repeat(500)}')`, -1],
    ['inputs.s + "y" == inputs.s + "z"', false],
    ['inputs.list == inputs.list.map(x, x)', true],
    ['inputs.list.filter(x, x % 2 == 0).size()', 50_000],
    ['-1 in inputs.list || "no" in inputs.texts', false],
    ['inputs.list.sort()[99999]', 99_999],
    ['inputs.texts.filter(x, x.endsWith("77")).size()', 1_000],
    ['inputs.o.k7 + size(toJson(inputs.o)) > 0', true],
  ]
  test.each(cases)('%s', async (expression, result) => {
    expect(await evaluate(expression)).toEqual(result)
  })
})
