// objectstore: downloads objects from S3 and compatible stores, and uploads files to them, with Bun's S3 client.
//
//   settings:       access_key_id, secret_access_key, session_token?, region (default us-east-1), endpoint (default AWS)
//   sources:        [{ name, ref, limit? }]   ref: s3://bucket/key, bucket/key, or a prefix that ends with /
//   target_entries: [{ name, ref, file }]     ref: an object, or a prefix to put the file under, with its own name
//
// An object is written to files/<phase>/<name>; an object that is stored with gzip is unpacked. Objects under a prefix,
// at most `limit`, are written to files/<phase>/<name>/<key after the prefix>. `data` has etag, size and last_modified
// for an object, and items, total and truncated for a prefix. Uploads above 8 MiB are multipart, and files of any size
// are streamed.
//
// The key needs s3:GetObject, s3:ListBucket for a prefix, and s3:PutObject and s3:AbortMultipartUpload to write. Bun's
// client follows redirects itself, and sends no signature to another host.
//
// https://docs.aws.amazon.com/AmazonS3/latest/API  https://bun.com/docs/runtime/s3

import { basename } from 'node:path'
import {
  type AgentContext,
  AgentError,
  agent,
  BaseUrl,
  entryOf,
  type Json,
  Limit,
  pagesOf,
  safeName,
  secret,
  Type,
  withRetries,
} from 'cadre'
import { DATA_BYTES, LIMIT, storeClient, storeError, withDeadline, withSilenceLimit } from 'cadre/vendors'

const PART = 8 * 1024 * 1024
const MOST_PARTS = 10_000
const PAGE = 1_000
/** Number of objects of a prefix that are downloaded concurrently. */
const ABREAST = 8
/** Maximum number of milliseconds to wait for a reply, or for the next byte of a reply. */
const SILENCE = 60_000

const Settings = Type.Object({
  access_key_id: secret(),
  secret_access_key: secret(),
  session_token: Type.Optional(secret()),
  endpoint: BaseUrl,
  region: Type.Optional(Type.String({ minLength: 1 })),
})
type Context = AgentContext<Type.Static<typeof Settings>>

const Ref = Type.String({ minLength: 1 })
const Source = entryOf({ ref: Ref, limit: Limit })
type Source = Type.Static<typeof Source>
const Target = entryOf({ ref: Ref, file: Type.String({ minLength: 1 }) })

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Downloads objects from S3 and compatible stores, and uploads files to them.',
  settings: Settings,
  /**
   * No bucket is configured, so a bucket with a random name is requested. The reply that it does not exist proves that
   * the key was accepted.
   */
  async doctor(context) {
    const place = { bucket: `cadre-doctor-${crypto.randomUUID().slice(0, 8)}`, key: '' }
    try {
      await list(await open(place.bucket, context), place, 1, context)
    } catch (error) {
      if (!(error instanceof AgentError) || !['not_found', 'forbidden'].includes(error.code)) throw error
    }
    const { endpoint = 'AWS', region = 'us-east-1' } = context.settings
    const text = `${endpoint}, ${region}: the key is valid; its permissions depend on the bucket`
    return { who: null, missing: [], text }
  },
  source: {
    effect: 'read',
    entry: Source,
    async run(entry, context) {
      const place = placeOf(entry.ref, context)
      const client = await open(place.bucket, context)
      return (isPrefix(place.key) ? fetchPrefix : fetchObject)(client, place, entry, context)
    },
  },
  target: {
    effect: 'idempotent',
    entry: Target,
    async run({ ref, file: path }, context) {
      const file = await context.read(path)
      const given = placeOf(ref, context)
      const place = isPrefix(given.key) ? { ...given, key: given.key + basename(path) } : given
      return upload(await open(place.bucket, context), place, file, context)
    },
  },
})

type Place = { bucket: string; key: string }

function placeOf(ref: string, { place }: Context): Place {
  const [, bucket, key] = /^(?:s3:\/\/)?([a-z0-9][a-z0-9._-]{1,61}[a-z0-9])\/(.*)$/is.exec(ref) ?? []
  if (bucket !== undefined && key !== undefined && (isPrefix(key) || isReachable(key))) return { bucket, key }
  throw new AgentError(`[${place}] ${JSON.stringify(ref)} must name an object or a prefix`, {
    code: 'invalid_request',
    hint: 'use s3://bucket/key, or s3://bucket/prefix/ for everything below it, without `.` or `..` between slashes and without a backslash',
  })
}

function isPrefix(key: string): boolean {
  return key === '' || key.endsWith('/')
}

/**
 * Whether Bun's client can request the key. For the refused keys it would request another key, because it drops a
 * scheme or a slash, or would leave the bucket.
 */
function isReachable(key: string): boolean {
  return !/^\/|\/$|\\|(^|\/)\.{1,2}(\/|$)|^[a-z][a-z0-9+.-]*:\/\//i.test(key)
}

async function open(bucket: string, { settings, vet }: Context): Promise<Bun.S3Client> {
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey, region = 'us-east-1' } = settings
  const endpoint = settings.endpoint ?? `https://s3.${region}.amazonaws.com`
  await vet(endpoint)
  return storeClient({ accessKeyId, secretAccessKey, sessionToken: settings.session_token, endpoint, region, bucket })
}

