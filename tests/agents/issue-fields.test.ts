// Fields of Jira as people write them, and as Jira takes them.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import issues from '../../agents/issues.ts'
import type { AgentContext } from '../../lib/agent/agent-context.ts'
import type { Json } from '../../lib/json.ts'
import { testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { ACCOUNT } from '../vendors/atlassian.ts'
import { type FakeIssues, fakeIssues } from '../vendors/issues.ts'

let site: FakeIssues
beforeEach(() => {
  site = fakeIssues()
})
afterEach(() => site[Symbol.dispose]())

function update(fields: Record<string, Json>) {
  const settings = { ...ACCOUNT, base_url: site.url }
  const at = testContext({
    agent: 'issues',
    settings,
    network: { allow: [], literalOrigins: [] },
    effect: 'idempotent',
  })
  writeFileSync(join(at.workspace, 'd.json'), JSON.stringify({ fields }))
  const entry = { name: 'x', ref: 'WEB-1', file: 'd.json' }
  return issues.actions!.update_fields!.run(entry, at.context as AgentContext<never>)
}

test.each<[string, Json, string, unknown]>([
  ['story points', '3', 'customfield_10016', 3],
  ['STORY POINTS', 2.5, 'customfield_10016', 2.5],
  ['Build', 412, 'customfield_10035', '412'],
  ['Size', 3, 'customfield_10031', { value: '3' }],
  ['Size', { id: '10100' }, 'customfield_10031', { id: '10100' }],
  ['Teams', 'a', 'customfield_10030', [{ value: 'a' }]],
  ['Teams', [1, { value: 'b' }], 'customfield_10030', [{ value: '1' }, { value: 'b' }]],
  ['Teams', [], 'customfield_10030', []],
  ['Region', 'Asia', 'customfield_10032', { value: 'Asia' }],
  ['Region', ['Europe', 'France'], 'customfield_10032', { value: 'Europe', child: { value: 'France' } }],
  ['Reviewer', '5b1', 'customfield_10033', { accountId: '5b1' }],
  ['Sprint', 7, 'customfield_10021', 7],
  ['Due', '2026-03-01', 'customfield_10034', '2026-03-01'],
  ['Shipped', '2026-03-01T10:00:00+01:00', 'customfield_10036', '2026-03-01T09:00:00.000+0000'],
  ['Shipped', '2026-03-01T10:00:00.000Z', 'customfield_10036', '2026-03-01T10:00:00.000+0000'],
  ['Parent', 'WEB-1', 'parent', { key: 'WEB-1' }],
  ['priority', 'High', 'priority', { name: 'High' }],
  ['Size', null, 'customfield_10031', null],
])('%s of %j', async (name, value, id, expected) => {
  await update({ [name]: value })
  expect(site.issues.get('WEB-1')!.fields[id]).toEqual(expected)
})

test.each<[string, Json, string]>([
  ['Points', 1, 'no field is named "Points"'],
  ['TWIN', 'x', 'several fields are named "TWIN": customfield_10041, customfield_10042'],
  ['Reviewer', 'kim@acme.test', 'Reviewer must be the id of an account'],
])('%s of %j is refused before anything is written', async (name, value, message) => {
  const error = await failureOf(update({ [name]: value }))
  expect(error).toMatchObject({ code: 'invalid_request', sent: 'no', hint: expect.any(String) })
  expect(error.message).toContain(message)
  expect(site.seen.some(({ method }) => method === 'PUT')).toBe(false)
})
