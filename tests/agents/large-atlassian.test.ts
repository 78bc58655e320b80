// Searches with 10,000 results and attachments of any size pass through Jira's and Confluence's agents in bounded memory:
// the agent runs in a process of its own, whose peak is looked at.

import { expect, test } from 'bun:test'
import { closeSync, ftruncateSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { type AgentCall, agentProcess } from '../support/agent-process.ts'
import { folder } from '../support/folder.ts'
import { ACCOUNT } from '../vendors/atlassian.ts'
import { atlassianSink } from '../vendors/atlassian-sink.ts'

const MIB = 2 ** 20
/** More than the bound by itself. */
const FILE = 256 * MIB
const RESULTS = 10_000
/** A page of 100 results is 1.6 MiB. All of them, if they were kept, would exceed the bound with their pages. */
const RESULT = 16 * 1024
/** In MiB. */
const MOST = 230

const at = folder()
// Sparse: it takes no room.
const file = openSync(join(at, 'large'), 'w')
ftruncateSync(file, FILE)
closeSync(file)

const call = (agent: string, handler: string, effect: AgentCall['effect'], base_url: string, entry: object) =>
  agentProcess({ agent, handler, effect, settings: { ...ACCOUNT, base_url }, entry: { name: 'out', ...entry }, at })
const sink = () => atlassianSink({ results: RESULTS + 1, resultBytes: RESULT, fileBytes: FILE })

test.each(['issues', 'wiki'])(
  '10,000 results of a search of %s',
  async agent => {
    using server = sink()
    const entry = { ref: 'type = page', limit: RESULTS }
    const { error, result, peak } = await call(agent, 'search', 'read', server.url, entry)
    expect(error).toBeUndefined()
    const written = Bun.file(join(at, 'files/phase/out'))
    expect(written.size).toBeGreaterThan(RESULTS * RESULT)
    await written.delete()
    expect(result?.data).toMatchObject({ truncated: true })
    expect(peak).toBeLessThan(MOST)
  },
  120_000,
)

test.each([
  ['issues', 'WEB-1'],
  ['wiki', '1'],
])(
  'an attachment, down and up, through %s',
  async (agent, ref) => {
    using server = sink()
    const down = await call(agent, 'get_attachments', 'read', server.url, { ref })
    expect(down.error).toBeUndefined()
    const written = Bun.file(join(at, 'files/phase/out/other'))
    expect(written.size).toBe(FILE)
    await written.delete()
    const up = await call(agent, 'add_attachment', 'idempotent', server.url, { ref, file: 'large' })
    expect(up.error).toBeUndefined()
    expect(server.taken).toBeGreaterThan(FILE)
    expect(Math.max(down.peak, up.peak)).toBeLessThan(MOST)
  },
  120_000,
)

test('a file that the issue already has is recognised without being held in memory', async () => {
  using server = sink()
  const entry = { ref: 'WEB-1', file: 'large', filename: 'other' }
  const { error, result, peak } = await call('issues', 'add_attachment', 'idempotent', server.url, entry)
  expect(error).toBeUndefined()
  expect(result?.external?.id).toBe('1')
  expect(server.taken).toBe(0)
  expect(peak).toBeLessThan(MOST)
}, 120_000)
