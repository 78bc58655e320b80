import { expect, test } from 'bun:test'
import {
  inOrder,
  type Problem,
  problemError,
  problemsOf,
  renderProblem,
  toDetail,
} from '../../lib/team/model/problem.ts'

const problem = (more: Partial<Problem> = {}): Problem => ({
  file: 'team.yml',
  line: 2,
  column: 5,
  path: '/a',
  message: 'wrong',
  quote: 'abc def',
  ...more,
})

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
  expect(renderProblem(problem(), false)).toBe('team.yml:2:5: wrong\n  2 | abc def\n          ^')
  expect(renderProblem(problem(), true)).toContain('\u001b[31m^')
})

test('a long line is cut around the place', () => {
  const [, line, caret] = renderProblem(problem({ quote: `${'x'.repeat(500)}!`, column: 501 }), false).split('\n')
  expect(line!.length).toBeLessThan(140)
  expect(line![caret!.indexOf('^')]).toBe('!')
})

test('nothing in the line steers the terminal', () => {
  expect(renderProblem(problem({ quote: 'a\u001b[31mb\u009b' }), false)).not.toMatch(/[\u001b\u009b]/)
})
