import { beforeAll, expect, test } from 'bun:test'
import type { TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { parse } from 'yaml'
import { discover } from '../../lib/agent/catalogue.ts'
import { teamJsonSchema } from '../../lib/team/compile/json-schema.ts'
import { folder } from '../support/folder.ts'
import { undescribed } from '../support/undescribed.ts'
import { lookup } from './agents.ts'
import { HEAD } from './load.ts'

let schema: Validator

beforeAll(() => {
  schema = Compile(teamJsonSchema(lookup) as TSchema)
})

const passes = (...phases: string[]) =>
  schema.Check(parse(`${HEAD}phases:\n${phases.map(each => `  - { ${each} }\n`).join('')}`))

test.each([
  "name: a, agent: exec, commands: [{ name: c, run: 'true' }]",
  'name: a, agent: issues@eu, action: search, sources: [{ name: e, ref: 5, limit: "{{ 1 }}" }]',
  'name: a, agent: git, action: create_pr, draft: true, labels: "{{ inputs.labels }}"',
  'name: a, agent: store, sources: [{ name: e, ref: x }]',
  'name: a, agent: store, target_entries: [{ name: e, ref: x, file: y }]',
  'name: a, agent: store, action: list, sources: [{ name: e, prefix: x }]',
  'name: a, agent: store, action: delete, target_entries: [{ name: e, ref: x }]',
  'name: a, agent: chat, notify: [on_fail]',
  'name: a, agent: chat, notify: { on_fail: { message: x, when: "true" } }',
  'name: a, type: gate, review: { prompt: x }',
  'name: a, type: map, team: ./c, items: "{{ inputs.x }}", key: "{{ item }}"',
  'name: a, agent: http, sources: [{ name: e, url: x, expect_status: "{{ 200 }}" }]',
  "name: a, type: map, items: [1], phases: [{ name: b, agent: exec, commands: [{ name: c, run: 'true' }] }], outputs: [{ name: o, value: 1 }]",
  "name: a, type: map, items: [1], agent: exec, retry: { attempts: 2 }, commands: [{ name: c, run: 'true' }]",
  'name: a, type: map, items: [1], inputs: [{ name: x, type: file, value: "{{ item }}" }], phases: [{ name: b, type: gate, review: { prompt: x } }]',
])('%s passes', phase => expect(passes(phase)).toBe(true))

test.each([
  'name: a, agent: exce',
  'name: a, agent: issues, action: serch, sources: [{ name: e, ref: x }]',
  'name: a, agent: issues, action: search, sources: [{ name: e }]',
  'name: a, agent: issues, action: search, sources: [{ name: e, ref: x, limt: 1 }]',
  'name: a, agent: store, sources: [{ name: e, prefix: x }]',
  'name: a, agent: store, target_entries: [{ name: e, ref: x }]',
  'name: a, agent: store, action: list, sources: [{ name: e, ref: x }]',
  'name: a, agent: store, action: lisst, sources: [{ name: e, prefix: x }]',
  'name: a, agent: store, action: delete, sources: [{ name: e, ref: x }]',
  'name: a, agent: git, action: create_pr, titel: x',
  'name: a, type: team',
  'name: a, agent: chat, notify: [on_fial]',
  'name: a, agent: exec, timeout: 5',
  'name: a, type: team, team: ./c, retry: { attempts: 2 }',
  'name: a, type: gate, review: { prompt: x }, retry: { attempts: 2 }',
  "name: a, type: gate, review: { prompt: x }, repeat: { until: 'true', every: 1m, most: 2 }",
  "name: a, type: map, items: [], team: ./c, repeat: { until: 'true', every: 1m, most: 2 }",
  "name: a, agent: exec, commands: [{ name: c, run: x }], repeat: { until: 'true', every: 1m }",
  'name: a, type: map, items: [1]',
  'name: a, type: map, items: [1], team: ./b, phases: [{ name: b, agent: exec }]',
  'name: a, type: map, items: [1], phases: [{ name: b, agent: exce }]',
  'name: a, type: map, items: [1], phases: [{ name: b, agent: exec }], retry: { attempts: 2 }',
  'name: a, type: gate, review: { prompt: x }, agent: exec',
  'name: a, agent: chat, notify: [on_fail], depends_on: [b]',
])('%s does not', phase => expect(passes(phase)).toBe(false))

test('it is plain JSON, without our own words', () => {
  const text = JSON.stringify(teamJsonSchema(lookup))
  expect(text).not.toContain('x-template')
  expect(text).not.toContain('x-expected')
})

test('it says what an action does, and what its `data` has', async () => {
  const text = JSON.stringify(teamJsonSchema(await discover({ home: folder() })))
  expect(text).toContain('"Reads a ticket. `data` has id, url, status, subject."')
})

test('it names the dialect that editors know', () => {
  expect(teamJsonSchema(lookup).$schema).toBe('https://json-schema.org/draft/2020-12/schema')
})

test('every property has words for the person who writes it', async () => {
  const whole = teamJsonSchema(await discover({ home: folder() }))
  expect(JSON.stringify(whole).match(/"description"/g)!.length).toBeGreaterThan(600)
  expect(undescribed(whole)).toEqual([])
})
