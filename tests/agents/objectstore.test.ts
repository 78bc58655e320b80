import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import objectstore from '../../agents/objectstore.ts'
import type { AgentResult } from '../../lib/agent/agent-context.ts'
import type { AgentError } from '../../lib/agent/core/agent-error.ts'
import { fakeVendor } from '../../lib/testing/fake-vendor.ts'
import { testAgent } from '../../lib/testing/testing.ts'
import { bucketAt } from '../../lib/vendors/s3/bucket-address.ts'
import { agentProcess } from '../support/agent-process.ts'
import { type TestContext, testContext } from '../support/context.ts'
import { rawServer } from '../support/faults.ts'
import { folder } from '../support/folder.ts'
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

/** One bucket in memory, with S3's own errors. */
function fakeStore() {
  const objects = new Map([['first.txt', 'first']])
  const headersOf = (text: string) => ({ etag: '"e"', 'content-length': `${Buffer.byteLength(text)}` })
  return fakeVendor(
    ({ method, path, body }) => {
      const key = path.replace(`/${BUCKET}/`, '')
      if (method === 'PUT') objects.set(key, `${body}`)
      if (method === 'DELETE') objects.delete(key)
      if (method === 'DELETE') return new Response(null, { status: 204 })
      if (method === 'GET' && (key === '' || key.startsWith('?')))
        return new Response('<ListBucketResult></ListBucketResult>')
      const text = objects.get(key)
      if (text === undefined) return refusal(404, 'NoSuchBucket')
      return new Response(method === 'GET' ? text : null, { headers: headersOf(text) })
    },
    { allows: ({ headers }) => headers.get('authorization')?.includes(`Credential=${ACCESS.access_key_id}/`) ?? false },
  )
}

await testAgent({
  file: join(import.meta.dir, '../../agents/objectstore.ts'),
  vendor: fakeStore,
  settings: ({ url }) => ({ ...ACCESS, endpoint: url }),
  examples: {
    source: {
      entry: { name: 'out.txt', ref: `${BUCKET}/first.txt` },
      names: 's3://reports/first.txt',
      scope: 's3:GetObject',
      anyReply: true,
    },
    list: {
      entry: { name: 'all.json', ref: `${BUCKET}/` },
      names: 's3://reports/',
      scope: 's3:ListBucket',
      anyReply: true,
    },
    delete: {
      entry: { name: 'x', ref: `${BUCKET}/first.txt` },
      request: /^DELETE /,
      names: 's3://reports/first.txt',
      scope: 's3:DeleteObject',
      anyReply: true,
    },
    target: {
      entry: { name: 'x', ref: `${BUCKET}/second.txt`, file: 'second.txt' },
      files: { 'second.txt': 'second' },
      request: /^PUT /,
      names: 's3://reports/second.txt',
      scope: 's3:PutObject',
      anyReply: true,
    },
  },
})

type Options = NonNullable<Parameters<typeof testContext>[0]>

const contextFor = (settings: object = {}, options: Options = {}): TestContext =>
  testContext({
    agent: 'objectstore',
    settings: { ...ACCESS, endpoint: vendor.endpoint, ...settings },
    network: { allow: [], literalOrigins: [] },
    ...options,
  })

