import { describe, expect, test } from 'bun:test'
import type { Json } from '../../lib/json.ts'
import { Work } from '../../lib/schema/work-budget.ts'
import { Evaluation } from '../../lib/team/cel/evaluation.ts'
import { parseExpression } from '../../lib/team/cel/expression.ts'
import type { PhaseValue, Scope } from '../../lib/team/model/compiled-team.ts'
import { scope } from './load.ts'

const names = {
  phases: new Set(['fetch', 'my-phase']),
  inputs: new Set(['n', 's', 'list', 'o', 'my-input']),
  item: true,
}
const SYNTAX = 'https://github.com/google/re2/wiki/Syntax'
const NEWLINE =
  'a text in quotes cannot go over several lines. Between double quotes, YAML turns `\\n` into a new line before the expression is read: write `\\\\n` there, or put the whole value into single quotes or after `|`'
const done = (data: Json): PhaseValue => ({
  state: 'completed',
  reason: null,
  text: 'ok',
  data,
  files: [],
  error: null,
})

const given = (values: Partial<Scope>) => new Evaluation(scope(values))

function evaluate(text: string, inputs: Record<string, Json> = {}, data: Json = {}): Json {
  const parsed = parseExpression(text, names)
  expect(parsed.mistakes).toEqual([])
  return parsed.evaluate(given({ inputs, phase: () => done(data), item: { key: 'a' }, index: 3 }))
}

describe('values', () => {
  const cases: [text: string, inputs: Record<string, Json>, result: Json][] = [
    ['inputs.n + 1', { n: 2 }, 3],
    ['inputs.n + 1', { n: 2.5 }, 3.5],
    ['inputs.n * 1.5', { n: 2 }, 3],
    ['inputs.n / 2', { n: 7 }, 3],
    ['inputs.n == 3.0', { n: 3 }, true],
    ['inputs.n > 2.5', { n: 3 }, true],
    ['inputs.n', { n: 9007199254740991 }, 9007199254740991],
    ['inputs.n', { n: 1e300 }, 1e300],
    ['inputs.s + "!"', { s: 'a' }, 'a!'],
    ['inputs.list.map(x, x.id)', { list: [{ id: 1 }, { id: 2 }] }, [1, 2]],
    ['inputs.list.filter(inputs, inputs > 1)', { list: [1, 2] }, [2]],
    ['cel.bind(x, inputs.n + 1, [x, x])', { n: 1 }, [2, 2]],
    ['inputs.o', { o: { a: [null, true, { b: 1 }] } }, { a: [null, true, { b: 1 }] }],
    ["inputs.o['a b']", { o: { 'a b': 1 } }, 1],
    ['has(inputs.o.a) && !has(inputs.o.b)', { o: { a: 1 } }, true],
    ["inputs['my-input']", { 'my-input': 'x' }, 'x'],
    ['inputs.s == null', {}, true],
    ['size(inputs.list)', { list: [1, 2] }, 2],
    ["{'a': 1, 'b': [1, 'x']}", {}, { a: 1, b: [1, 'x'] }],
    ['item.key + string(index)', {}, 'a3'],
    ['run.id', {}, 'r1'],
    ['run.name == null', {}, true],
    ['"phases.my-phase"', {}, 'phases.my-phase'],
    ["'abc'.matches('b.')", {}, true],
    ["inputs.s.matches('^[a-z]{2,3}$')", { s: 'abcd' }, false],
    ["inputs.list.filter(x, x.matches('^a|z$'))", { list: ['ab', 'ba', 'xz'] }, ['ab', 'xz']],
    ["'ÄB'.matches(r'(?i)^ä\\pL$')", {}, true],
    ["timestamp('2024-01-01T00:00:00Z')", {}, '2024-01-01T00:00:00.000Z'],
    ["duration('90s')", {}, '90s'],
    ['7u', {}, 7],
    ["inputs.n > 1 ? 'a' : dyn(null)", { n: 1 }, null],
  ]
  test.each(cases)('%s', (text, inputs, result) => expect(evaluate(text, inputs)).toEqual(result))

  test('only what is named is loaded', () => {
    const asked: string[] = []
    const parsed = parseExpression("phases['my-phase'].data.total", names)
    const phase = (name: string): PhaseValue => {
      asked.push(name)
      const value = done({
        total: 4,
        get huge(): Json {
          throw new Error('must not be read')
        },
      })
      return {
        ...value,
        get text(): string {
          throw new Error('must not be read')
        },
      }
    }
    expect(parsed.evaluate(given({ phase }))).toBe(4)
    expect(asked).toEqual(['my-phase'])
    expect(parsed.uses).toEqual([{ kind: 'phase', name: 'my-phase', offset: 7 }])
  })
})

