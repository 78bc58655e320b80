import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import objectstore from '../../agents/objectstore.ts'
import type { AgentError, AgentResult } from '../../lib/agent/define.ts'
import { storeClient } from '../../lib/vendors/s3.ts'
import { agentProcess } from '../support/agent-process.ts'
import { type TestContext, testContext } from '../support/context.ts'
import { rawServer } from '../support/faults.ts'
import { folder } from '../support/folder.ts'
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

type Options = NonNullable<Parameters<typeof testContext>[0]>

const contextFor = (settings: object = {}, options: Options = {}): TestContext =>
  testContext({
    agent: 'objectstore',
    settings: { ...ACCESS, endpoint: vendor.endpoint, ...settings },
    network: { allow: [], literalOrigins: [] },
    ...options,
  })

const fetched = (entry: object, t = contextFor()): Promise<AgentResult> => objectstore.source!.run(entry, t.context)
const put = (entry: object, t = contextFor()): Promise<AgentResult> => objectstore.target!.run(entry, t.context)
const textOf = (t: TestContext, name: string) => Bun.file(join(t.stateDir, 'files/phase', name)).text()

const failureOf = (work: Promise<unknown>): Promise<AgentError> =>
  work.then(
    () => expect.unreachable(),
    error => error,
  )

describe('an object', () => {
  test.each(['daily/2026 – report 🎉.txt', 's3://reports/plain.txt', "odd/quo'te + % ? # & = *()!~.txt"])(
    '%s is fetched',
    async ref => {
      const key = ref.replace(/^s3:\/\/reports\//, '')
      await store.write(key, 'hello')
      const t = contextFor()
      const result = await fetched({ name: 'report.txt', ref: ref.startsWith('s3:') ? ref : `${BUCKET}/${key}` }, t)
      const etag = '"5d41402abc4b2a76b9719d911017c592"'
      expect(result.data).toEqual({ etag, size: 5, last_modified: expect.stringMatching(/^\d{4}-.*Z$/) })
      expect(await textOf(t, 'report.txt')).toBe('hello')
    },
  )

  test('is written, and fetched again', async () => {
    const t = contextFor()
    await Bun.write(join(t.workspace, 'out.json'), '{"a":1}')
    const result = await put({ name: 'x', ref: 's3://reports/2026/out.json', file: 'out.json' }, t)
    expect(result).toMatchObject({
      data: { size: 7, etag: expect.any(String) },
      external: { url: 's3://reports/2026/out.json' },
    })
    expect(await store.file('2026/out.json').text()).toBe('{"a":1}')
    expect((await store.stat('2026/out.json')).type).toStartWith('application/json')
    await put({ name: 'x', ref: 'reports/under/', file: 'out.json' }, t)
    expect(await store.file('under/out.json').text()).toBe('{"a":1}')
  })

  test('that is empty is fetched and written', async () => {
    const t = contextFor()
    await Bun.write(join(t.workspace, 'none'), '')
    expect((await put({ name: 'x', ref: 'reports/none', file: 'none' }, t)).data).toMatchObject({ size: 0 })
    expect((await fetched({ name: 'none', ref: 'reports/none' }, t)).data).toMatchObject({ size: 0 })
    expect(await textOf(t, 'none')).toBe('')
  })

  test.each([
    'reports',
    's3://reports',
    'x/',
    'reports/a/../../other/k',
    'reports/./k',
    'reports//k',
    'reports/a\\b',
    'reports/s3://o/k',
    '../reports/k',
  ])('is not what %s names', async ref => {
    expect(await failureOf(fetched({ name: 'x', ref }))).toMatchObject({ code: 'invalid_request', retryable: false })
    expect(vendor.seen).toEqual([])
  })
})

describe('a prefix', () => {
  test('is fetched object by object, whatever their names are', async () => {
    for (const key of ['p/a.txt', 'p/b/🎉.txt', 'p/b', 'p/sub/x', 'q/other']) await store.write(key, key)
    const t = contextFor()
    const data = (await fetched({ name: 'all', ref: 'reports/p/' }, t)).data as {
      items: { key: string; file: string }[]
    }
    expect(data).toMatchObject({ total: 4, truncated: false })
    expect(data.items.map(({ key }) => key).sort()).toEqual(['p/a.txt', 'p/b', 'p/b/🎉.txt', 'p/sub/x'])
    expect(data.items.find(({ key }) => key === 'p/a.txt')).toMatchObject({
      file: 'all/a.txt',
      size: 7,
      etag: expect.any(String),
    })
    for (const { key, file } of data.items) expect(await textOf(t, file)).toBe(key)
  })

  test('of many objects: limit, and truncated', async () => {
    for (let n = 0; n < 12; n++) await store.write(`p/${String(n).padStart(2, '0')}`, `${n}`)
    expect((await fetched({ name: 'all', ref: 'reports/p/', limit: 5 })).data).toMatchObject({
      total: 5,
      truncated: true,
    })
    expect((await fetched({ name: 'all', ref: 'reports/p/', limit: 12 })).data).toMatchObject({
      total: 12,
      truncated: false,
    })
    expect((await fetched({ name: 'all', ref: 'reports/none/' })).data).toEqual({
      items: [],
      total: 0,
      truncated: false,
    })
  })

  test('goes on over pages, and ends where they do not', async () => {
    const page = (keys: string[], next?: string) =>
      new Response(
        `<ListBucketResult><Name>reports</Name><KeyCount>${keys.length}</KeyCount><IsTruncated>${next !== undefined}</IsTruncated>` +
          `${next ? `<NextContinuationToken>${next}</NextContinuationToken>` : ''}${keys.map(key => `<Contents><Key>${key}</Key><Size>1</Size></Contents>`).join('')}</ListBucketResult>`,
      )
    const pages: Record<string, Response> = { '': page(['p/a'], 't+/='), 't+/=': page(['p/../b', 'p/c', 'p/folder/']) }
    vendor.fault = (request, url) => {
      const token = url.searchParams.get('continuation-token') ?? ''
      if (url.searchParams.has('list-type')) return pages[token] ?? page([], 'again')
      return request.method === 'GET' ? new Response('1') : null
    }
    const t = contextFor()
    const data = (await fetched({ name: 'all', ref: 'reports/p/' }, t)).data as { items: { file: string | null }[] }
    expect(data.items.map(({ file }) => file)).toEqual(['all/a', null, 'all/c', null])
    expect(t.lines.join()).toContain('not downloaded')
    pages[''] = page(['p/a'], 'again')
    expect(await failureOf(fetched({ name: 'all', ref: 'reports/p/' }))).toMatchObject({ code: 'endless' })
  })

  test('in a bucket that does not exist is an error, not an empty list', async () => {
    expect(await failureOf(fetched({ name: 'all', ref: 'no-such-bucket/p/' }))).toMatchObject({ code: 'not_found' })
  })
})

describe('bad days', () => {
  test.each([
    [403, 'AccessDenied', 'forbidden', false, 's3:GetObject'],
    [403, 'InvalidAccessKeyId', 'unauthorized', false, 'agents.objectstore.access_key_id'],
    [403, 'ExpiredToken', 'unauthorized', false, 'agents.objectstore.secret_access_key'],
    [301, 'PermanentRedirect', 'rejected', false, 'agents.objectstore.region'],
    [404, 'NoSuchKey', 'not_found', false, 'check ref'],
    [404, 'NoSuchBucket', 'not_found', false, 'check ref'],
    [410, 'Gone', 'rejected', false, ''],
    [503, 'SlowDown', 'vendor_error', true, ''],
    [500, 'InternalError', 'vendor_error', true, ''],
  ])('%d %s is %s', async (status, s3Code, code, retryable, hint) => {
    await store.write('k', 'v')
    vendor.fault = () => refusal(status, s3Code)
    const failure = await failureOf(fetched({ name: 'x', ref: 'reports/k' }))
    expect(failure).toMatchObject({ code, retryable })
    expect(failure.hint ?? '').toContain(hint)
    expect(failure.message).toStartWith('[objectstore] s3://reports/k: ')
  })

  test('a missing object, and wrong credentials', async () => {
    expect(await failureOf(fetched({ name: 'x', ref: 'reports/none' }))).toMatchObject({
      code: 'not_found',
      retryable: false,
    })
    const failure = await failureOf(
      fetched({ name: 'x', ref: 'reports/k' }, contextFor({ secret_access_key: 'canary-wrong' })),
    )
    expect(failure).toMatchObject({ code: 'unauthorized', retryable: false })
    expect(failure.message + failure.hint).not.toContain('canary')
  })

  test('a store that is overloaded for a while is asked again', async () => {
    await store.write('k', 'v')
    let busy = 3
    vendor.fault = () => (busy-- > 0 ? refusal(503, 'SlowDown') : null)
    expect((await fetched({ name: 'x', ref: 'reports/k' })).data).toMatchObject({ size: 1 })
  })

  test('half an object is not kept, and asked for again', async () => {
    let gets = 0
    using half = await rawServer((socket, head) => {
      const length =
        'HTTP/1.1 200 OK\r\ncontent-length: 10\r\netag: "e"\r\nlast-modified: Sat, 21 Nov 2026 09:00:00 GMT\r\nconnection: close\r\n\r\n'
      const whole = head.startsWith('HEAD') || ++gets > 1
      socket.end(length + (head.startsWith('HEAD') ? '' : whole ? '0123456789' : '0123'))
    })
    const t = contextFor({ endpoint: half.url })
    await fetched({ name: 'x', ref: 'reports/k' }, t)
    expect(await textOf(t, 'x')).toBe('0123456789')
    expect(gets).toBe(2)
  })

  test('no server: retryable; a metadata address: refused', async () => {
    expect(
      await failureOf(fetched({ name: 'x', ref: 'reports/k' }, contextFor({ endpoint: 'http://127.0.0.1:1' }))),
    ).toMatchObject({
      retryable: true,
    })
    const metadata = contextFor({ endpoint: 'http://169.254.169.254' })
    expect(await failureOf(fetched({ name: 'x', ref: 'reports/k' }, metadata))).toMatchObject({ code: 'refused' })
  })

  test('a run that is stopped lets go of a silent store', async () => {
    using silent = await rawServer(() => {})
    const stop = new AbortController()
    const work = fetched({ name: 'x', ref: 'reports/k' }, contextFor({ endpoint: silent.url }, { signal: stop.signal }))
    await Bun.sleep(20)
    stop.abort()
    expect(await failureOf(work)).toMatchObject({ code: 'aborted' })
  })
})

describe('the environment', () => {
  const access = { accessKeyId: 'a', secretAccessKey: 'b', endpoint: 'http://127.0.0.1:1', region: 'r', bucket: BUCKET }

  test('lends no session token to other keys', () => {
    for (const name of ['AWS_SESSION_TOKEN', 'S3_SESSION_TOKEN']) {
      expect(() => storeClient(access, { [name]: 'canary' })).toThrow(`the daemon's environment has ${name}`)
    }
    expect(storeClient({ ...access, sessionToken: 'own' }, { AWS_SESSION_TOKEN: 'canary' })).toBeInstanceOf(
      Bun.S3Client,
    )
  })

  test('is what Bun would use otherwise: once it does not, the refusal can go', async () => {
    const program = `
      const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: request => {
        console.log(request.headers.get('x-amz-security-token'))
        return new Response('x')
      } })
      const access = { accessKeyId: 'a', secretAccessKey: 'b', sessionToken: '', bucket: 'b' }
      await new Bun.S3Client({ ...access, endpoint: server.url.origin }).file('k').text()
      process.exit()`
    const env = { PATH: process.env.PATH ?? '', AWS_SESSION_TOKEN: 'from-outside' }
    const child = Bun.spawn([process.execPath, '-e', program], { env, stdout: 'pipe', stderr: 'inherit' })
    expect(await child.stdout.text()).toBe('from-outside\n')
  })
})

describe('large files', () => {
  const large = async (t: TestContext, megabytes: number) => {
    const writer = Bun.file(join(t.workspace, 'large')).writer()
    for (let n = 0; n < megabytes; n++) writer.write(Buffer.alloc(2 ** 20, n))
    await writer.end()
  }

  test('up to 8 MiB are one request, above they are multipart', async () => {
    const t = contextFor()
    await large(t, 8)
    await put({ name: 'x', ref: 'reports/eight', file: 'large' }, t)
    expect(vendor.seen.filter(line => line.startsWith('POST'))).toEqual([])
    await large(t, 9)
    await put({ name: 'x', ref: 'reports/nine', file: 'large' }, t)
    expect(vendor.seen.filter(line => line.includes('partNumber'))).toHaveLength(2)
    expect((await store.stat('nine')).size).toBe(9 * 2 ** 20)
  })

  test('one whose part is refused leaves nothing behind', async () => {
    const t = contextFor()
    await large(t, 20)
    vendor.fault = (_, url) => (url.searchParams.get('partNumber') === '2' ? refusal(403, 'AccessDenied') : null)
    const failure = await failureOf(put({ name: 'x', ref: 'reports/k', file: 'large' }, t))
    expect(failure).toMatchObject({ code: 'forbidden', hint: expect.stringContaining('s3:PutObject') })
    const aborted = () => vendor.seen.some(line => line.startsWith('DELETE /reports/k?uploadId='))
    for (let n = 0; n < 200 && !aborted(); n++) await Bun.sleep(5)
    expect(aborted()).toBe(true)
    expect(await store.exists('k')).toBe(false)
  })

  // The agent in a process of its own, whose memory is measured.
  test.each(process.env.CADRE_SLOW_TESTS === '1' ? [64, 1024] : [64])(
    'of %d MiB pass up and down in less than 200 MiB',
    async megabytes => {
      const at = folder()
      await fill(join(at, 'large'), megabytes)
      const settings = { ...ACCESS, endpoint: vendor.endpoint }
      const call = { agent: 'objectstore', settings, at }
      const ref = `${BUCKET}/large`
      const entry = { name: 'back', ref }
      const up = { ...call, handler: 'target', effect: 'idempotent', entry: { ...entry, file: 'large' } } as const
      const down = { ...call, handler: 'source', effect: 'read', entry } as const
      for (const { error, peak } of [await agentProcess(up), await agentProcess(down)]) {
        expect(error).toBeUndefined()
        expect(peak).toBeLessThan(200)
      }
      expect(await hashOf(join(at, 'files/phase/back'))).toBe(await hashOf(join(at, 'large')))
      // Gigabytes do not wait for the end of the file.
      rmSync(at, { recursive: true })
    },
    300_000,
  )
})

async function fill(path: string, megabytes: number): Promise<void> {
  const file = Bun.file(path).writer()
  for (let n = 0; n < megabytes; n++) {
    const random = crypto.getRandomValues(new Uint8Array(2 ** 16))
    file.write(random.toHex().repeat(8))
    await file.flush()
  }
  await file.end()
}

async function hashOf(path: string): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256')
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk)
  return hasher.digest('hex')
}
