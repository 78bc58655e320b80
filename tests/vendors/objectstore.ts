// An object store that is not ours: s3rver keeps the objects, and in front of it every signature is checked with aws4,
// in the header or in the URL, and every checksum, which s3rver does not do itself. Faults are answered in its place.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sign } from 'aws4'
import S3rver from 's3rver'

export const ACCESS = { access_key_id: 'S3RVER', secret_access_key: 'canary-secret-of-the-store', region: 'eu-west-3' }
export const BUCKET = 'reports'

type Fault = (request: Request, url: URL) => Response | null | Promise<Response | null>

export interface ObjectVendor {
  endpoint: string
  /** Method and path with query, as they came. */
  seen: string[]
  /** The paths of the objects that were written, once for each version. */
  written: string[]
  /** Asked before each request whose signature is right; null lets it pass. */
  fault: Fault
  /** Asked before the signature is checked. */
  before: Fault
  [Symbol.asyncDispose](): Promise<void>
}

export const refusal = (status: number, code: string, message = code, more = '') =>
  new Response(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message>${more}</Error>`, {
    status,
    headers: { 'content-type': 'application/xml' },
  })

export async function objectVendor(): Promise<ObjectVendor> {
  const directory = mkdtempSync(join(tmpdir(), 'cadre-store-'))
  const store = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory,
    configureBuckets: [{ name: BUCKET, configs: [] }],
  })
  const { port } = await store.run()
  /** What S3 keeps with an object that was sent with one. */
  const checksums = new Map<string, string>()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 60,
    maxRequestBodySize: 2 ** 33,
    async fetch(request) {
      const url = new URL(request.url)
      const target = request.url.slice(url.origin.length)
      vendor.seen.push(`${request.method} ${target}`)
      const early = await vendor.before(request, url)
      if (early) return early
      if (url.searchParams.has('X-Amz-Signature')) {
        if (isOver(url)) return refusal(403, 'AccessDenied', 'Request has expired')
        if (!isPresigned(request, url)) return refusal(403, 'SignatureDoesNotMatch', 'The signature does not match')
      } else if (!isSigned(request, target)) {
        return refusal(403, 'SignatureDoesNotMatch', 'The signature does not match')
      }
      // s3rver stumbles over a bucket that it has not.
      const isOurs = url.pathname === `/${BUCKET}` || url.pathname.startsWith(`/${BUCKET}/`)
      const fault = isOurs ? await vendor.fault(request, url) : refusal(404, 'NoSuchBucket')
      if (!fault && !(await isStill(request, url, port))) return refusal(412, 'PreconditionFailed')
      if (fault) return request.method === 'HEAD' ? new Response(null, { status: fault.status }) : fault
      const headers = new Headers(request.headers)
      for (const name of ['host', 'connection', 'if-match', 'if-none-match']) {
        if (name === 'if-match' && request.method === 'GET') continue
        headers.delete(name)
      }
      const checksum = request.headers.get('x-amz-checksum-sha256')
      const body = checksum === null ? request.body : await request.bytes()
      if (
        checksum !== null &&
        new Bun.CryptoHasher('sha256').update(body as Uint8Array).digest('base64') !== checksum
      ) {
        return refusal(400, 'BadDigest', 'The SHA256 you specified did not match the calculated checksum')
      }
      if (checksum !== null) checksums.set(url.pathname, checksum)
      const { path, overrides } = plain(url)
      const reply = await fetch(`http://127.0.0.1:${port}${path}`, {
        method: request.method,
        headers,
        body,
        redirect: 'manual',
        decompress: false,
        // Its server closes once nobody is connected.
        signal: request.signal,
        keepalive: false,
      })
      const isWhole = request.method === 'PUT' ? !url.searchParams.has('partNumber') : url.searchParams.has('uploadId')
      if ((request.method === 'PUT' || request.method === 'POST') && isWhole && reply.ok)
        vendor.written.push(url.pathname)
      for (const [name, value] of overrides) reply.headers.set(name, value)
      const known = request.headers.get('x-amz-checksum-mode') === 'ENABLED' && checksums.get(url.pathname)
      if (request.method === 'HEAD' && known) reply.headers.set('x-amz-checksum-sha256', known)
      return reply
    },
  })
  const vendor: ObjectVendor = {
    endpoint: `http://127.0.0.1:${server.port}`,
    seen: [],
    written: [],
    fault: () => null,
    before: () => null,
    async [Symbol.asyncDispose]() {
      await server.stop(true)
      await store.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
  return vendor
}

/** Whether the object is what a write wants it to be. s3rver knows no conditions of writes. */
async function isStill({ method, headers }: Request, url: URL, port: number): Promise<boolean> {
  const [match, none] = [headers.get('if-match'), headers.get('if-none-match')]
  if ((method !== 'PUT' && method !== 'POST') || (match === null && none === null)) return true
  const reply = await fetch(`http://127.0.0.1:${port}${url.pathname}`, { method: 'HEAD', keepalive: false })
  const etag = reply.ok ? reply.headers.get('etag') : null
  return none === '*' ? etag === null : etag === match
}

/** Whether the request carries the signature (SigV4) that aws4 computes for it. */
function isSigned(request: Request, path: string): boolean {
  const given = request.headers.get('authorization') ?? ''
  const [, signed = ''] = /SignedHeaders=([^,]+)/.exec(given) ?? []
  const headers = Object.fromEntries(signed.split(';').map(name => [name, request.headers.get(name) ?? '']))
  const expected = sign(
    { service: 's3', region: ACCESS.region, method: request.method, path, headers: { ...headers } },
    { accessKeyId: ACCESS.access_key_id, secretAccessKey: ACCESS.secret_access_key },
  )
  const signature = (text: unknown) => /Signature=([0-9a-f]{64})/.exec(String(text))?.[1]
  return signature(given) !== undefined && signature(given) === signature(expected.headers?.Authorization)
}

/** Whether the time is over for which the URL was signed. */
function isOver({ searchParams }: URL): boolean {
  const [, ...parts] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(searchParams.get('X-Amz-Date') ?? '') ?? []
  const [year, month, day, hour, minute, second] = parts.map(Number) as [number, number, number, number, number, number]
  const begun = Date.UTC(year, month - 1, day, hour, minute, second)
  return !(Date.now() < begun + Number(searchParams.get('X-Amz-Expires')) * 1_000)
}

/** Whether the URL carries the signature (SigV4) that aws4 computes for it and for the headers that it names. */
function isPresigned(request: Request, url: URL): boolean {
  const given = url.searchParams.get('X-Amz-Signature')
  const unsigned = new URL(url)
  unsigned.searchParams.delete('X-Amz-Signature')
  const names = url.searchParams.get('X-Amz-SignedHeaders')?.split(';') ?? []
  const headers = Object.fromEntries(names.map(name => [name, request.headers.get(name) ?? '']))
  const path = unsigned.pathname + unsigned.search
  const expected = sign(
    { service: 's3', region: ACCESS.region, method: request.method, path, headers: { ...headers }, signQuery: true },
    { accessKeyId: ACCESS.access_key_id, secretAccessKey: ACCESS.secret_access_key },
  )
  return given !== null && new URLSearchParams(expected.path?.split('?')[1]).get('X-Amz-Signature') === given
}

/**
 * The path and query without what signs them, because s3rver knows only the keys of AWS's examples, and the headers that
 * the reply gets as the query asks, which s3rver does for those only.
 */
function plain(url: URL) {
  const rest = new URL(url)
  const overrides: [string, string][] = []
  for (const [name, value] of url.searchParams) {
    const isOverride = name.startsWith('response-')
    if (isOverride) overrides.push([name.slice('response-'.length), value])
    if (isOverride || name.startsWith('X-Amz-')) rest.searchParams.delete(name)
  }
  const isPlain = !url.searchParams.has('X-Amz-Signature')
  return { path: isPlain ? url.pathname + url.search : rest.pathname + rest.search, overrides }
}