describe('mistakes', () => {
  const cases: [text: string, offset: number, message: string][] = [
    ['phases.my-phase.state', 0, "a name with a hyphen is written phases['my-phase']"],
    ['1 + inputs.my-input', 4, "a name with a hyphen is written inputs['my-input']"],
    ['phases.fecth.state', 7, 'there is no phase `fecth` (did you mean `fetch`?)'],
    [
      'phases.fetch.sate',
      13,
      'a phase has no `sate` (did you mean `state`?): it has state, reason, text, data, files, error',
    ],
    ['phases', 0, "name a phase by `phases.<name>` or `phases['<name>']`"],
    ['phases[inputs.s]', 0, "name a phase by `phases.<name>` or `phases['<name>']`"],
    ['inputs.nn', 7, 'no input `nn` (did you mean `n`?) is declared'],
    ['input.n', 0, 'unknown name `input` (did you mean `inputs`?): there are inputs, phases, item, index, run'],
    ['run.ID', 4, 'a run has no `ID` (did you mean `id`?): it has id, name, started_at, environment'],
    ['1 +', 3, 'the expression ends too early'],
    ['inputs.s.foo(', 13, 'the expression ends too early'],
    ['{[1]: 2}', 0, "a map's key must be a text, a whole number or a bool"],
    ['cel.bind(a, {1: 1}, cel.bind(b, {a: a}, b))', 0, "a map's key must be a text, a whole number or a bool"],
    ['"a" + 1', 0, 'no such overload: string + int: put the number into `string(…)`'],
    ['1 > "3"', 0, 'no such overload: int > string: put the text into `double(…)`'],
    ['null > 3', 0, 'no such overload: null > int: `or(a.b, 0)` gives a value instead'],
    ["or(size('a'), 2) + 'x'", 0, 'no such overload: int + string: put the number into `string(…)`'],
    ["or(null, 'a') + 1", 0, 'no such overload: string + int: put the number into `string(…)`'],
    ['or(inputs.o.a)', 0, "found no matching overload for 'or(dyn)': write `or(a.b, other)`"],
    ["inputs.o.a.or('-')", 14, "optional.or(optional) argument must be optional, got 'string': write `or(a.b, other)`"],
    ['inputs.o.a ?? 1', 11, '`a.b ?? c` is written `or(a.b, c)`'],
    ['[1] > 3', 0, 'no such overload: list<int> > int'],
    ["inputs.list.join('\n')", 18, NEWLINE],
    ['inputs.list.join("\n")', 18, NEWLINE],
    ['inputs.s.double()', 0, "found no matching overload for 'dyn.double()': write `double(x)`, not `x.double()`"],
    ['"a".string()', 0, "found no matching overload for 'string.string()': write `string(x)`, not `x.string()`"],
    ['inputs.o.toJson()', 0, "found no matching overload for 'dyn.toJson()': write `toJson(x)`, not `x.toJson()`"],
    ['inputs.n.round()', 0, "found no matching overload for 'dyn.round()': write `math.round(x)`, not `x.round()`"],
    ['round(1.5)', 0, "found no matching overload for 'round(double)': write `math.round(x)`, not `round(x)`"],
    [
      'lowerAscii("A")',
      0,
      "found no matching overload for 'lowerAscii(string)': write `x.lowerAscii()`, not `lowerAscii(x)`",
    ],
    [
      'join(["a"], ",")',
      0,
      "found no matching overload for 'join(list<string>, string)': write `x.join(…)`, not `join(x, …)`",
    ],
    // Both forms exist, so the form is not the mistake.
    ['double("a", 1)', 0, "found no matching overload for 'double(string, int)'"],
    ['math.round("a")', 0, "found no matching overload for 'mathNamespace.round(string)'"],
    ['(1).size()', 1, "found no matching overload for 'int.size()'"],
    ['inputs.o.?a.orValue(1, 2)', 0, "found no matching overload for 'optional.orValue(int, int)'"],
    [
      "inputs.n > 1 ? 'a' : null",
      0,
      "Ternary branches must have the same type, got 'string' and 'null': write `dyn(null)` for the null",
    ],
    [
      'inputs.n > 1 ? null : 2',
      0,
      "Ternary branches must have the same type, got 'null' and 'int': write `dyn(null)` for the null",
    ],
    [
      "inputs.n > 1 ? 1 : 'a'",
      0,
      "Ternary branches must have the same type, got 'int' and 'string': put one of them into `dyn(…)`",
    ],
    ['', 0, 'an expression is expected here'],
    ["inputs.s.matches('(')", 17, `this must be a regular expression of RE2 (${SYNTAX}): missing closing ): \`(\``],
    [
      "inputs.s.matches('(?=a)')",
      17,
      `this must be a regular expression of RE2 (${SYNTAX}): invalid or unsupported Perl syntax: \`(?=\``,
    ],
    [
      "inputs.s.matches(r'(a)\\1')",
      17,
      `this must be a regular expression of RE2 (${SYNTAX}): invalid escape sequence: \`\\1\``,
    ],
    ["inputs.s.matches('(a{1000}){1000}')", 17, 'this regular expression repeats too much: use smaller counts'],
    ["inputs.s.matches('a{900}b{900}c{900}')", 17, 'this regular expression repeats too much: use smaller counts'],
    ['process.env', 0, 'unknown name `process`: there are inputs, phases, item, index, run'],
  ]
  test.each(cases)('%s', (text, offset, message) => {
    expect(parseExpression(text, names).mistakes).toEqual([{ offset, message }])
  })

  const types = new Map(Object.entries({ n: 'number', s: 'string', list: 'list', o: 'object' } as const))
  const STATES = 'its states are pending, running, awaiting_input, completed, failed, skipped, cancelled'
  const known: [text: string, offset: number, message: string][] = [
    ["phases.fetch.state == 'success'", 22, `a phase is never \`success\` (did you mean \`completed\`?): ${STATES}`],
    ["'fail' != phases.fetch.state", 0, `a phase is never \`fail\` (did you mean \`failed\`?): ${STATES}`],
    [
      "phases.fetch.state in ['failed', 'canceled']",
      33,
      `a phase is never \`canceled\` (did you mean \`cancelled\`?): ${STATES}`,
    ],
    ["inputs.n == '3'", 12, 'input `n` is a number and is compared with text here'],
    ['3 == inputs.s', 0, 'input `s` is text and is compared with a number here'],
    ['inputs.s in [true]', 13, 'input `s` is text and is compared with true or false here'],
  ]
  test.each(known)('%s, which can never be', (text, offset, message) => {
    expect(parseExpression(text, { ...names, types }).mistakes).toEqual([{ offset, message }])
    expect(parseExpression(text, names).mistakes).toEqual([])
  })

  test('what may be is no mistake', () => {
    for (const text of [
      "phases.fetch.state == 'completed' || phases.fetch.state != inputs.s",
      "inputs.s == null || inputs.n > '2' || inputs.s.length == 3",
      "inputs.list.exists(inputs, inputs.n == 'x')",
      "phases.fetch.data.state == 'success'",
    ]) {
      expect(parseExpression(text, { ...names, types }).mistakes).toEqual([])
    }
  })

  test('item and index outside a map', () => {
    const { mistakes } = parseExpression('item.a + index', { ...names, item: false })
    expect(mistakes.map(({ offset }) => offset)).toEqual([0, 9])
    expect(mistakes[0]!.message).toBe('`item` exists only in the `key`, `inputs` and `phases` of a map')
  })

  test('a subtraction of known names stays one', () => {
    expect(evaluate('inputs.n-1', { n: 3 })).toBe(2)
    expect(parseExpression('inputs.n-inputs.s', names).mistakes).toEqual([])
  })
})

