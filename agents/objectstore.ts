// objectstore: downloads objects from S3 and compatible stores, and uploads files to them, with requests that aws4fetch signs.
//
//   settings:       access_key_id, secret_access_key, session_token?, region (default us-east-1), endpoint (default AWS),
//                   addressing (path or virtual; default virtual on AWS, path elsewhere)
//   sources:        [{ name, ref, limit? }]   ref: s3://bucket/key, bucket/key, or a prefix that ends with /
//   target_entries: [{ name, ref, file }]     ref: an object, or a prefix to put the file under, with its own name
//
// An object is written to files/<phase>/<name>; an object that is stored with gzip is unpacked. Objects under a prefix,
// at most `limit`, are written to files/<phase>/<name>/<key after the prefix>. `data` has etag, size and last_modified
// for an object, and items, total and truncated for a prefix. Uploads above 8 MiB are multipart, and files of any size
// are streamed.
//
// The key needs s3:GetObject, s3:ListBucket for a prefix, and s3:PutObject and s3:AbortMultipartUpload to write. A bucket
// in another region is reached there.
//
// What a repetition after a lost reply meets: an object is written only if it is still what it was before (If-Match,
// If-None-Match), and has a mark of the entry and the content in its metadata. So the store refuses the repetition, or
// it is not sent, and there is no second version. A store that does not know conditions gets the same object again.
//
// https://docs.aws.amazon.com/AmazonS3/latest/API

import { basename } from 'node:path'
import {
  type AgentContext,
  AgentError,
  agent,
  entryOf,
  type Json,
  Limit,
  listingOf,
  pagesOf,
  safeName,
  secret,
  Type,
} from 'cadre'
import {
  bucketAt,
  bucketIn,
  DATA_BYTES,
  download,
  LIMIT,
  nullable,
  type ObjectAddress,
  objectsPage,
  type StoredObject,
  storeAddresses,
  upload,
  urlOf,
  whyNoStore,
} from 'cadre/vendors'

/** Number of objects of a prefix that are downloaded concurrently. */
const ABREAST = 8

const Settings = Type.Object({
  access_key_id: secret({ description: 'The id of the access key.' }),
  secret_access_key: secret({ description: 'The secret of the access key.' }),
  session_token: Type.Optional(secret({ description: 'The session token that belongs to a temporary access key.' })),
  endpoint: Type.Optional(
    Type.String({
      pattern: '^https?://[^/]',
      'x-expected': 'an address such as https://storage.acme.com',
      description: 'The address of a store other than AWS, without a bucket: https://storage.acme.com.',
    }),
  ),
  region: Type.Optional(
    Type.String({
      minLength: 1,
      description: 'The region of the buckets, by default us-east-1. A bucket elsewhere is found by itself.',
    }),
  ),
  addressing: Type.Optional(
    Type.Enum(['path', 'virtual'], {
      description: 'Where an address names the bucket: first in the path or, with virtual, first in the host name.',
    }),
  ),
})
type Context = AgentContext<Type.Static<typeof Settings>>

