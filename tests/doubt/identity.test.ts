// `context.identity`: what a vendor knows an entry by. It is made once, is on disk before the entry is sent, and is the
// same in all attempts.

import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { agent, Type } from '../../lib/agent/cadre.ts'
import { type FakeVendor, fakeVendor, refusal } from '../../lib/testing/fake-vendor.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'

/** Creates an item under an id of its own making. It is told to go wrong by the entry's `fault`. */
const shop = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Creates items.',
  settings: Type.Object({ url: Type.String() }),
  target: {
    effect: 'once',
    entry: Type.Object({ name: Type.String(), fault: Type.Optional(Type.String()) }),
    async run({ fault }, context) {
      const ids = await Promise.all([
        context.identity(() => (fault === 'empty' ? '' : fault === 'long' ? 'x'.repeat(1_001) : crypto.randomUUID())),
        context.identity(() => crypto.randomUUID()),
      ])
      await context.api({ base: context.settings.url })(`create ${ids[0]}`, `/items/${ids.join('+')}`, {
        method: 'POST',
      })
      return { text: 'created', external: { id: ids[0] } }
    },
    async find(_, context) {
      found.push(await context.identity())
      return null
    },
  },
})

let vendor: FakeVendor
let engine: TestEngine
let home: string
/** What `find` got. */
let found: (string | null)[]
/** Whether the database had the id when the request came. */
let wasOnDisk: boolean[]
beforeEach(async () => {
  found = []
  wasOnDisk = []
  home = folder()
  vendor = fakeVendor(({ path }) => {
    using db = new Database(join(home, 'daemon.db'), { readonly: true })
    const rows = db.query<{ value: string }, []>('SELECT value FROM identities').all()
    wasOnDisk.push(rows.some(({ value }) => path.includes(value)))
    return refusal(500)
  })
  engine = await begin()
})
afterEach(async () => {
  await engine.close()
  vendor[Symbol.dispose]()
})

const begin = () => testEngine({ home, agents: { shop }, settings: { shop: { url: vendor.url } }, settle: 0 })
const ids = () => vendor.seen.map(({ path }) => path.slice('/items/'.length).split('+'))

async function start(entries: object[], fields: object = {}): Promise<string> {
  const phases = [{ name: 'make', agent: 'shop', target_entries: entries, ...fields }]
  const { run_id } = await engine.start(JSON.stringify({ name: '@local/one', version: '1.0.0', phases }))
  await engine.engine.ended(run_id)
  return run_id
}

test('it is one value over attempts, resumes and restarts, and on disk before it is sent', async () => {
  const run = await start([{ name: 'one' }], { retry: { attempts: 2, backoff: '1ms' } })
  await engine.engine.resume(run)
  await engine.engine.ended(run)
  await engine.close()
  engine = await begin()
  await engine.engine.resume(run)
  await engine.engine.ended(run)
  const [first] = ids()[0]!
  expect(ids().length).toBeGreaterThan(3)
  // Also the second question of an attempt has the first answer.
  expect(new Set(ids().flat())).toEqual(new Set([first!]))
  expect(new Set(found)).toEqual(new Set([first!]))
  expect(new Set(wasOnDisk)).toEqual(new Set([true]))
})

test('each entry has its own, and so has each run', async () => {
  await start([{ name: 'one' }])
  await start([{ name: 'two' }])
  expect(new Set(ids().flat()).size).toBe(2)
})

test('it goes with its run', async () => {
  const run = await start([{ name: 'one' }])
  const rows = () => engine.engine.store.db.query('SELECT * FROM identities').all()
  expect(rows()).toHaveLength(1)
  engine.engine.store.db.query('DELETE FROM runs WHERE id = ?').run(run)
  expect(rows()).toEqual([])
})

test.each(['empty', 'long'])('a value that is %s is an error, and nothing is sent', async fault => {
  const run = await start([{ name: 'one', fault }])
  expect(engine.engine.store.phases.get(run, 0)!.error).toContain('identity: the value must be a text of 1 to 1000')
  expect(vendor.seen).toEqual([])
  expect(engine.engine.store.receipts.ofRun(run)).toEqual([])
})