describe('or() gives another value', () => {
  const cases: [text: string, o: Json, result: Json][] = [
    ["or(inputs.o.a, '-')", {}, '-'],
    ["or(inputs.o.a, '-')", { a: null }, '-'],
    ["or(inputs.o.a.b.c, '-')", { a: null }, '-'],
    ["or(inputs.o.a.b.c, '-')", { a: 'text' }, '-'],
    ["or(inputs.o.a[2].b, '-')", { a: [] }, '-'],
    ["or(inputs.o.?a, '-')", {}, '-'],
    ["or(inputs.o.?a, '-')", { a: null }, '-'],
    ["or(inputs.o.?a, '-')", { a: 1 }, 1],
    ["or(inputs.o.a, '-')", { a: false }, false],
    ["or(inputs.o.a, '-')", { a: 0 }, 0],
    ["or(inputs.o.a, '-')", { a: '' }, ''],
    ["or(inputs.o.a, '-')", { a: [] }, []],
    ['or(or(inputs.o.a, inputs.o.b), 3)', { b: null }, 3],
    // What is not needed is not evaluated.
    ['or(inputs.o.a, 1 / 0)', { a: 2 }, 2],
    ["inputs.o.a.map(i, or(i.who.name, '-'))", { a: [{ who: null }, {}, { who: { name: 'Ada' } }] }, ['-', '-', 'Ada']],
    ['or(null, 2) + or(size(inputs.o), 1)', { a: 1 }, 3],
  ]
  test.each(cases)('%s of %j', (text, o, result) => expect(evaluate(text, { o })).toEqual(result))

  test('and other errors stay errors', () => {
    expect(() => evaluate('or(inputs.o.a + 1, 0)', { o: { a: null } })).toThrow('no such overload')
    expect(() => evaluate('or(int(inputs.o.a), 0)', { o: { a: 'x' } })).toThrow('int')
    expect(() => evaluate('or(1 / 0, 0)')).toThrow('division by zero')
    const list = Array.from({ length: 2_000 }, (_, at) => at)
    expect(() => evaluate('or(inputs.list.map(a, inputs.list.map(b, or(b.c, 1))), 0)', { list })).toThrow(
      'too many steps',
    )
  })
})

