// `when` and `inputs` of a trigger: what they may name, what they give, and how a mistake is said.

import { expect, test } from 'bun:test'
import { CadreError } from '../../lib/error.ts'
import type { JsonObject } from '../../lib/json.ts'
import { occasionRule } from '../../lib/team/team.ts'

const HOOK = ['body', 'headers', 'query', 'delivery']
const SCHEDULE = ['slot', 'now']
const OPENED = {
  body: { action: 'opened', issue: { number: 7, labels: ['bug'] } },
  headers: { 'x-github-event': 'issues' },
  query: {},
  delivery: { id: 'd-1' },
}

function refused(work: () => unknown): CadreError {
  try {
    work()
  } catch (error) {
    if (error instanceof CadreError) return error
    throw error
  }
  throw new Error('it was not refused')
}

test('values of a delivery become inputs and keep their types', () => {
  const { admits, inputsOf, constants } = occasionRule(
    {
      when: "headers['x-github-event'] == 'issues' && body.action == 'opened'",
      inputs: {
        issue: '{{ body.issue.number }}',
        text: 'issue {{ body.issue.number }}',
        labels: '{{ body.issue.labels }}',
        kind: 'bug',
      },
    },
    HOOK,
  )
  expect(admits(OPENED)).toBe(true)
  expect(admits({ ...OPENED, body: { action: 'closed' } })).toBe(false)
  expect(inputsOf(OPENED)).toEqual({ issue: 7, text: 'issue 7', labels: ['bug'], kind: 'bug' })
  expect(constants).toEqual({ kind: 'bug' })
})

test('an absent header or parameter is null, so that `when` is false and no error', () => {
  const { admits } = occasionRule({ when: "headers['x-github-event'] == 'issues' || query.kind == 'a'" }, HOOK)
  expect(admits({ ...OPENED, headers: {} })).toBe(false)
})

test('`or` gives another value for what a delivery lacks', () => {
  const rule = { when: 'or(body.issue.draft, true)', inputs: { who: "{{ or(body.issue.assignee.name, '-') }}" } }
  const { admits, inputsOf } = occasionRule(rule, HOOK)
  expect(admits(OPENED)).toBe(true)
  expect(inputsOf({ ...OPENED, body: { issue: { assignee: null } } })).toEqual({ who: '-' })
})

test('the text of a value is never read as a template again', () => {
  const { inputsOf } = occasionRule({ inputs: { text: '{{ body.title }}' } }, HOOK)
  expect(inputsOf({ ...OPENED, body: { title: '{{ headers }}' } })).toEqual({ text: '{{ headers }}' })
})

test('without `when` every occasion is admitted', () => {
  expect(occasionRule({}, SCHEDULE).admits({ slot: '2026-11-23T05:00Z', now: '' })).toBe(true)
})

const MISTAKES: [given: { when?: string; inputs?: JsonObject }, path: string, message: RegExp][] = [
  [{ when: 'phases.x.state' }, '/when', /unknown name `phases`: there are slot, now/],
  [{ when: 'body.action == "x"' }, '/when', /unknown name `body`/],
  [{ when: 'slot +' }, '/when', /ends too early/],
  [{ when: '"yes"' }, '/when', /must give a bool, but this gives string/],
  [{ inputs: { day: '{{ slto }}' } }, '/inputs/day', /did you mean `slot`/],
  [{ inputs: { day: { of: ['{{ secrets.key }}'] } } }, '/inputs/day/of/0', /unknown name `secrets`/],
  [{ inputs: { day: '{{ slot' } }, '/inputs/day', /is not closed/],
]

test.each(MISTAKES)('%j is refused', (given, path, message) => {
  const error = refused(() => occasionRule(given, SCHEDULE))
  expect(error.code).toBe('invalid_request')
  expect(error.details?.map(detail => detail.path)).toEqual([path])
  expect(error.details?.[0]?.message).toMatch(message)
})

test('every mistake is named at once', () => {
  const error = refused(() => occasionRule({ when: 'x', inputs: { a: '{{ y }}', b: '{{ z }}' } }, SCHEDULE))
  expect(error.details?.map(({ path }) => path)).toEqual(['/when', '/inputs/a', '/inputs/b'])
})

test('a value that is not there is a mistake of the occasion, with its name', () => {
  const { inputsOf } = occasionRule({ inputs: { issue: '{{ body.issue.number }}' } }, HOOK)
  const error = refused(() => inputsOf({ ...OPENED, body: {} }))
  expect([error.code, error.message]).toEqual(['invalid_request', expect.stringMatching(/issue/)])
})

test('the work of an expression is bounded', () => {
  const { admits } = occasionRule({ when: 'body.all(a, body.all(b, body.all(c, a + b + c >= 0)))' }, HOOK)
  expect(refused(() => admits({ ...OPENED, body: Array.from({ length: 2_000 }, (_, n) => n) })).code).toBe(
    'invalid_request',
  )
})
