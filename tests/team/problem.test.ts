import { expect, test } from 'bun:test'
import {
  inOrder,
  type Problem,
  problemError,
  problemsOf,
  renderProblem,
  toDetail,
} from '../../lib/team/model/problem.ts'
import { createPaint } from '../../lib/text/printable.ts'

const problem = (more: Partial<Problem> = {}): Problem => ({
  file: 'team.yml',
  line: 2,
  column: 5,
  path: '/a',
  message: 'wrong',
  quote: 'abc def',
  ...more,
})

const drawn = (one: Problem) => renderProblem(one, createPaint({})).map(String)

test('a detail begins with the place', () => {
  expect(toDetail(problem())).toEqual({ path: '/a', message: 'team.yml:2:5: wrong' })
})

test('in file order, each once', () => {
  const [a, b, c] = [problem({ column: 9 }), problem({ line: 10, column: 1 }), problem({ column: 2 })]
  expect(inOrder([b, a, c, { ...a }])).toEqual([c, a, b])
})

test('an error carries its problems', () => {
  expect(problemsOf(problemError('team.yml', [problem()]))).toEqual([problem()])
  expect(problemError('team.yml', [problem()]).message).toBe('team.yml has 1 problem')
  expect(problemsOf(new Error('other'))).toEqual([])
})

test('a terminal gets the line and a caret', () => {
  expect(drawn(problem())).toEqual(['team.yml:2:5: wrong', '  2 | abc def', '          ^'])
  expect(renderProblem(problem(), createPaint({}, true)).at(-1)!.text).toContain('\u001b[31m^')
})

test('a long line is cut around the place', () => {
  const [, line, caret] = drawn(problem({ quote: `${'x'.repeat(500)}!`, column: 501 }))
  expect(line!.length).toBeLessThan(140)
  expect(line![caret!.indexOf('^')]).toBe('!')
})

test('nothing in the line steers the terminal', () => {
  expect(drawn(problem({ quote: 'a\u001b[31mb\u009b' })).join()).not.toMatch(/[\u001b\u009b]/)
})
