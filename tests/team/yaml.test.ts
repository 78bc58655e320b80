import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Glob } from 'bun'
import fc from 'fast-check'
import { loadBundle } from '../../lib/team/compile/bundle.ts'
import { problemsOf } from '../../lib/team/model/problem.ts'
import { lookup } from './agents.ts'
import { LARGE } from './large.ts'
import { HEAD, problems } from './load.ts'

describe('refused, with a position', () => {
  const cases: [title: string, text: string, problem: string][] = [
    ['duplicate key', 'name: a\nname: b', '2:1 `name` is given twice: remove one'],
    ['__proto__', 'a: 1\n"__proto__": { x: 1 }', '2:1 `__proto__` cannot be the name of a field'],
    ['merge key', 'a: &a { x: 1 }\nb: { <<: *a }', '2:6 merge keys are not supported: write the fields out'],
    ['tag', 'a: !!js/function x', '1:18 tags are not supported: a value that begins with ! must be in quotes'],
    ['infinity', 'a: 1e999', '1:4 JSON has no number 1e999: write it in quotes'],
    ['not a number', 'a: .nan', '1:4 JSON has no number .nan: write it in quotes'],
    ['inexact', 'a: 12345678901234567890', '1:4 12345678901234567890 is not exact as a number: write it in quotes'],
    ['documents', 'a: 1\n---\nb: 2', '2:1 a second document begins here: a team.yml must be one document'],
    [
      'unknown alias',
      'a: *b',
      '1:4 there is no anchor &b before this alias: a text that begins with * must be in quotes',
    ],
    [
      'circular alias',
      'a: &a [*a]',
      '1:8 there is no anchor &a before this alias: a text that begins with * must be in quotes',
    ],
    ['yaml 1.1', '%YAML 1.1\n---\na: yes', '1:1 %YAML 1.1: a team.yml must be YAML 1.2'],
    ['control character', 'a: 1\nb: \u0007', '2:4 YAML does not allow this control character: remove it'],
    ['empty', '', '1:1 the file is empty'],
    ['only a comment', '# x\n', '1:1 the file is empty'],
    ['too large', `a: ${'x'.repeat(1_048_576)}`, '1:1 the file is larger than 1 MiB: move parts of it into sub-teams'],
    ['too long', '\n'.repeat(50_000), '1:1 the file has more than 50000 lines: move parts of it into sub-teams'],
    ['too deep', `a: ${'['.repeat(200)}`, '1:131 the file must not be nested deeper than 64 levels'],
    [
      'too deep, with fewer signs',
      `a: ${'{ a: '.repeat(65)}${'}'.repeat(65)}`,
      '1:1 this YAML cannot be read: it is nested deeper than 64 levels',
    ],
    ['a list', '- a', '1:1 expected a mapping, not a list'],
    ['a block without lines', `${HEAD}phases:\n  - { name: a }\n  - when: |`, '5:12 an expression is expected here'],
  ]
  test.each(cases)('%s', async (_, text, problem) => expect(await problems(text)).toContain(problem))

  test('an alias bomb', async () => {
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
    for (let at = 1; at < 12; at++)
      lines.push(
        `a${at}: &a${at} [${Array(10)
          .fill(`*a${at - 1}`)
          .join(', ')}]`,
      )
    const found = await problems(lines.join('\n'))
    expect(found[0]).toContain('its aliases expand to more than 100000 values')
  })
})

test('aliases are values', async () => {
  const text = `${HEAD}phases:
  - { name: a, agent: exec, env: &env { A: b }, commands: [{ name: c, run: x }] }
  - { name: b, agent: exec, env: *env, commands: [{ name: c, run: x }] }`
  expect(await problems(text)).toEqual([])
})

test('windows line ends and a byte order mark do no harm', async () => {
  const text = `\ufeff${HEAD}phases:\n  - { name: a, agent: exec, commands: [{ name: c, run: x }], x: 1 }\n`.replaceAll(
    '\n',
    '\r\n',
  )
  expect(await problems(text)).toEqual([
    '4:62 unknown field `x`: there are name, type, depends_on, when, always, on_failure, retry, repeat, limit, timeout, agent, action, commands and env',
  ])
})

/** Most that a person is told of one file. */
const MOST_PROBLEMS = 200

/** Loads what may be anything. Only a CadreError with problems may come out, and not more than somebody can read. */
async function survive(bytes: Uint8Array): Promise<void> {
  try {
    await loadBundle(new Map([['team.yml', bytes]]), { agents: lookup })
  } catch (error) {
    const found = problemsOf(error)
    if (found.length === 0) throw error
    expect(found.length).toBeLessThanOrEqual(MOST_PROBLEMS)
    for (const { line, column } of found) {
      expect(line).toBeGreaterThan(0)
      expect(column).toBeGreaterThan(0)
    }
  }
}

// How long it takes is bench/yaml.ts's to say; what takes no end here ends by the time-out.
describe('fuzz', () => {
  const corpus = [...new Glob('*').scanSync(join(import.meta.dir, 'corpus'))].sort()

  test('the corpus is there', () => expect(corpus.length).toBeGreaterThan(8))

  test.each(corpus)('%s', async name => survive(await Bun.file(join(import.meta.dir, 'corpus', name)).bytes()))

  test.each(LARGE)('%s', (_, text) => survive(new TextEncoder().encode(text)))

  test('random bytes and random changes of a good file', async () => {
    const good = new TextEncoder().encode(`${HEAD}inputs: [{ name: x, type: list }]
phases:
  - name: a
    agent: issues
    action: search
    sources: [{ name: e.json, ref: "p = {{ inputs.x[0] }}", limit: 5 }]
  - { name: b, type: map, depends_on: [a], items: "{{ inputs.x }}", team: ".", inputs: { x: "{{ item }}" } }
  - { name: c, agent: chat, notify: { on_fail: { message: "{{ phases.a.text }}" } } }
`)
    const change = fc.record({ at: fc.nat(good.length), drop: fc.nat(12), put: fc.uint8Array({ maxLength: 6 }) })
    const odd = fc.stringMatching(/^[-{}[\]:,&*!|>'"%@` #?a\n]{0,60}$/)
    await fc.assert(fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), survive), { numRuns: 200 })
    await fc.assert(
      fc.asyncProperty(odd, text => survive(new TextEncoder().encode(text))),
      { numRuns: 400 },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), async changes => {
        const bytes = [...good]
        for (const { at, drop, put } of changes) bytes.splice(at, drop, ...put)
        await survive(Uint8Array.from(bytes))
      }),
      { numRuns: 400 },
    )
  })
})
