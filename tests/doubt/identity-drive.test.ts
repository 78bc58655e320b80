// An upload to Drive is one file, whatever becomes of its reply: Drive knows it by an id that is kept before it is sent.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import filestore from '../../agents/filestore.ts'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'
import { credentials, type FakeDrive, fakeDrive } from '../vendors/filestore.ts'
import { late } from './late.ts'

const FILE = credentials('service_account')
const UPLOAD = /^POST \/upload/
const MiB = 1024 * 1024
/** How many lists of a folder are behind; more than anybody asks for. */
const LONG = 99

let drive: FakeDrive
let engine: TestEngine
let home: string
beforeEach(async () => {
  drive = fakeDrive()
  drive.lag = LONG
  home = folder()
  engine = await begin()
})
afterEach(async () => {
  await engine.close()
  drive[Symbol.dispose]()
})

const begin = () =>
  testEngine({
    home,
    agents: { filestore },
    settings: { filestore: { credentials_file: FILE, base_url: drive.url } },
    settle: 0,
  })
const uploaded = () => drive.files.filter(({ parents }) => parents.includes('folder-1'))
const asked = (path: RegExp) => drive.seen.filter(each => path.test(`${each.method} ${each.path}`)).length

/** Starts a run that uploads a file of this size, and gives its id. */
async function start(size: number, fields: object = {}, entry: object = {}): Promise<string> {
  const workspace = folder()
  writeFileSync(join(workspace, 'report.md'), 'x'.repeat(size))
  const phase = {
    name: 'up',
    agent: 'filestore',
    target_entries: [{ name: 'up', ref: 'folder-1', file: 'report.md', ...entry }],
    ...fields,
  }
  const team = { name: '@local/one', version: '1.0.0', phases: [phase] }
  return (await engine.start(JSON.stringify(team), {}, { workspace })).run_id
}

const retried = { retry: { attempts: 3, backoff: '1ms' } }
const stateOf = (run: string) => engine.engine.store.runs.get(run)!.state

describe.each([
  ['in one request', 10],
  ['in parts', 6 * MiB],
])('an upload %s', (_, size) => {
  const LAST = size > MiB ? /^PUT \/upload/ : UPLOAD

  test('whose reply is lost is found by its id, although no list shows it', async () => {
    drive.fail(LAST, () => refusal(502), { done: true, times: size > MiB ? LONG : 1 })
    const run = await start(size)
    await engine.engine.ended(run)
    expect([stateOf(run), uploaded().length]).toEqual(['completed', 1])
    expect(engine.engine.store.receipts.ofRun(run)).toMatchObject([{ state: 'done', external_id: uploaded()[0]!.id }])
    expect(asked(/generateIds$/)).toBe(1)
  }, 30_000)
})

test('an upload that lands after a proxy gave up is one file, with the attempt after it', async () => {
  const landing = late(drive, UPLOAD, 300)
  const run = await start(10, { retry: { attempts: 3, backoff: '600ms' } })
  await engine.engine.ended(run)
  await landing.done()
  expect([stateOf(run), uploaded().length]).toEqual(['completed', 1])
  expect(asked(/generateIds$/)).toBe(1)
})

test('an upload that lands after its repetition adds nothing', async () => {
  const landing = late(drive, UPLOAD, 700)
  const run = await start(10, retried)
  await engine.engine.ended(run)
  expect([stateOf(run), uploaded().length]).toEqual(['completed', 1])
  await landing.done()
  expect(uploaded()).toHaveLength(1)
})

test.each([
  ['a resume', (run: string) => engine.engine.resume(run)],
  [
    'a resume after a restart',
    async (run: string) => {
      await engine.close()
      engine = await begin()
      await engine.engine.resume(run)
    },
  ],
])('a file that lands after its run has failed is found by %s', async (_, resume) => {
  const landing = late(drive, UPLOAD, 300)
  const run = await start(10)
  await engine.engine.ended(run)
  expect(stateOf(run)).toBe('failed')
  await landing.done()
  await resume(run)
  await engine.engine.ended(run)
  expect([stateOf(run), uploaded().length]).toEqual(['completed', 1])
  // The repetition was sent, and Drive refused it, because the id was taken.
  expect([asked(UPLOAD), asked(/generateIds$/)]).toEqual([3, 1])
})

test('a file that is to be replaced and is not listed yet is made once', async () => {
  drive.fail(UPLOAD, () => refusal(502), { done: true })
  const run = await start(10, retried, { mode: 'replace' })
  await engine.engine.ended(run)
  expect([stateOf(run), uploaded().length]).toEqual(['completed', 1])
})

test('an id that nobody could be told of is asked for again', async () => {
  drive.fail(/generateIds$/, () => refusal(400))
  const run = await start(10)
  await engine.engine.ended(run)
  expect([stateOf(run), uploaded().length]).toEqual(['failed', 0])
  expect(engine.engine.store.receipts.ofRun(run)).toEqual([])
  await engine.engine.resume(run)
  await engine.engine.ended(run)
  expect([stateOf(run), uploaded().length]).toEqual(['completed', 1])
})
