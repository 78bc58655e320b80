// Files as people leave them: `fmt` keeps every value and every comment of them, and what it wrote it does not change again.

import { describe, expect, test } from 'bun:test'
import { parse } from 'yaml'
import { formatTeam } from '../../lib/team/compile/format-team.ts'
import { problemsOf } from '../../lib/team/model/problem.ts'
import { randomFrom, seedOf } from '../support/random.ts'
import { messyYaml } from './messy.ts'

const FILES = 400

const format = (text: string) => formatTeam('team.yml', new TextEncoder().encode(text)).after
/** Read by the library alone, with whole numbers as they are. */
const valuesOf = (text: string) => parse(text, { intAsBigInt: true, logLevel: 'silent' })
const commentsOf = (text: string) => [...text.matchAll(/#[ \t]*c\d+\b.*$/gm)].map(([comment]) => comment.trim())

test('values and comments stay, and a second time changes nothing', () => {
  const seed = seedOf('messy files')
  let read = 0
  for (let at = 0; at < FILES; at++) {
    const file = messyYaml(randomFrom(seed + at))
    try {
      const once = format(file.text)
      read++
      expect(valuesOf(once)).toEqual(valuesOf(file.text))
      expect(commentsOf(once)).toEqual(file.comments)
      expect(format(once)).toBe(once)
    } catch (error) {
      // An alias may stand inside of its own anchor.
      if (problemsOf(error).some(({ message }) => message.startsWith('there is no anchor'))) continue
      throw new Error(`the file of CADRE_TEST_SEED=${seed + at}:\n${file.text}`, { cause: error })
    }
  }
  expect(read).toBeGreaterThan(FILES / 2)
}, 60_000)

describe('stays as it is written', () => {
  test.each([
    ['a number, which a `ref` is taken from', 'ref: 00123\nb: 1e3\nc: +1\nd: .5\ne: 0o17\nf: 0xFf\n'],
    ['an escape', 'a: "\\u263a\\u200b\\x41"\n'],
    ['a byte order mark', '\ufeffa: 1\n'],
    ['a line end of Windows behind a comment', 'a: 1 # c\r\n\r\n# d\r\n\r\nb: |\r\n  x\r\n\r\n  y\r\n'],
    ['a comment below a value', 'a: x # 1\n# 2\nb:\n  # 3\n  - # 4\n    c: 1\n    # 5\n  # 6\n# 7\nd: 1\n'],
    ['the indentation of a text', 'a: |2-\n    x\n\n   y  \nb: >+\n  x\n\n    \n\nc: 1\n'],
    [
      'the order in a value',
      'phases:\n  - name: x\n    items: [{ b: 1, name: 2 }]\n    inputs: { of: [{ a: 1, name: x }] }\n',
    ],
    ['an explicit key', '? a\n: b\n? "c: d"\n:\n  - 1\n'],
    ['a tag and an anchor', 'a: &x\n  b: !!str 1\nc: *x\n'],
    ['a pair in a list', 'a: [b: c]\n'],
    ['no value', 'a:\nb: [c, { d, e: }]\n'],
    [
      'a ref that no number is exactly',
      'phases:\n  - { name: x, sources: [{ name: a, ref: 12345678901234567890 }] }\n',
    ],
  ])('%s', (_, text) => expect(format(text)).toBe(text))
})

test.each([
  ['a: [ # c\n 1, # d\n\n # e\n 2 ]\n', 'a:\n  [ # c\n    1, # d\n\n    # e\n    2\n  ]\n'],
  ['a:\n- {b: 1 # c\n  , name: [1,2,]}\n', 'a:\n  - {\n      b: 1, # c\n      name: [1, 2]\n    }\n'],
  ['a:\t1\t# c\n\n\n\nb:\n\n  - x', 'a: 1 # c\n\nb:\n\n  - x\n'],
  ['a: |  # c\n      x\n     \n      y\n\n\nb: "x\n\n    y"\n', 'a: | # c\n  x\n\n  y\n\nb: "x\n\n  y"\n'],
])('%j', (text, formatted) => expect(format(text)).toBe(formatted))

test('a file whose lines end in carriage returns alone is no YAML of one line', () => {
  try {
    format('a: 1\r# c\rb: 2\r')
    expect.unreachable()
  } catch (error) {
    expect(problemsOf(error)).toMatchObject([
      { line: 1, column: 5, message: expect.stringContaining('carriage return') },
    ])
  }
})
