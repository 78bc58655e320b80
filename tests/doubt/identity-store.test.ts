// An upload to an object store is one version of one object: it is written only over what was there before.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import objectstore from '../../agents/objectstore.ts'
import type { AgentContext } from '../../lib/agent/agent-context.ts'
import { type TestContext, testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { folder } from '../support/folder.ts'
import { ACCESS, type ObjectVendor, objectVendor, refusal } from '../vendors/objectstore.ts'

const MiB = 2 ** 20
let vendor: ObjectVendor
beforeEach(async () => {
  vendor = await objectVendor()
})
afterEach(() => vendor[Symbol.asyncDispose]())

/** A context in a workspace with a file of this content; by default that of the same entry each time. */
function contextWith(content: string, more: Parameters<typeof testContext>[0] = {}): TestContext {
  const workspace = folder()
  writeFileSync(join(workspace, 'file'), content)
  const settings = { ...ACCESS, endpoint: vendor.endpoint }
  const network = { allow: [], literalOrigins: [] }
  return testContext({ agent: 'objectstore', settings, network, effect: 'idempotent', workspace, ...more })
}
const write = (at: TestContext) =>
  objectstore.target!.run({ name: 'up', ref: 'reports/k', file: 'file' }, at.context as AgentContext<never>)
/** What somebody else writes. */
const another = (content: string) => write(contextWith(content, { key: crypto.randomUUID() }))
const stored = async () => {
  const at = contextWith('')
  await objectstore.source!.run({ name: 'x', ref: 'reports/k' }, at.context as AgentContext<never>)
  return Bun.file(join(at.stateDir, 'files/phase/x')).text()
}

/** Sends a request again as it came. */
const again = async (request: Request) => {
  const { method, url, headers } = request
  const body = await request.bytes()
  const own = new Headers(headers)
  for (const name of ['connection', 'content-length']) own.delete(name)
  return () => fetch(url, { method, headers: own, body, keepalive: false })
}

/** The next `times` requests that match get this answer; the first of them is done `before` that, or `after` milliseconds. */
function loses(
  match: RegExp,
  answer: () => Response,
  { times = 1, after = 0 }: { times?: number; after?: number } = {},
) {
  const landings: Promise<unknown>[] = []
  let left = times
  vendor.fault = async (request, url) => {
    if (left === 0 || !match.test(`${request.method} ${url.search}`)) return null
    const isFirst = left === times
    left--
    if (!isFirst) return answer()
    const send = await again(request)
    const rest = left
    left = 0
    if (after === 0) await send()
    left = rest
    if (after > 0) landings.push(Bun.sleep(after).then(send))
    return answer()
  }
  return { landed: () => Promise.all(landings) }
}

test('whose reply is lost is written once', async () => {
  loses(/^PUT/, () => refusal(503, 'SlowDown'))
  expect((await write(contextWith('one'))).data).toMatchObject({ size: 3 })
  expect(vendor.written).toEqual(['/reports/k'])
})

test('over another object, whose reply is lost, is written once', async () => {
  await another('before')
  loses(/^PUT/, () => refusal(503, 'SlowDown'))
  await write(contextWith('one'))
  expect([vendor.written.length, await stored()]).toEqual([2, 'one'])
})

test('that lands late does not write over what somebody else has written since', async () => {
  const { landed } = loses(/^PUT/, () => refusal(504, 'Timeout'), { times: 4, after: 5_000 })
  await failureOf(write(contextWith('one')))
  await write(contextWith('one', { attempt: 2 }))
  await another('two')
  await landed()
  expect([vendor.written.length, await stored()]).toEqual([2, 'two'])
}, 20_000)

test('of an earlier attempt is not sent again, but another content is', async () => {
  await write(contextWith('one'))
  await write(contextWith('one', { attempt: 2 }))
  expect(vendor.written).toHaveLength(1)
  await write(contextWith('two', { attempt: 3 }))
  expect([vendor.written.length, await stored()]).toEqual([2, 'two'])
})

test.each([
  ['and is told that there is no such upload any more', () => refusal(404, 'NoSuchUpload')],
  ['and is repeated', () => refusal(500, 'InternalError')],
])('in parts whose completion loses its reply %s is written once', async (_, answer) => {
  loses(/^POST .*uploadId/, answer)
  const content = 'x'.repeat(9 * MiB)
  expect((await write(contextWith(content))).data).toMatchObject({ size: content.length })
  expect(vendor.written).toEqual(['/reports/k'])
})

test('to an object that somebody writes at the same time is the last one', async () => {
  let isFirst = true
  vendor.fault = async request => {
    if (request.method !== 'PUT' || !isFirst) return null
    isFirst = false
    await another('between')
    return null
  }
  await write(contextWith('one'))
  expect([vendor.written.length, await stored()]).toEqual([2, 'one'])
})

test.each([
  ['that does not know conditions', () => refusal(501, 'NotImplemented')],
  ['that understands them in another way', () => refusal(412, 'PreconditionFailed')],
])('to a store %s is written nevertheless', async (_, answer) => {
  vendor.fault = ({ method, headers }) =>
    method === 'PUT' && (headers.has('if-none-match') || headers.has('if-match')) ? answer() : null
  await write(contextWith('one'))
  await write(contextWith('two'))
  expect([vendor.written.length, await stored()]).toEqual([2, 'two'])
})
