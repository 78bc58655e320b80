// Files of runs in a bucket of an S3-compatible store. Only the hub has the keys of the bucket. Daemons and readers get
// URLs that it signs: each is for one object and a short time, and one for an upload also for one length and checksum.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html

import { AwsV4Signer } from 'aws4fetch'
import { CadreError, messageOf } from '../../error.ts'
import { attachment } from '../../http/download.ts'
import { HUB_PATIENCE_MS } from '../../wire/protocol.ts'
import { type ArtifactStore, type KeptFile, objectKeyOf } from '../core/artifact-store.ts'

/** An upload must begin within this time. */
export const UPLOAD_URL_SECONDS = 15 * 60
const DOWNLOAD_URL_SECONDS = 60
/** A daemon waits while the hub asks for a file: it should not take the silence of the store for that of the hub. */
const HEAD_MS = HUB_PATIENCE_MS / 2
const DELETE_MS = 20_000

export interface BucketAddress {
  bucket: string
  /** Empty, or a key without slashes at its ends. */
  prefix: string
  region: string
  /** The address of a store that is not AWS's. */
  endpoint: string | undefined
  keys: { accessKeyId: string; secretAccessKey: string; sessionToken?: string }
}

export function bucketStore(target: BucketAddress, most: number): ArtifactStore {
  const { bucket, prefix, region, keys } = target
  const address = addressOf(target)
  const urlOf = (file: KeptFile) => new URL(address + (prefix && `${prefix}/`) + objectKeyOf(file))

  /** The URL with which anybody may send one request. `headers` are part of the signature. */
  async function presigned(method: string, url: URL, seconds: number, headers: Record<string, string> = {}) {
    url.searchParams.set('X-Amz-Expires', String(seconds))
    const request = { method, url: url.href, headers, region, service: 's3', signQuery: true, allHeaders: true }
    return (await new AwsV4Signer({ ...request, ...keys }).sign()).url.href
  }

  /** The hub's own request. Throws `unavailable` when the store does not answer, or answers anything but `expected`. */
  async function ask(method: 'HEAD' | 'DELETE', file: KeptFile, expected: readonly number[], headers = {}) {
    const request = { method, url: urlOf(file).href, headers, region, service: 's3' }
    const signed = await new AwsV4Signer({ ...request, ...keys }).sign()
    let reply: Response
    try {
      const signal = AbortSignal.timeout(method === 'HEAD' ? HEAD_MS : DELETE_MS)
      reply = await fetch(signed.url, { method, headers: signed.headers, redirect: 'manual', signal })
    } catch (cause) {
      throw new CadreError('unavailable', `the store of CADRE_ARTIFACTS does not answer: ${messageOf(cause)}`, {
        cause,
      })
    }
    await reply.body?.cancel()
    if (expected.includes(reply.status)) return reply
    const needs = 's3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket'
    throw new CadreError(
      'unavailable',
      `the store of CADRE_ARTIFACTS answered ${reply.status} to ${method}: check AWS_REGION, and that the key of ` +
        `AWS_ACCESS_KEY_ID has the permissions ${needs} for ${bucket}`,
    )
  }

  return {
    most,
    async has(file) {
      const reply = await ask('HEAD', file, [200, 404], { 'x-amz-checksum-mode': 'ENABLED' })
      // Stores that do not know checksums do not send one. They have checked the length only.
      const checksum = reply.headers.get('x-amz-checksum-sha256')
      const whole = Number(reply.headers.get('content-length')) === file.bytes
      return reply.status === 200 && whole && (checksum === null || checksum === base64Of(file.sha256))
    },
    async upload(file) {
      const headers = {
        'content-length': String(file.bytes),
        'content-type': 'application/octet-stream',
        'x-amz-checksum-sha256': base64Of(file.sha256),
      }
      return { url: await presigned('PUT', urlOf(file), UPLOAD_URL_SECONDS, headers), headers }
    },
    receive: null,
    async download(file, name) {
      const url = urlOf(file)
      url.searchParams.set('response-content-disposition', attachment(name))
      url.searchParams.set('response-content-type', 'application/octet-stream')
      url.searchParams.set('response-cache-control', 'no-store')
      return new Response(null, {
        status: 302,
        headers: {
          location: await presigned('GET', url, DOWNLOAD_URL_SECONDS),
          'cache-control': 'no-store',
          'referrer-policy': 'no-referrer',
          'x-content-type-options': 'nosniff',
        },
      })
    },
    async remove(file) {
      await ask('DELETE', file, [200, 204, 404])
    },
    async tidy() {},
  }
}

/** The address of the bucket, with a slash at its end. A certificate of AWS does not cover names with a dot. */
function addressOf({ bucket, region, endpoint }: BucketAddress): string {
  if (endpoint !== undefined) return `${endpoint.replace(/\/+$/, '')}/${bucket}/`
  const host = `s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
  return bucket.includes('.') ? `https://${host}/${bucket}/` : `https://${bucket}.${host}/`
}

const base64Of = (hex: string): string => Buffer.from(hex, 'hex').toString('base64')
