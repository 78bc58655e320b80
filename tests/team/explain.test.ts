import { expect, test } from 'bun:test'
import type { TSchema } from 'typebox'
import { parse, stringify } from 'yaml'
import { teamSchemaOf } from '../../lib/team/compile/json-schema.ts'
import { checkValue } from '../../lib/team/compile/value-check.ts'
import { explainField } from '../../lib/team/editor/explain.ts'
import { readYaml, Source } from '../../lib/team/yaml/yaml.ts'
import { lookup } from './agents.ts'

const explain = (path: string) => explainField(lookup, path)

test('a field with its meaning, values, default and example', () => {
  expect(explain('phases.on_failure')).toEqual([
    {
      of: [],
      description:
        'What a failure does: end the run (fail, the default), nothing (continue), or ask a person (escalate).',
      value: 'one of fail, continue, escalate',
      required: false,
      default: 'fail',
      example: 'phases:\n  - name: step\n    on_failure: continue\n',
      fields: [],
    },
  ])
})

test('a mapping names its fields', () => {
  const [retry] = explain('phases.retry')
  expect(retry!.fields.map(({ name, value }) => [name, value])).toEqual([
    ['attempts', 'a whole number from 1 to 100'],
    ['backoff', 'a duration such as 90s, 5m or 2h'],
  ])
  expect(parse(retry!.example!)).toEqual({ phases: [{ name: 'step', retry: { attempts: 3, backoff: '10s' } }] })
})

test('a field that differs by phase says in which it has which form', () => {
  const forms = explain('phases.commands').map(({ of, fields }) => [of, fields.map(({ name }) => name)])
  expect(forms).toEqual([
    [['type: gate'], ['name', 'run', 'env', 'timeout', 'effect']],
    [['agent: exec'], ['name', 'run', 'env', 'effect']],
  ])
  expect(explain('phases[0].sources.limit').map(({ of }) => of)).toEqual([['agent: issues, action: search']])
  expect(explain('phases.key').map(({ of }) => of)).toEqual([['type: map']])
  expect(explain('phases.inputs').map(({ of }) => of)).toEqual([['type: team'], ['type: map']])
})

test.each([
  ['phases.retyr', '`phases` has no field `retyr` (did you mean `retry`?)'],
  ['steps', 'team.yml has no field `steps` (did you mean `phases`?)'],
  ['retry', 'team.yml has no field `retry`: there is `phases.retry`'],
  ['phases.retry.jitter', '`phases.retry` has no field `jitter`: there is `triggers.schedule.jitter`'],
  ['phases.when.x', '`phases.when` has no field `x`: it has no fields'],
])('%s: an unknown field', (path, message) => expect(() => explain(path)).toThrow(message))

test('every example and default is a value of its field', () => {
  let checked = 0
  const walk = (schema: unknown, path: string): void => {
    if (typeof schema !== 'object' || schema === null) return
    const { default: standard, examples = [] } = schema as { default?: unknown; examples?: unknown[] }
    for (const value of [standard, ...(Array.isArray(examples) ? examples : [])]) {
      if (value === undefined || typeof standard === 'object' || 'allOf' in schema) continue
      const source = new Source('x', stringify(value))
      expect([path, checkValue(readYaml(source)!, schema as TSchema, true)]).toEqual([path, []])
      checked++
    }
    for (const [key, below] of Object.entries(schema)) walk(below, `${path}/${key}`)
  }
  walk(teamSchemaOf(lookup), '')
  expect(checked).toBeGreaterThan(30)
})
