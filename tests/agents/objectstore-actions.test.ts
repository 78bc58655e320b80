// The actions of the object store agent, beside which a phase without an action downloads and uploads as ever, against a
// store that checks every signature.

import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { join } from 'node:path'
import objectstore from '../../agents/objectstore.ts'
import { type TestContext, testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { truthful } from '../support/truthful.ts'
import { ACCESS, BUCKET, type ObjectVendor, objectVendor, refusal } from '../vendors/objectstore.ts'

let vendor: ObjectVendor
let store: Bun.S3Client
beforeEach(async () => {
  // Chance is how long a try waits for the next: not long here.
  spyOn(Math, 'random').mockReturnValue(0.02)
  vendor = await objectVendor()
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey, region } = ACCESS
  store = new Bun.S3Client({ endpoint: vendor.endpoint, accessKeyId, secretAccessKey, region, bucket: BUCKET })
})
afterEach(async () => {
  spyOn(Math, 'random').mockRestore()
  await vendor[Symbol.asyncDispose]()
})

const begin = (): TestContext =>
  testContext({
    agent: 'objectstore',
    settings: { ...ACCESS, endpoint: vendor.endpoint },
    network: { allow: [], literalOrigins: [] },
  })
const call = (action: string, entry: object, t = begin()) => {
  return truthful(objectstore).actions![action]!.run({ name: 'out.json', ...entry }, t.context)
}
async function write(...keys: string[]): Promise<void> {
  for (const key of keys) await store.write(key, key)
  vendor.seen.length = 0
}
async function keys(): Promise<string[]> {
  return ((await store.list()).contents ?? []).map(({ key }) => key)
}

const FOLDER = '<Contents><Key>folder/</Key><Size>0</Size></Contents>'

describe('list', () => {
  test('has every object, and downloads none', async () => {
    await write('p/b', 'p/a.txt', 'p/ü/🎉', 'q')
    const t = begin()
    const { data, text } = await call('list', { ref: 's3://reports/p/' }, t)
    const about = { modified: expect.stringMatching(/^\d{4}-.*Z$/), etag: expect.stringMatching(/^"[0-9a-f]{32}"$/) }
    const items = ['p/a.txt', 'p/b', 'p/ü/🎉'].map(key => {
      return { key, ref: `s3://reports/${key}`, bytes: Buffer.byteLength(key), ...about }
    })
    // s3rver sorts by nothing.
    const found = data as { items: { key: string }[]; total: number; truncated: boolean }
    expect({ ...found, items: found.items.toSorted((a, b) => (a.key < b.key ? -1 : 1)) }).toEqual({
      items,
      total: 3,
      truncated: false,
    })
    expect(text).toBe('s3://reports/p/: 3 objects')
    expect(await Bun.file(join(t.stateDir, 'files/phase/out.json')).json()).toEqual(found)
    expect(vendor.seen).toEqual([expect.stringMatching(/^GET \/reports\/?\?list-type=2&prefix=p%2F/)])
  })

  test('takes the beginning of a name, and a whole bucket', async () => {
    await write('nightly/db-1', 'nightly/db-2', 'nightly/files-1')
    const found = async (ref: string) => (await call('list', { ref })).data
    expect(await found('reports/nightly/db-')).toMatchObject({ total: 2, truncated: false })
    expect(await found('reports/')).toMatchObject({ total: 3 })
    expect(await found('reports/none')).toEqual({ items: [], total: 0, truncated: false })
  })

  test('says that there is more than `limit`', async () => {
    await write('1', '2', '3')
    const { data, text } = await call('list', { ref: 'reports/', limit: 2 })
    expect(data).toMatchObject({ items: [{ bytes: 1 }, { bytes: 1 }], total: 2, truncated: true })
    expect(text).toBe('s3://reports/: 2 objects, and there are more')
    expect((await call('list', { ref: 'reports/', limit: 3 })).data).toMatchObject({ total: 3, truncated: false })
  })

  test('goes on over pages, and leaves out the empty objects of folders', async () => {
    const page = (key: string, next?: string) => {
      const more = `<IsTruncated>${next !== undefined}</IsTruncated><NextContinuationToken>${next}</NextContinuationToken>`
      return `<ListBucketResult>${more}<Contents><Key>${key}</Key><Size>1</Size></Contents>${FOLDER}</ListBucketResult>`
    }
    vendor.fault = (_, url) => {
      return new Response(url.searchParams.get('continuation-token') === 't+/=' ? page('b') : page('a', 't+/='))
    }
    const { data } = await call('list', { ref: 'reports/' })
    const none = { modified: null, etag: null, bytes: 1 }
    const items = ['a', 'b'].map(key => ({ key, ref: `s3://reports/${key}`, ...none }))
    expect(data).toEqual({ items, total: 2, truncated: false })
  })

  test('of a bucket that is not there, or is not named, is an error', async () => {
    expect(await failureOf(call('list', { ref: 'no-such-bucket/' }))).toMatchObject({ code: 'not_found' })
    expect(await failureOf(call('list', { ref: 'reports' }))).toMatchObject({ code: 'invalid_request' })
  })
})