async function fetchObject(client: Bun.S3Client, place: Place, { name }: Source, context: Context) {
  const found = await describe(client, place, context)
  await download(client, place, name, context)
  return { text: `${urlOf(place)}: ${found.size} bytes`, data: found }
}

async function upload(client: Bun.S3Client, place: Place, file: Bun.BunFile, context: Context) {
  const options = { type: file.type, partSize: Math.max(PART, Math.ceil(file.size / MOST_PARTS)), queueSize: 2 }
  await trying(context, place, 's3:PutObject', async () => {
    // Bun aborts the multipart upload when the stream fails, so a stopped run leaves no partial object.
    const body =
      file.size <= PART ? await file.bytes() : new Response(withSilenceLimit(context, file.stream(), SILENCE))
    return withDeadline(context, client.write(place.key, body, options))
  })
  const data = await describe(client, place, context)
  return { text: `${urlOf(place)}: ${data.size} bytes written`, data, external: { url: urlOf(place) } }
}

async function fetchPrefix(client: Bun.S3Client, place: Place, { name, limit = LIMIT }: Source, context: Context) {
  const { objects, more } = await list(client, place, limit, context)
  const nameOf = fileNames(objects.map(({ key }) => key.slice(place.key.length)))
  const items: Json[] = []
  let bytes = 0
  for (let at = 0; at < objects.length; at += ABREAST) {
    const fetched = objects.slice(at, at + ABREAST).map(async ({ key, ...about }) => {
      const file = isReachable(key) ? `${name}/${nameOf(key.slice(place.key.length))}` : null
      if (file) await download(client, { ...place, key }, file, context)
      else context.log(`not downloaded: Bun's client cannot request the key ${JSON.stringify(key)}`)
      return { key, ...about, file }
    })
    for (const item of await Promise.all(fetched)) {
      bytes += Buffer.byteLength(JSON.stringify(item))
      if (bytes <= DATA_BYTES) items.push(item)
    }
  }
  const total = objects.length
  return {
    text: `${urlOf(place)}: ${total} objects${more ? `, and there are more` : ''}`,
    data: { items, total, truncated: more || items.length < total },
  }
}

/**
 * The objects below a prefix in the order of their keys, without the empty objects that web consoles create for
 * folders.
 */
async function list(client: Bun.S3Client, place: Place, limit: number, context: Context) {
  const objects: { key: string; size: number; etag: string | null; last_modified: string | null }[] = []
  const pages = pagesOf(async (continuationToken?: string) => {
    const request = { prefix: place.key, maxKeys: PAGE, ...(continuationToken && { continuationToken }) }
    const reply = await trying(context, place, 's3:ListBucket', () =>
      withDeadline(context, client.list(request), SILENCE),
    )
    return { items: reply.contents ?? [], next: reply.isTruncated ? reply.nextContinuationToken : null }
  })
  for await (const { items } of pages) {
    for (const { key, size = 0, eTag = null, lastModified = null } of items) {
      if (key.endsWith('/') && size === 0) continue
      if (objects.length === limit) return { objects, more: true }
      objects.push({ key, size, etag: eTag, last_modified: lastModified })
    }
  }
  return { objects, more: false }
}

/**
 * Safe file names for keys. If a key is also the folder of another key, which is impossible on a disk, the file gets a
 * mark in its name.
 */
function fileNames(keys: string[]): (key: string) => string {
  const partsOf = (key: string) => key.split('/').map(safeName)
  const folders = new Set(keys.flatMap(key => partsOf(key).map((_, depth, parts) => parts.slice(0, depth).join('/'))))
  return key => {
    const name = partsOf(key).join('/')
    return folders.has(name) ? [...partsOf(key).slice(0, -1), safeName(`${key.split('/').at(-1)}/`)].join('/') : name
  }
}

async function download(client: Bun.S3Client, place: Place, name: string, context: Context): Promise<void> {
  await trying(context, place, 's3:GetObject', () =>
    context.write(name, withSilenceLimit(context, client.file(place.key).stream(), SILENCE)),
  )
}

async function describe(client: Bun.S3Client, place: Place, context: Context) {
  const head = async () => {
    try {
      return await client.stat(place.key)
    } catch (error) {
      // The reply to HEAD has no body and therefore no error code, so a GET is sent to learn it.
      if ((error as { code?: string }).code === 'UnknownError') await client.file(place.key).slice(0, 1).bytes()
      throw error
    }
  }
  const { etag, size, lastModified } = await trying(context, place, 's3:GetObject', () =>
    withDeadline(context, head(), SILENCE),
  )
  return { etag, size, last_modified: Number.isNaN(lastModified.getTime()) ? null : lastModified.toISOString() }
}

async function trying<T>(context: Context, place: Place, permission: string, work: () => Promise<T>): Promise<T> {
  return withRetries(context, async () => {
    try {
      return await work()
    } catch (error) {
      throw storeError(context, error, urlOf(place), permission)
    }
  })
}

function urlOf({ bucket, key }: Place): string {
  return `s3://${bucket}/${key}`
}
