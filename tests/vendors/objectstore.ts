// An object store that is not ours: s3rver keeps the objects, and in front of it every signature is checked with aws4,
// which s3rver does not do itself. Faults are answered in its place.

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
      if (!isSigned(request, target)) return refusal(403, 'SignatureDoesNotMatch', 'The signature does not match')
      // s3rver stumbles over a bucket that it has not.
      const known = url.pathname === `/${BUCKET}` || url.pathname.startsWith(`/${BUCKET}/`)
      const fault = known ? await vendor.fault(request, url) : refusal(404, 'NoSuchBucket')
      if (fault) return request.method === 'HEAD' ? new Response(null, { status: fault.status }) : fault
      const headers = new Headers(request.headers)
      for (const name of ['host', 'connection']) headers.delete(name)
      return fetch(`http://127.0.0.1:${port}${target}`, {
        method: request.method,
        headers,
        body: request.body,
        redirect: 'manual',
        decompress: false,
        // Its server closes once nobody is connected.
        signal: request.signal,
        keepalive: false,
      })
    },
  })
  const vendor: ObjectVendor = {
    endpoint: `http://127.0.0.1:${server.port}`,
    seen: [],
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