const Source = entryOf({
  ref: Type.String({
    minLength: 1,
    description: 'The object to download, as s3://bucket/key; or a prefix with a slash at its end.',
  }),
  limit: Limit,
})
type Source = Type.Static<typeof Source>
const Target = entryOf({
  ref: Type.String({
    minLength: 1,
    description: 'The object to write, as s3://bucket/key; or a prefix with a slash at its end.',
  }),
  file: Type.String({ minLength: 1, description: 'The path of the file to upload, in the run or the workspace.' }),
})
const stored = {
  etag: nullable(Type.String(), { description: 'The entity tag of the object.' }),
  size: Type.Integer({ description: 'How many bytes it has.' }),
  last_modified: nullable(Type.String(), { description: 'When it was written.' }),
}
const Prefix = listingOf({
  key: Type.String({ description: 'The key of the object.' }),
  ...stored,
  file: nullable(Type.String(), {
    description: 'Its file in the folder of the phase; null if no path can have its key.',
  }),
})
const Read = Type.Union([Type.Object(stored), Prefix], {
  description: 'An object has `etag` and what follows it, and a prefix has `items`.',
})

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Downloads objects from S3 and compatible stores, and uploads files to them.',
  settings: Settings,
  check: whyNoStore,
  addresses: storeAddresses,
  /**
   * Usually no bucket is configured, so one with a random name is requested. The reply that it does not exist proves
   * that the key was accepted.
   */
  async doctor(context) {
    const bucket = bucketIn(context.settings.endpoint) ?? `cadre-doctor-${crypto.randomUUID().slice(0, 8)}`
    try {
      await objectsPage(context, { bucket, key: '' })
    } catch (error) {
      if (!(error instanceof AgentError) || !['not_found', 'forbidden'].includes(error.code)) throw error
    }
    const { region } = bucketAt(context, bucket)
    const text = `${context.settings.endpoint ?? 'AWS'}, ${region}: the key is valid; its permissions depend on the bucket`
    return { who: null, missing: [], text }
  },
  source: {
    description: 'Downloads an object, or every object below a prefix.',
    effect: 'read',
    example: { name: 'backup.gz', ref: 's3://backups/nightly/db.gz' },
    entry: Source,
    data: Read,
    async run(entry, context) {
      const address = addressOf(entry.ref, context)
      return (isPrefix(address.key) ? fetchPrefix : fetchObject)(address, entry, context)
    },
  },
  target: {
    description: 'Uploads a file as an object.',
    effect: 'idempotent',
    example: { name: 'backup', ref: 's3://backups/nightly/', file: 'files/dump/db.gz' },
    entry: Target,
    data: Type.Object(stored),
    async run({ ref, file: path }, context) {
      const file = await context.read(path)
      const given = addressOf(ref, context)
      const address = isPrefix(given.key) ? { ...given, key: given.key + basename(path) } : given
      const data = await upload(context, address, file)
      const url = urlOf(address)
      return { text: `${url}: ${data.size} bytes written`, data, external: { url } }
    },
  },
})

function addressOf(ref: string, { callName }: Context): ObjectAddress {
  const [, bucket, key] = /^(?:s3:\/\/)?([a-z0-9][a-z0-9._-]{1,61}[a-z0-9])\/(.*)$/is.exec(ref) ?? []
  if (bucket !== undefined && key !== undefined && isReachable(key)) return { bucket, key }
  throw new AgentError(`[${callName}] ${JSON.stringify(ref)} must name an object or a prefix`, {
    code: 'invalid_request',
    hint: 'use s3://bucket/key, or s3://bucket/prefix/ for everything below it, without `.` or `..` between slashes',
  })
}

function isPrefix(key: string): boolean {
  return key === '' || key.endsWith('/')
}

/** Whether the key can be requested: the parts `.` and `..` of a path would lead to another key. */
function isReachable(key: string): boolean {
  return !/(^|\/)\.{1,2}(\/|$)/.test(key)
}

async function fetchObject(address: ObjectAddress, { name }: Source, context: Context) {
  const { info, body } = await download(context, address)
  await context.write(name, body ?? '')
  return { text: `${urlOf(address)}: ${info.size} bytes`, data: info }
}

async function fetchPrefix(address: ObjectAddress, { name, limit = LIMIT }: Source, context: Context) {
  const { objects, more } = await list(address, limit, context)
  const nameOf = fileNames(objects.map(({ key }) => key.slice(address.key.length)))
  const items: Json[] = []
  let bytes = 0
  for (let at = 0; at < objects.length; at += ABREAST) {
    const fetched = objects.slice(at, at + ABREAST).map(async ({ key, ...about }) => {
      const file = isReachable(key) ? `${name}/${nameOf(key.slice(address.key.length))}` : null
      if (file) await context.write(file, (await download(context, { ...address, key })).body ?? '')
      else context.log(`not downloaded: a path cannot contain the key ${JSON.stringify(key)}`)
      return { key, ...about, file }
    })
    for (const item of await Promise.all(fetched)) {
      bytes += Buffer.byteLength(JSON.stringify(item))
      if (bytes <= DATA_BYTES) items.push(item)
    }
  }
  const total = objects.length
  return {
    text: `${urlOf(address)}: ${total} objects${more ? `, and there are more` : ''}`,
    data: { items, total, truncated: more || items.length < total },
  }
}

/**
 * The objects below a prefix in the order of their keys, without the empty objects that web consoles create for
 * folders.
 */
async function list(address: ObjectAddress, limit: number, context: Context) {
  const objects: StoredObject[] = []
  for await (const { items } of pagesOf((token?: string) => objectsPage(context, address, token))) {
    for (const object of items) {
      if (object.key.endsWith('/') && object.size === 0) continue
      if (objects.length === limit) return { objects, more: true }
      objects.push(object)
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