const { source, target } = truthful(objectstore)
const fetched = (entry: object, t = contextFor()): Promise<AgentResult> => source!.run(entry, t.context)
const put = (entry: object, t = contextFor()): Promise<AgentResult> => target!.run(entry, t.context)
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

  test.each(['reports', 's3://reports', 'x/', 'reports/a/../../other/k', 'reports/./k', '../reports/k'])(
    'is not what %s names',
    async ref => {
      expect(await failureOf(fetched({ name: 'x', ref }))).toMatchObject({ code: 'invalid_request', retryable: false })
      expect(vendor.seen).toEqual([])
    },
  )
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
    expect(data.items.map(({ file }) => file)).toEqual([
      'all/a',
      null,
      'all/c',
      expect.stringMatching(/^all\/folder\/_-/),
    ])
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
    [409, 'OperationAborted', 'conflict', false, ''],
    [301, 'PermanentRedirect', 'rejected', false, 'agents.objectstore.region'],
    [404, 'NoSuchKey', 'not_found', false, 'check ref'],
    [404, 'NoSuchBucket', 'not_found', false, 'check ref'],
    [410, 'Gone', 'gone', false, ''],
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

  test('an object that breaks off is continued where it stopped', async () => {
    const heads: string[] = []
    using half = await rawServer((socket, head) => {
      heads.push(head)
      const rest = Number(/^range: bytes=(\d+)-/im.exec(head)?.[1] ?? 0)
      const status = rest > 0 ? '206 Partial Content' : '200 OK'
      const length = `content-length: ${10 - rest}\r\netag: "e"\r\nlast-modified: Sat, 21 Nov 2026 09:00:00 GMT`
      socket.write(`HTTP/1.1 ${status}\r\n${length}\r\nconnection: close\r\n\r\n${'0123456789'.slice(rest, rest + 4)}`)
      setTimeout(() => socket.end(), 100)
    })
    const t = contextFor({ endpoint: half.url })
    expect((await fetched({ name: 'x', ref: 'reports/k' }, t)).data).toMatchObject({ size: 10 })
    expect(await textOf(t, 'x')).toBe('0123456789')
    expect(heads).toHaveLength(3)
    expect(heads[2]).toMatch(/^if-match: "e"/im)
  })

  test('an object that changes in the middle leaves no file', async () => {
    using half = await rawServer((socket, head) => {
      const changed = 'HTTP/1.1 412 Precondition Failed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'
      const first = 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\netag: "e"\r\nconnection: close\r\n\r\n0123'
      if (/^if-match:/im.test(head)) return void socket.end(changed)
      socket.write(first)
      setTimeout(() => socket.end(), 100)
    })
    const t = contextFor({ endpoint: half.url })
    expect((await failureOf(fetched({ name: 'x', ref: 'reports/k' }, t))).message).toContain('HTTP 412')
    expect(await Bun.file(join(t.stateDir, 'files/phase/x')).exists()).toBe(false)
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

describe('a session token', () => {
  test('of the settings is sent and signed; one of the environment is not', async () => {
    const seen: (string | null)[] = []
    vendor.fault = request => {
      seen.push(request.headers.get('x-amz-security-token'))
      return null
    }
    await store.write('k', 'v')
    seen.length = 0
    const kept = process.env.AWS_SESSION_TOKEN
    process.env.AWS_SESSION_TOKEN = 'canary-of-the-environment'
    await fetched({ name: 'x', ref: 'reports/k' }).finally(() => {
      if (kept === undefined) delete process.env.AWS_SESSION_TOKEN
      else process.env.AWS_SESSION_TOKEN = kept
    })
    await fetched({ name: 'x', ref: 'reports/k' }, contextFor({ session_token: 'own-session/token+' }))
    expect(seen).toEqual([null, 'own-session/token+'])
  })

  test('that has expired is named', async () => {
    vendor.fault = () => refusal(400, 'ExpiredToken', 'The provided token has expired')
    const failure = await failureOf(fetched({ name: 'x', ref: 'reports/k' }))
    expect(failure).toMatchObject({ code: 'unauthorized', retryable: false })
    expect(failure.hint).toContain('agents.objectstore.session_token')
  })
})

describe('where a bucket is', () => {
  const at = (settings: object, bucket = 'reports', learned?: string) =>
    bucketAt({ agent: 'objectstore', callName: 'objectstore', settings: { ...ACCESS, ...settings } }, bucket, learned)

  test.each([
    [{}, 'reports', 'https://reports.s3.eu-west-3.amazonaws.com/'],
    [{}, 'with.dots', 'https://s3.eu-west-3.amazonaws.com/with.dots/'],
    [{ addressing: 'path' }, 'reports', 'https://s3.eu-west-3.amazonaws.com/reports/'],
    [{ region: 'cn-north-1' }, 'reports', 'https://reports.s3.cn-north-1.amazonaws.com.cn/'],
    [{ region: 'eu-west-1a' }, 'reports', 'https://reports.s3.eu-west-1.amazonaws.com/'],
    [{ region: 'us-west-2-lax-1a' }, 'reports', 'https://reports.s3.us-west-2.amazonaws.com/'],
    [
      { region: undefined, endpoint: 'https://s3.ap-south-1.amazonaws.com' },
      'reports',
      'https://reports.s3.ap-south-1.amazonaws.com/',
    ],
    [
      { endpoint: 'https://reports.s3.eu-west-3.amazonaws.com/' },
      'reports',
      'https://reports.s3.eu-west-3.amazonaws.com/',
    ],
    [
      { endpoint: 'https://s3.eu-west-3.amazonaws.com/reports' },
      'reports',
      'https://reports.s3.eu-west-3.amazonaws.com/',
    ],
    [{ endpoint: 'https://minio.acme.test:9000' }, 'reports', 'https://minio.acme.test:9000/reports/'],
    [{ endpoint: 'https://minio.acme.test:9000/reports/' }, 'reports', 'https://minio.acme.test:9000/reports/'],
    [{ endpoint: 'https://db.acme.test/storage/v1/s3' }, 'reports', 'https://db.acme.test/storage/v1/s3/reports/'],
    [{ endpoint: 'https://r2.acme.test', addressing: 'virtual' }, 'reports', 'https://reports.r2.acme.test/'],
  ])('%j, %s: %s', (settings, bucket, address) => {
    expect(at(settings, bucket).address).toBe(address)
  })

  test.each(['https://other.s3.eu-west-3.amazonaws.com', 'https://s3.eu-west-3.amazonaws.com/other'])(
    'the endpoint %s of another bucket is answered with what to write',
    async endpoint => {
      const failure = await failureOf(fetched({ name: 'x', ref: 'reports/k' }, contextFor({ endpoint })))
      expect(failure).toMatchObject({ code: 'invalid_settings', sent: 'no' })
      expect(failure.message).toContain('endpoint belongs to the bucket other, not to reports')
      expect(failure.hint).toContain('endpoint to https://s3.eu-west-3.amazonaws.com, and name the bucket in `ref`')
    },
  )

  test.each([
    [{ region: 'Europe' }, { region: 'must be a region of AWS: write the region of the bucket, such as eu-west-1' }],
    [{ region: 'auto', endpoint: 'https://r2.acme.test' }, {}],
    [{ region: 'us-west-2-lax-1a' }, {}],
    [
      { endpoint: 'https://s3.eu-west-3.amazonaws.com/reports/2026' },
      { endpoint: 'must not have a path: write https://s3.eu-west-3.amazonaws.com, and the key in ref' },
    ],
    [
      { endpoint: 'https://eu-west-3.console.aws.amazon.com/s3/buckets/reports' },
      { endpoint: 'must not be a page of AWS: remove it, because AWS needs no endpoint' },
    ],
  ])('%j is judged, with what to write', (given, problems) => {
    const found = Object.entries(objectstore.check!(given)).filter(([, words]) => words)
    expect(Object.fromEntries(found)).toEqual(problems)
  })

  test('the bucket in the host name reaches the store that the guard judged', async () => {
    const seen: string[] = []
    vendor.fault = request => {
      seen.push(request.headers.get('host') ?? '')
      return new Response('x', { headers: { etag: '"e"' } })
    }
    const { port } = new URL(vendor.endpoint)
    const settings = { endpoint: `http://localhost:${port}`, addressing: 'virtual' }
    const asked: string[] = []
    const lookup = async (host: string) => {
      asked.push(host)
      return ['127.0.0.1']
    }
    const refused = contextFor(settings, { lookup })
    expect((await failureOf(fetched({ name: 'x', ref: 'reports/reports/k' }, refused))).message).toContain(
      'settings set network.allow reports.localhost',
    )
    const network = { allow: ['reports.localhost'], literalOrigins: [] }
    await fetched({ name: 'x', ref: 'reports/reports/k' }, contextFor(settings, { lookup, network }))
    expect([seen, new Set(asked)]).toEqual([[`reports.localhost:${port}`], new Set(['reports.localhost'])])
  })

  test.each([
    ['a header', () => new Response('', { status: 301, headers: { 'x-amz-bucket-region': 'eu-west-3' } })],
    ['the error', () => refusal(400, 'AuthorizationHeaderMalformed', 'wrong', '<Region>eu-west-3</Region>')],
  ])('a region that the store names in %s is used, and remembered', async (_, answer) => {
    await store.write('k', 'v')
    const seen: string[] = []
    vendor.before = request => {
      const region = /\/\d{8}\/([^/]+)\/s3\//.exec(request.headers.get('authorization') ?? '')?.[1] ?? ''
      seen.push(region)
      return region === 'eu-west-3' ? null : answer()
    }
    const wrong = { region: 'us-east-1' }
    expect((await fetched({ name: 'x', ref: 'reports/k' }, contextFor(wrong))).data).toMatchObject({ size: 1 })
    await fetched({ name: 'x', ref: 'reports/k' }, contextFor(wrong))
    expect(seen).toEqual(['us-east-1', 'eu-west-3', 'eu-west-3'])
  })

  test('a redirect to another address is not followed', async () => {
    using other = fakeVendor(() => 'x')
    vendor.fault = () => Response.redirect(`${other.url}/reports/k`, 307)
    const failure = await failureOf(fetched({ name: 'x', ref: 'reports/k' }))
    expect(failure).toMatchObject({ code: 'rejected' })
    expect(failure.hint).toContain('agents.objectstore.endpoint')
    expect(other.seen).toEqual([])
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

  test('one whose run is stopped leaves nothing behind', async () => {
    const t = contextFor()
    await large(t, 20)
    const stop = new AbortController()
    vendor.fault = (_, url) => {
      if (url.searchParams.get('partNumber') !== '2') return null
      stop.abort()
      return new Promise(() => {})
    }
    const stopped = contextFor({}, { workspace: t.workspace, signal: stop.signal })
    expect(await failureOf(put({ name: 'x', ref: 'reports/k', file: 'large' }, stopped))).toMatchObject({
      code: 'aborted',
    })
    expect(vendor.seen.some(line => line.startsWith('DELETE /reports/k?uploadId='))).toBe(true)
  })

  test('a completion that fails with 200 is an error', async () => {
    const t = contextFor()
    await large(t, 9)
    vendor.fault = (request, url) =>
      request.method === 'POST' && url.searchParams.has('uploadId') ? refusal(200, 'AccessDenied') : null
    expect(await failureOf(put({ name: 'x', ref: 'reports/k', file: 'large' }, t))).toMatchObject({ code: 'forbidden' })
    expect(await store.exists('k')).toBe(false)
  })

  // The agent in a process of its own, whose memory is measured.
  test.each(process.env.CADRE_SLOW_TESTS === '1' ? [64, 512] : [64])(
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
