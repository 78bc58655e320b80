// objectstore: downloads objects from S3 and compatible stores, uploads files to them, lists and deletes them, with requests
// that aws4fetch signs.
//
//   settings:       access_key_id, secret_access_key, session_token?, region (default us-east-1), endpoint (default AWS),
//                   addressing (path or virtual; default virtual on AWS, path elsewhere)
//   sources:        [{ name, ref, limit? }]   ref: s3://bucket/key, bucket/key, or a prefix that ends with /
//   target_entries: [{ name, ref, file }]     ref: an object, or a prefix to put the file under, with its own name
//   list    sources:        [{ name, ref, limit? }]    ref: what the keys begin with, as s3://bucket/nightly/db-
//   delete  target_entries: [{ name, ref or refs }]    an object, or a list of objects; no prefix and no pattern
//
// An object is written to files/<phase>/<name>; an object that is stored with gzip is unpacked. Objects under a prefix,
// at most `limit`, are written to files/<phase>/<name>/<key after the prefix>. `data` has etag, size and last_modified
// for an object, and items, total and truncated for a prefix. Uploads above 8 MiB are multipart, and files of any size
// are streamed.
//
// `list` downloads nothing: its file and `data.items` have key, ref, bytes, modified and etag, in the order of the
// store: AWS sorts them by key, except in directory buckets.
// `delete` is done where an object is not there. In a bucket with versions it leaves the older ones in place.
//
// The key needs s3:GetObject, s3:ListBucket for a prefix and `list`, s3:DeleteObject to delete, and s3:PutObject and
// s3:AbortMultipartUpload to write. A bucket in another region is reached there.
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
  writeListing,
} from 'cadre'
import {
  bucketAt,
  bucketIn,
  DATA_BYTES,
  download,
  filePath,
  LIMIT,
  nullable,
  type ObjectAddress,
  objectsPage,
  remove,
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
  file: filePath('The path of the file to upload, in the run or the workspace.'),
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

const Listing = entryOf({
  ref: Type.String({
    minLength: 1,
    description: 'What the keys begin with: s3://bucket/ for all, s3://bucket/nightly/db- for some.',
  }),
  limit: Limit,
})
const Found = listingOf({
  key: Type.String({ description: 'The key of the object.' }),
  ref: Type.String({ description: 'The object as entries name it: s3://bucket/key.' }),
  bytes: Type.Integer({ description: 'How many bytes it has.' }),
  modified: stored.last_modified,
  etag: stored.etag,
})
const Deletion = entryOf(
  {
    ref: Type.Optional(Type.String({ minLength: 1, description: 'The object to delete, as s3://bucket/key.' })),
    refs: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        maxItems: 10_000,
        description: 'The objects to delete, each as s3://bucket/key. The list may be empty.',
      }),
    ),
  },
  { oneOf: [{ required: ['ref'] }, { required: ['refs'] }] },
)

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Downloads, uploads, lists and deletes objects of S3 and compatible stores.',
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
  actions: {
    list: {
      direction: 'source',
      description: 'Lists the objects whose keys begin with a prefix, and downloads none.',
      effect: 'read',
      example: { name: 'backups.json', ref: 's3://backups/nightly/', limit: 1_000 },
      entry: Listing,
      data: Found,
      run: list,
    },
    delete: {
      direction: 'target',
      description: 'Deletes objects that are named one by one. What is not there is done.',
      effect: 'idempotent',
      example: { name: 'old', refs: ['s3://backups/nightly/2026-11-01.sql.gz'] },
      entry: Deletion,
      data: Type.Object({ total: Type.Integer({ description: 'How many objects were named, and are gone.' }) }),
      run: deleteObjects,
    },
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
  const { objects, more } = await objectsBelow(address, limit, context)
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

/** The objects below a prefix in the order of their keys. */
async function objectsBelow(address: ObjectAddress, limit: number, context: Context) {
  const objects: StoredObject[] = []
  for await (const { items } of pagesOf((token?: string) => objectsPage(context, address, token))) {
    for (const object of items) {
      if (isFolder(object)) continue
      if (objects.length === limit) return { objects, more: true }
      objects.push(object)
    }
  }
  return { objects, more: false }
}

/** Whether it is one of the empty objects that web consoles create for folders. */
function isFolder({ key, size }: StoredObject): boolean {
  return key.endsWith('/') && size === 0
}

async function list({ name, ref, limit }: Type.Static<typeof Listing>, context: Context) {
  const address = addressOf(ref, context)
  const about = ({ key, size, etag, last_modified }: StoredObject) => {
    return { key, ref: urlOf({ ...address, key }), bytes: size, modified: last_modified, etag }
  }
  const data = await writeListing(context, {
    name,
    limit,
    async page(token?: string) {
      const { items, next } = await objectsPage(context, address, token)
      return { items: items.filter(object => !isFolder(object)).map(about), next }
    },
    brief: item => item,
  })
  return { text: `${urlOf(address)}: ${data.total} objects${data.truncated ? ', and there are more' : ''}`, data }
}

async function deleteObjects({ ref, refs = [] }: Type.Static<typeof Deletion>, context: Context) {
  const named = [...new Set(ref === undefined ? refs : [ref])]
  // All of them are judged before the first is deleted.
  await remove(
    context,
    named.map(each => objectAt(each, context)),
  )
  const total = named.length
  return { text: total === 1 ? `${named[0]}: deleted` : `${total} objects deleted`, data: { total } }
}

/** One object. Throws an AgentError for what stands for several, which nobody has looked at. */
function objectAt(ref: string, context: Context): ObjectAddress {
  const address = addressOf(ref, context)
  const isPattern = address.key.includes('*')
  if (!isPattern && !isPrefix(address.key)) return address
  const what = isPattern ? 'a pattern' : 'a prefix'
  throw new AgentError(`[${context.callName}] ${JSON.stringify(ref)} is ${what}, and \`delete\` takes objects only`, {
    code: 'invalid_request',
    hint: 'use the action `list` first, choose among its items, and give the `ref` of each in `refs`',
    sent: 'no',
  })
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