describe('an error about a null names the call of or() that gives a value', () => {
  const cases: [text: string, a: Json, form: string][] = [
    ['inputs.o.a.b.c', { b: null }, "or(inputs.o.a.b.c, '-')"],
    ['inputs.o.a.b.c', {}, "or(inputs.o.a.b.c, '-')"],
    ["inputs.o.a[0]['b'] + 'x'", [], "or(inputs.o.a[0]['b'], '-')"],
    ['inputs.o.a + 1', null, 'or(inputs.o.a, 0)'],
    ["'x' + inputs.o.a", null, "or(inputs.o.a, '-')"],
    ['inputs.o.a.trim()', null, "or(inputs.o.a, '-')"],
    ["inputs.o.a.join(', ')", null, 'or(inputs.o.a, [])'],
    ['inputs.o.a.map(x, x)', null, 'or(inputs.o.a, [])'],
    ['size(inputs.o.a)', null, 'or(inputs.o.a, [])'],
    ['int(inputs.o.a)', null, 'or(inputs.o.a, 0)'],
    ["'x' in inputs.o.a", null, 'or(inputs.o.a, [])'],
    ['inputs.o.a && true', null, 'or(inputs.o.a, false)'],
    ['inputs.o.a ? 1 : 2', null, 'or(inputs.o.a, false)'],
    // The form that does not take null.
    ['inputs.o.a.?b.orValue(1) + 1', { b: null }, 'or(inputs.o.a.b, 1)'],
  ]
  test.each(cases)('%s of %j', (text, a, form) => {
    expect(() => evaluate(text, { o: { a } })).toThrow(`: \`${form}\` gives a value instead`)
  })
})

