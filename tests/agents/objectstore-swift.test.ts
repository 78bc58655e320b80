// The object store agent against a store that checks signatures itself, pages, and keeps parts: OpenStack Swift.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import objectstore from '../../agents/objectstore.ts'
import { type TestContext, testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { truthful } from '../support/truthful.ts'
import { BUCKET } from '../vendors/objectstore.ts'
import { ACCESS, hasSwift, swift } from '../vendors/swift.ts'

describe.if(hasSwift)('Swift', () => {
  let store: Awaited<ReturnType<typeof swift>>
  beforeAll(async () => {
    store = await swift()
  }, 30_000)
  afterAll(() => store?.close())

  const begin = (settings: object = {}, options: object = {}) =>
    testContext({ agent: 'objectstore', settings: { ...ACCESS, endpoint: store.endpoint, ...settings }, ...options })
  const get = (entry: object, t = begin()) => truthful(objectstore).source!.run({ name: 'out', ...entry }, t.context)
  const put = async (content: string | Uint8Array, ref: string, t = begin()) => {
    await Bun.write(join(t.workspace, 'in.bin'), content)
    return truthful(objectstore).target!.run({ name: 'x', ref, file: 'in.bin' }, t.context)
  }
  const bytesOf = (t: TestContext, name: string) => Bun.file(join(t.stateDir, 'files/phase', name)).bytes()
  const textOf = async (t: TestContext, name: string) => new TextDecoder().decode(await bytesOf(t, name))

  const KEYS = [
    'plain.txt',
    'with spaces  two.txt',
    'dots/a..b/..c/d...txt',
    'emoji/🎉 tänzer/日本.txt',
    'plus+percent%41%2F%/k',
    'marks/!*\'()&=?#$@:;,~[]{}|^`"<>',
    ' edge /~',
  ]

  test.each(KEYS)('puts, lists and gets %p', async key => {
    const { data } = await put(key, `${BUCKET}/${key}`)
    const etag = `"${new Bun.CryptoHasher('md5').update(key).digest('hex')}"`
    const about = { etag, size: Buffer.byteLength(key), last_modified: expect.stringMatching(/^\d{4}-.*Z$/) }
    expect(data).toEqual(about)
    const t = begin()
    expect((await get({ ref: `s3://${BUCKET}/${key}` }, t)).data).toEqual(about)
    expect(await textOf(t, 'out')).toBe(key)
    const folder = key.slice(0, key.lastIndexOf('/') + 1)
    const { items } = (await get({ name: 'all', ref: `${BUCKET}/${folder}` }, t)).data as {
      items: { key: string; file: string }[]
    }
    const found = items.find(item => item.key === key)
    expect(found).toBeDefined()
    expect(await textOf(t, found!.file)).toBe(key)
  })

  test('lists a prefix over pages', async () => {
    const keys = Array.from({ length: 34 }, (_, n) => `many/${String(n).padStart(2, '0')} ü`)
    await Promise.all(keys.map(key => store.client.write(key, key)))
    const t = begin()
    const { data } = await get({ ref: `${BUCKET}/many/` }, t)
    const { items } = data as { items: { key: string; file: string }[] }
    expect(items.map(({ key }) => key)).toEqual(keys)
    expect(data).toMatchObject({ total: 34, truncated: false })
    for (const { key, file } of items) expect(await textOf(t, file)).toBe(key)
    expect((await get({ ref: `${BUCKET}/many/`, limit: 21 })).data).toMatchObject({ total: 21, truncated: true })
    expect((await get({ ref: `${BUCKET}/many/`, limit: 34 })).data).toMatchObject({ total: 34, truncated: false })
  })

  test('lists over pages in the order of the keys, and deletes what is named, whether it is there or not', async () => {
    const actions = truthful(objectstore).actions!
    const call = (action: string, entry: object, t = begin()) => {
      return actions[action]!.run({ name: 'out.json', ...entry }, t.context)
    }
    const keys = Array.from({ length: 24 }, (_, n) => `gone/${String(n).padStart(2, '0')} ü+%41`)
    await Promise.all([...keys, 'gone-not'].map(key => store.client.write(key, key)))
    type Items = { items: { key: string; ref: string; bytes: number }[] }
    const { items } = (await call('list', { ref: `${BUCKET}/gone/` })).data as Items
    expect(items.map(({ key }) => key)).toEqual(keys)
    expect(items[0]).toMatchObject({ bytes: Buffer.byteLength(keys[0]!), modified: expect.stringMatching(/^\d{4}-/) })
    const refs = items.slice(0, 23).map(({ ref }) => ref)
    for (const _ of [1, 2]) expect((await call('delete', { refs })).data).toEqual({ total: 23 })
    const left = (await call('list', { ref: `${BUCKET}/gone` })).data as Items
    expect(left.items.map(({ key }) => key)).toEqual(['gone-not', keys[23]!])
    expect(await failureOf(call('delete', { ref: 'no-such-bucket/k' }))).toMatchObject({ code: 'not_found' })
  })

  test('takes in parts what is above 8 MiB', async () => {
    const content = crypto
      .getRandomValues(new Uint8Array(2 ** 16))
      .toHex()
      .repeat(65)
    const bytes = new TextEncoder().encode(content)
    expect(bytes.byteLength).toBeGreaterThan(8 * 2 ** 20)
    const { data } = await put(bytes, `${BUCKET}/parts/large`)
    expect(data).toMatchObject({ size: bytes.byteLength, etag: expect.stringMatching(/-2"$/) })
    const t = begin()
    await get({ ref: `${BUCKET}/parts/large` }, t)
    expect(Buffer.from(await bytesOf(t, 'out')).equals(bytes)).toBe(true)
    const whole = new Uint8Array(8 * 2 ** 20)
    expect((await put(whole, `${BUCKET}/parts/eight`)).data).toMatchObject({ size: whole.byteLength })
    const open = await (await store.ask('GET', `/${BUCKET}?uploads=`)).text()
    expect(open).not.toContain('<Upload>')
  }, 30_000)

  test.each([
    ['a wrong secret', { secret_access_key: 'canary-wrong' }, 'unauthorized', 'agents.objectstore.secret_access_key'],
    ['an unknown key', { access_key_id: 'test:nobody' }, 'unauthorized', 'agents.objectstore.access_key_id'],
  ])('refuses %s', async (_, settings, code, hint) => {
    await store.client.write('refused', 'x')
    for (const work of [
      () => get({ ref: `${BUCKET}/refused` }, begin(settings)),
      () => get({ ref: `${BUCKET}/` }, begin(settings)),
      () => put('y', `${BUCKET}/refused`, begin(settings)),
    ]) {
      const error = await failureOf(work())
      expect(error).toMatchObject({ code, retryable: false })
      expect(error.hint).toContain(hint)
      expect(error.message + error.hint).not.toContain('canary')
    }
    expect(await store.client.file('refused').text()).toBe('x')
  })

  test('in another region than the settings say is used in its own', async () => {
    await store.client.write('moved', 'x')
    const at = begin({ region: 'us-east-2' })
    expect((await get({ ref: `${BUCKET}/moved` }, at)).data).toMatchObject({ size: 1 })
    expect((await put('yy', `${BUCKET}/moved`, begin({ region: 'us-east-2' }))).data).toMatchObject({ size: 2 })
  })

  test.each(['none', 'none/at all'])('has no %p, nor another bucket', async key => {
    for (const ref of [`${BUCKET}/${key}`, `no-such-bucket/${key}`]) {
      expect(await failureOf(get({ ref }))).toMatchObject({ code: 'not_found', retryable: false })
    }
    expect(await failureOf(put('x', `no-such-bucket/${key}`))).toMatchObject({ code: 'not_found', retryable: false })
    expect(await failureOf(get({ ref: 'no-such-bucket/p/' }))).toMatchObject({ code: 'not_found' })
  })
})