describe('delete', () => {
  test('deletes one object and no other, and is done where it is not there', async () => {
    await write('p/a', 'p/a.txt', 'p/ü 🎉+%41')
    for (let times = 0; times < 2; times++) {
      const { data, text } = await call('delete', { ref: 's3://reports/p/a' })
      expect([data, text]).toEqual([{ total: 1 }, 's3://reports/p/a: deleted'])
      expect((await keys()).sort()).toEqual(['p/a.txt', 'p/ü 🎉+%41'])
    }
    await call('delete', { ref: 'reports/p/ü 🎉+%41' })
    expect(await keys()).toEqual(['p/a.txt'])
  })

  test('is done where a store refuses what is not there', async () => {
    vendor.fault = request => (request.method === 'DELETE' ? refusal(404, 'NoSuchKey') : null)
    expect((await call('delete', { ref: 'reports/none' })).data).toEqual({ total: 1 })
  })

  test('deletes a list, each object once, and an empty one', async () => {
    const all = Array.from({ length: 20 }, (_, n) => `p/${String(n).padStart(2, '0')}`)
    await write(...all)
    const refs = all.slice(0, 18).map(key => `s3://reports/${key}`)
    const { data, text } = await call('delete', { refs: [...refs, refs[0]] })
    expect([data, text]).toEqual([{ total: 18 }, '18 objects deleted'])
    expect(vendor.seen.filter(line => line.startsWith('DELETE'))).toHaveLength(18)
    expect((await keys()).sort()).toEqual(['p/18', 'p/19'])
    vendor.seen.length = 0
    expect((await call('delete', { refs: [] })).data).toEqual({ total: 0 })
    expect(vendor.seen).toEqual([])
  })

  test.each([
    ['reports/', 'a prefix'],
    ['s3://reports/p/', 'a prefix'],
    ['reports/p/*', 'a pattern'],
    ['reports/*.gz', 'a pattern'],
  ])('refuses %s, and all beside it, and says what to do', async (ref, what) => {
    await write('p/a', 'p/b.gz')
    for (const entry of [{ ref }, { refs: ['reports/p/a', ref] }]) {
      const failure = await failureOf(call('delete', entry))
      expect(failure).toMatchObject({ code: 'invalid_request', retryable: false, sent: 'no' })
      expect(failure.message).toContain(`[objectstore] ${JSON.stringify(ref)} is ${what}`)
      expect(failure.hint).toContain('`list`')
    }
    expect(vendor.seen).toEqual([])
  })

  test.each(['reports', 'x/k', 'reports/a/../k'])('refuses %s, which is no object', async ref => {
    expect(await failureOf(call('delete', { ref }))).toMatchObject({ code: 'invalid_request' })
    expect(vendor.seen).toEqual([])
  })

  test('ends at a refusal, names the object, and says how far it came', async () => {
    const all = Array.from({ length: 24 }, (_, n) => `p/${String(n).padStart(2, '0')}`)
    await write(...all)
    vendor.fault = (_, url) => (url.pathname.endsWith('/p/09') ? refusal(403, 'AccessDenied') : null)
    const t = begin()
    const failure = await failureOf(call('delete', { refs: all.map(key => `reports/${key}`) }, t))
    expect(failure).toMatchObject({ code: 'forbidden', hint: expect.stringContaining('s3:DeleteObject') })
    expect(failure.message).toStartWith('[objectstore] s3://reports/p/09: ')
    expect(t.lines.join()).toContain('15 of 24 objects are deleted')
    expect((await keys()).sort()).toEqual(['p/09', ...all.slice(16)])
  })

  test('sends a deletion again whose reply was lost', async () => {
    await write('k')
    let lost = 1
    vendor.fault = request => (request.method === 'DELETE' && lost-- > 0 ? refusal(503, 'SlowDown') : null)
    expect((await call('delete', { ref: 'reports/k' })).data).toEqual({ total: 1 })
    expect(await keys()).toEqual([])
  })

  test('in a bucket that is not there is an error', async () => {
    const failure = await failureOf(call('delete', { ref: 'no-such-bucket/k' }))
    expect(failure).toMatchObject({ code: 'not_found', hint: expect.stringContaining('check ref') })
  })
})