describe('safety', () => {
  test.each(['constructor', '__proto__', 'toString', 'prototype', 'hasOwnProperty'])('%s is no field', name => {
    expect(() => evaluate(`inputs.o.${name}`, { o: {} })).toThrow(`No such key: ${name}`)
    expect(() => evaluate(`inputs.list.map(x, x.${name})`, { list: [{}] })).toThrow('No such key')
  })

  test('fields of those names in the data are data', () => {
    expect(evaluate('inputs.o.constructor', { o: { constructor: 'x' } })).toBe('x')
    expect(evaluate('inputs.o', { o: { constructor: 'x' } })).toEqual({ constructor: 'x' })
  })

  test('a function that is called as a method is named at run time, too', () => {
    expect(() => evaluate('inputs.s.string()', { s: 1 })).toThrow("'int.string()': write `string(x)`")
  })

  test('a value that JSON cannot express is an error', () => {
    expect(() => evaluate('9007199254740993')).toThrow('beyond 2^53')
    expect(() => evaluate('1.0 / 0.0')).toThrow('Infinity')
    expect(() => evaluate('bytes("a")')).toThrow('not a JSON value')
    expect(() => evaluate('type(1)')).toThrow('not a JSON value')
    expect(() => evaluate('{inputs.o: 1}', { o: [1] })).toThrow("a map's key must be a text")
    expect(() => evaluate('[inputs.o].map(x, {x: 1})', { o: { a: 1 } })).toThrow("a map's key must be a text")
    expect(evaluate('[1, 2u, true, "a"].map(x, {x: 1})')).toEqual([{ 1: 1 }, { 2: 1 }, { true: 1 }, { a: 1 }])
  })

  const list = Array.from({ length: 2_000 }, (_, at) => at)
  const costly: [string, Record<string, Json>][] = [
    ['inputs.list.map(a, inputs.list.map(b, inputs.list.map(c, c)))', { list }],
    ['inputs.list.all(a, inputs.list.all(b, inputs.list.all(c, c >= 0)))', { list }],
    [`[inputs.s]${'.map(x, x + x)'.repeat(45)}`, { s: 'x'.repeat(1_000) }],
    [`[inputs.list]${'.map(x, x + x)'.repeat(45)}`, { list }],
  ]
  test.each(costly)('%s ends by its cost', (text, inputs) => {
    expect(() => evaluate(text, inputs)).toThrow('too many steps')
  })

  test('the cost counts one evaluation, not all of them', () => {
    const parsed = parseExpression('inputs.list.map(a, a + 1)', names)
    for (let round = 0; round < 300; round++) parsed.evaluate(given({ inputs: { list } }))
  })

  const many = 'a'.repeat(50_000)
  // Each of them would keep a backtracking engine for longer than the sun shines.
  test.each(['(a+)+$', '^(a|a)*$', '(a|aa)+$', '(.*a){20}$', '^(([a-z])+.)+[A-Z]([a-z])+$'])(
    '%s takes no time',
    pattern => {
      const text = `${many}!`
      expect(evaluate(`inputs.s.matches('${pattern}')`, { s: text })).toBe(false)
      expect(evaluate('inputs.s.matches(inputs.o)', { s: text, o: pattern })).toBe(false)
    },
  )

  test('a text that is too long for a regular expression is refused, and so is a pattern that comes with the data', () => {
    const s = 'ab'.repeat(400_000)
    expect(evaluate("inputs.s.matches('^(a|b)*$')", { s })).toBe(true)
    expect(() => evaluate("inputs.s.matches('(a|b)*a(a|b){300}$')", { s })).toThrow('800000 characters are too many')
    expect(() => evaluate('inputs.s.matches(inputs.o)', { s, o: '[' })).toThrow('missing closing ]')
    expect(() => evaluate('inputs.s.matches(inputs.o)', { s, o: 'a'.repeat(1_001) })).toThrow('at most 1000 characters')
    expect(() => evaluate('inputs.n.matches("a")', { n: 1 })).toThrow('no matching overload')
    // A pattern is measured before it is compiled: this one would have a million instructions.
    expect(() => evaluate('inputs.s.matches(inputs.o)', { s, o: `(${'a'.repeat(900)}){1000}` })).toThrow(
      'repeats too much',
    )
    expect(() => evaluate('inputs.s.matches(inputs.o)', { s, o: 'a{1000}'.repeat(140) })).toThrow('repeats too much')
  })

  test('compiling patterns is work too, of an evaluation and of a file', () => {
    const patterns = list.map(at => `a{700}b{${at % 900}}c${at}`)
    expect(() => evaluate("inputs.list.exists(x, 'a'.matches(x))", { list: patterns })).toThrow('too many steps')
    const file = { ...names, patterns: new Work(50_000) }
    const parse = (at: number) => parseExpression(`inputs.s.matches('a{700}b${at}')`, file).mistakes
    expect(parse(0)).toEqual([])
    expect(list.slice(1, 100).flatMap(parse)).toContainEqual({
      offset: 17,
      message:
        'the regular expressions of this file are too large together: use smaller counts, or move some into sub-teams',
    })
  })

  test('deep and long expressions are refused, not run', () => {
    expect(parseExpression('('.repeat(5_000), names).mistakes).toHaveLength(1)
    expect(parseExpression(`${'!'.repeat(9_000)}true`, names).mistakes).toHaveLength(1)
    expect(parseExpression(`1${'+1'.repeat(3_000)}`, names).mistakes[0]!.message).toContain('maxAstNodes')
    expect(parseExpression(' '.repeat(20_000), names).mistakes).toHaveLength(1)
  })
})
