// A comment in Zendesk is refused when the ticket has changed since an earlier comment of the entry was looked for.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import helpdesk from '../../agents/helpdesk.ts'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { testContext } from '../support/context.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'
import { ACCOUNT, addComment, type FakeHelpdesk, fakeHelpdesk, touch } from '../vendors/helpdesk.ts'
import { late } from './late.ts'

const PUT = /^PUT/
let zendesk: FakeHelpdesk
let engine: TestEngine
beforeEach(async () => {
  zendesk = fakeHelpdesk()
  const settings = { helpdesk: { ...ACCOUNT, base_url: zendesk.url } }
  engine = await testEngine({ agents: { helpdesk }, settings, settle: 0 })
})
afterEach(async () => {
  await engine.close()
  zendesk[Symbol.dispose]()
})

async function start(fields: object = {}): Promise<string> {
  const workspace = folder()
  writeFileSync(join(workspace, 'c.md'), 'On it.')
  const target_entries = [{ name: 'c', ref: 35436, file: 'c.md' }]
  const phases = [{ name: 'one', agent: 'helpdesk', action: 'add_comment', target_entries, ...fields }]
  const team = JSON.stringify({ name: '@local/one', version: '1.0.0', phases })
  const { run_id } = await engine.start(team, {}, { workspace })
  await engine.engine.ended(run_id)
  return run_id
}
const stateOf = (run: string) => engine.engine.store.runs.get(run)!.state

test('that lands after its repetition is no second one', async () => {
  const landing = late(zendesk, PUT, 1_000)
  const run = await start({ retry: { attempts: 2, backoff: '1ms' } })
  expect([stateOf(run), zendesk.comments.length]).toEqual(['completed', 1])
  await landing.done()
  expect(zendesk.comments).toHaveLength(1)
})

test('that lands after its run has failed is found by a resume', async () => {
  const landing = late(zendesk, PUT, 300)
  const run = await start()
  expect(stateOf(run)).toBe('failed')
  await landing.done()
  await engine.engine.resume(run)
  await engine.engine.ended(run)
  expect([stateOf(run), zendesk.comments.length]).toEqual(['completed', 1])
})

test('that lands between the last look and the repetition is found', async () => {
  zendesk.fail(PUT, () => refusal(504))
  const run = await start()
  expect(stateOf(run)).toBe('failed')
  // It lands when the repetition has read the ticket and found no comment.
  zendesk.fail(PUT, ({ body }) => {
    const { metadata } = (body as { ticket: { metadata: Record<string, unknown> } }).ticket
    addComment(zendesk, 'On it.', false, metadata)
    touch(zendesk)
    return refusal(409, { error: 'UpdateConflict' })
  })
  await engine.engine.resume(run)
  await engine.engine.ended(run)
  expect([stateOf(run), zendesk.comments.length]).toEqual(['completed', 1])
})

test('is sent when somebody else has changed the ticket meanwhile, and given up when they never stop', async () => {
  const at = testContext({ settings: { ...ACCOUNT, base_url: zendesk.url }, effect: 'once' })
  writeFileSync(join(at.workspace, 'c.md'), 'On it.')
  const comment = () =>
    helpdesk.actions!.add_comment!.run({ name: 'c', ref: '35436', file: 'c.md' }, at.context as never)
  const other = () => {
    touch(zendesk)
    return refusal(409, { error: 'UpdateConflict' })
  }
  zendesk.fail(PUT, other)
  await comment()
  expect(zendesk.comments).toHaveLength(1)
  zendesk.comments.length = 0
  zendesk.fail(PUT, other, { times: 99 })
  expect(await comment().catch(error => error)).toMatchObject({ code: 'conflict', sent: 'no' })
  expect(zendesk.comments).toEqual([])
})
