// filestore: downloads files from Google Drive, lists its folders, and uploads files into folders.
//
//   settings: credentials_file (~/key.json), auth_mode? (service_account; or oauth, a file with client_id, client_secret
//             and refresh_token), subject? (the person of the domain in whose name a service account acts),
//             base_url? (instead of https://www.googleapis.com)
//   sources:        [{ name, ref: file or folder id | folder/<id>, export?, limit? }]
//   target_entries: [{ name, ref: folder id, file, title?, mode? }]   title: the name in Drive, else that of the file
//
// Google's own documents are exported: Docs and Slides as text, Sheets as CSV, drawings as PNG. `export` chooses
// another form: a MIME type or one of docx, xlsx, pptx, pdf, md, html, txt, csv. `mode: create` (default) adds a file,
// and `replace` replaces the content of the file with that name in the folder. Uploads above 5 MiB are resumable and
// continue where they stopped. An upload whose reply was lost: Drive gives out the id of a new file beforehand and refuses
// it the second time, so a repetition finds the file by its id and adds none. Permissions: the scope https://www.googleapis.com/auth/drive, and the folders must be
// shared with the account. A service account has no storage of its own, so it can upload only to shared drives, or in the
// name of a `subject`.
// https://developers.google.com/workspace/drive/api/reference/rest/v3/files
// https://developers.google.com/workspace/drive/api/guides/manage-uploads
// https://developers.google.com/workspace/drive/api/guides/handle-errors

import { basename } from 'node:path'
import {
  type AgentContext,
  AgentError,
  type AgentResult,
  agent,
  BaseUrl,
  beforehand,
  entryOf,
  Limit,
  listingOf,
  pathSegment,
  Type,
  writeListing,
} from 'cadre'
import {
  checkedJson,
  chunksIn,
  driveAddresses,
  driveApi,
  driveJson,
  driveRequest,
  driveUpload,
  EXPORT_NAMES,
  exportTypeOf,
  filePath,
  nullable,
  whyNoAccount,
} from 'cadre/vendors'

const FIELDS = 'id,name,mimeType,size,md5Checksum,modifiedTime,webViewLink,appProperties,shortcutDetails(targetId)'
/** The private property of a file that contains the idempotency key. */
const MARK = 'cadre_key'
const FOLDER = 'application/vnd.google-apps.folder'
const Settings = Type.Object({
  credentials_file: Type.String({
    minLength: 1,
    description: 'The path of the JSON file with the credentials; a leading ~ is your home folder.',
  }),
  auth_mode: Type.Optional(
    Type.Enum(['service_account', 'oauth'], {
      default: 'service_account',
      description: 'Whose file it is: that of a service account, or with oauth that of a person.',
    }),
  ),
  subject: Type.Optional(
    Type.String({
      pattern: '^[^@\\s]+@[^@\\s]+$',
      'x-expected': 'an e-mail address, such as robot@acme.com',
      description: 'The e-mail address of the person of the domain in whose name the service account acts.',
    }),
  ),
  base_url: BaseUrl,
})
type Context = AgentContext<Type.Static<typeof Settings>>

const DriveFile = Type.Object({
  id: Type.String({ minLength: 1 }),
  name: Type.String(),
  mimeType: Type.String(),
  /** As a decimal string. Google's own documents have none. */
  size: Type.Optional(Type.String({ pattern: '^\\d+$' })),
  md5Checksum: Type.Optional(Type.String()),
  modifiedTime: Type.Optional(Type.String()),
  webViewLink: Type.Optional(Type.String()),
  appProperties: Type.Optional(Type.Record(Type.String(), Type.String())),
  shortcutDetails: Type.Optional(Type.Object({ targetId: Type.Optional(Type.String()) })),
})
type DriveFile = Type.Static<typeof DriveFile>
const Ids = Type.Object({ ids: Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }) })
const Found = Type.Object({ files: Type.Array(DriveFile), nextPageToken: Type.Optional(Type.String()) })
const About = Type.Object({
  user: Type.Object({ displayName: Type.String(), emailAddress: Type.Optional(Type.String()) }),
})

const stored = {
  id: Type.String({ description: 'The id of the file.' }),
  name: Type.String({ description: 'Its name in Drive.' }),
  size: nullable(Type.Integer(), { description: 'How many bytes it has; null for a document of Google.' }),
  md5: nullable(Type.String(), { description: 'The MD5 of its content.' }),
  url: nullable(Type.String(), { description: 'Its address in a browser.' }),
}
const type = Type.String({ description: 'Its MIME type; for a document of Google that of the export.' })
const modified = nullable(Type.String(), { description: 'When it was changed.' })
const Read = Type.Union([Type.Object({ ...stored, type }), listingOf({ ...stored, type, modified })], {
  description: 'A file has `id` and what follows it, and a folder has `items`.',
})

const Export = Type.String({
  pattern: `^([a-z]+/.+|${EXPORT_NAMES.join('|')})$`,
  'x-expected': `a MIME type, or one of ${EXPORT_NAMES.join(', ')}`,
  description: `The form of a document of Google: a MIME type, or one of ${EXPORT_NAMES.join(', ')}.`,
})

const Source = Type.String({
  minLength: 1,
  description: 'The id of a file or folder, its address in the browser, or folder/<id> to list a folder.',
})

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Downloads from, lists and uploads into Google Drive.',
  settings: Settings,
  check: whyNoAccount,
  addresses: driveAddresses,
  account: driveApi,
  async doctor(context) {
    const path = `/drive/v3/about?${queryOf({ fields: 'user(displayName,emailAddress)' })}`
    const { user } = await driveJson('get the account', path, About, context)
    const person = context.settings.auth_mode === 'oauth' || context.settings.subject !== undefined
    const text = person ? 'Drive' : 'Drive; a service account uploads into shared drives only'
    return { who: user.emailAddress ?? user.displayName, missing: [], text }
  },
  source: {
    description: 'Downloads a file, or lists a folder.',
    effect: 'read',
    example: { name: 'plan.pdf', ref: '1mGVIVqCnHZ8YXrKQ9lJt0aTn3fXUoD2b' },
    entry: entryOf({ ref: Source, export: Type.Optional(Export), limit: Limit }),
    data: Read,
    async run({ name, ref, export: as, limit }, context) {
      const id = idOf(ref)
      if (/^folder\/|\/folders\//.test(ref)) return list(name, id, limit, context)
      let file = await getFile(id, context)
      const target = file.shortcutDetails?.targetId
      if (target) file = await getFile(target, context)
      if (file.mimeType === FOLDER) return list(name, file.id, limit, context)
      return download(name, file, as, context)
    },
  },
  target: {
    description: 'Uploads a file into a folder.',
    effect: ({ mode }) => (mode === 'replace' ? 'idempotent' : 'once'),
    example: { name: 'report', ref: '1pYtT0uXw7ZbN5cR2sVkQ8dJm4hLgE6aF', file: 'files/report/report.pdf' },
    entry: entryOf({
      ref: Type.String({
        minLength: 1,
        description: 'The id of the folder to upload into, or its address in the browser.',
      }),
      file: filePath('The path of the file to upload, in the run or the workspace.'),
      title: Type.Optional(
        Type.String({ minLength: 1, description: 'The name in Drive. By default it is the name of the file.' }),
      ),
      mode: Type.Optional(
        Type.Enum(['create', 'replace'], {
          default: 'create',
          description: 'Whether a file is added, or the content of the file of that name is replaced.',
        }),
      ),
    }),
    data: Type.Object(stored),
    async run({ ref, file: path, title, mode }, context) {
      const folder = idOf(ref)
      const file = await context.read(path)
      const name = title ?? basename(path)
      if (mode !== 'replace') return resultOf(await create({ file, name, folder }, context), 'uploaded')
      const existing = await beforehand(() => fileNamed(name, folder, context))
      if (existing) return resultOf(await replace(existing, { file, name, folder }, context), 'replaced')
      const made = await create({ file, name, folder }, context)
      // The content may be that of an earlier attempt, whose file the list of the folder did not show yet.
      const isSame = made.md5Checksum === (await md5Of(file))
      return resultOf(isSame ? made : await replace(made, { file, name, folder }, context), 'uploaded')
    },
    sees: 'at once',
    async find({ ref }, context) {
      const found = await uploadedBefore(idOf(ref), context)
      return found && resultOf(found, 'found')
    },
  },
})

/** The id in a ref, which may also be `folder/<id>` or the address of a file or folder in a browser. */
function idOf(ref: string): string {
  const [, id] = /^https:\/\/(?:drive|docs)\.google\.com\/.*(?:\/d\/|\/folders\/|[?&]id=)([\w-]+)/.exec(ref) ?? []
  return id ?? ref.replace(/^folder\//, '')
}

function queryOf(fields: Record<string, string | number | boolean | undefined>): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) parameters.set(name, String(value))
  return parameters.toString()
}

async function getFile(id: string, context: Context): Promise<DriveFile> {
  const path = `/drive/v3/files/${pathSegment(id)}?${queryOf({ fields: FIELDS, supportsAllDrives: true })}`
  return driveJson(`get ${id}`, path, DriveFile, context)
}

/** Null if there is none. Unlike a list of files, this sees a file from the moment on in which it is made. */
async function fileIfAny(id: string, context: Context): Promise<DriveFile | null> {
  try {
    return await getFile(id, context)
  } catch (error) {
    if (error instanceof AgentError && error.code === 'not_found') return null
    throw error
  }
}

/** Searches one folder. The folder is named in errors. */
async function search(
  folder: string,
  q: string,
  paging: Record<string, string | number | undefined>,
  context: Context,
) {
  const fields = `nextPageToken,files(${FIELDS})`
  const query = { q: `${q}${inFolder(folder)}`, fields, supportsAllDrives: true, includeItemsFromAllDrives: true }
  return driveJson(`list folder ${folder}`, `/drive/v3/files?${queryOf({ ...query, ...paging })}`, Found, context)
}

function quoted(text: string): string {
  return text.replace(/[\\']/g, '\\$&')
}

function inFolder(id: string): string {
  return `'${quoted(id)}' in parents and trashed = false`
}

/**
 * One page of a folder. Drive also returns an empty list for something that is not a folder, which is reported as an
 * error here.
 */
async function folderPage(folder: string, pageToken: string | undefined, pageSize: number, context: Context) {
  const paging = { pageSize: Math.min(pageSize, 1_000), orderBy: 'name', pageToken }
  const page = await search(folder, '', paging, context)
  if (page.files.length === 0 && !pageToken && (await getFile(folder, context)).mimeType !== FOLDER) {
    throw new AgentError(`[${context.callName}] ${folder} is not a folder`, {
      code: 'not_found',
      hint: 'remove folder/ from ref',
    })
  }
  return page
}

/** The file that an earlier upload of this entry has created. */
async function uploadedBefore(folder: string, context: Context): Promise<DriveFile | null> {
  const id = await context.identity()
  if (id !== null) {
    const file = await fileIfAny(id, context)
    return file?.appProperties?.[MARK] === context.key ? file : null
  }
  // Versions of cadre that left the id to Drive have marked the file only.
  const q = `appProperties has { key='${MARK}' and value='${quoted(context.key)}' } and `
  return (await search(folder, q, { pageSize: 1 }, context)).files[0] ?? null
}

/** The file with that name in the folder. */
async function fileNamed(title: string, folder: string, context: Context): Promise<DriveFile | null> {
  const { files } = await search(folder, `name = '${quoted(title)}' and `, { pageSize: 2 }, context)
  if (files.length < 2) return files[0] ?? null
  const hint = 'rename or remove all but one, or use another `title`'
  throw new AgentError(`[${context.callName}] the folder has several files named ${title}`, { code: 'conflict', hint })
}

async function list(name: string, folder: string, limit: number | undefined, context: Context): Promise<AgentResult> {
  const data = await writeListing(context, {
    name,
    limit,
    async page(pageToken, wanted, fitting) {
      const { files, nextPageToken } = await folderPage(folder, pageToken, Math.min(wanted, fitting), context)
      return { items: files, next: nextPageToken }
    },
    brief: file => ({ ...brief(file), type: file.mimeType, modified: file.modifiedTime ?? null }),
  })
  return { text: `${data.items.length} of ${data.total} files of folder ${folder}`, data }
}

function brief({ id, name, size, md5Checksum, webViewLink }: DriveFile) {
  return {
    id,
    name,
    size: size === undefined ? null : Number(size),
    md5: md5Checksum ?? null,
    url: webViewLink ?? null,
  }
}

async function download(name: string, file: DriveFile, as: string | undefined, context: Context): Promise<AgentResult> {
  const path = `/drive/v3/files/${pathSegment(file.id)}`
  const type = exportTypeOf(file, as, context)
  const wanted = type ? `${path}/export?${queryOf({ mimeType: type })}` : `${path}?alt=media&supportsAllDrives=true`
  const reply = await driveRequest(`download ${file.id}`, wanted, context, {
    headers: { accept: type ? '*/*' : 'application/octet-stream' },
  })
  const { bytes } = await context.write(name, reply.body ? verified(reply.body, file, context) : '')
  return { text: `${file.name}: ${bytes} bytes`, data: { ...brief(file), size: bytes, type: type ?? file.mimeType } }
}

/**
 * Passes the bytes through. Fails at the end if their hash differs from the one that Drive reported, so that no wrong
 * file is left.
 */
function verified(
  body: ReadableStream<Uint8Array>,
  { name, md5Checksum }: DriveFile,
  { callName }: Context,
): ReadableStream<Uint8Array> {
  if (!md5Checksum) return body
  const hasher = new Bun.CryptoHasher('md5')
  const check = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      hasher.update(chunk)
      controller.enqueue(chunk)
    },
    flush() {
      if (hasher.digest('hex') === md5Checksum) return
      throw new AgentError(`[${callName}] ${name} changed while it was downloaded`, {
        code: 'conflict',
        retryable: true,
      })
    },
  })
  return body.pipeThrough(check)
}

interface Upload {
  file: Bun.BunFile
  name: string
  /** The id of the folder. */
  folder: string
}

const UPLOADS = '/upload/drive/v3/files'
const UPLOADED = queryOf({ fields: FIELDS, supportsAllDrives: true })

/** Adds a file under an id that is the same in all attempts, so that there is one file however often it is sent. */
async function create({ file, name, folder }: Upload, context: Context): Promise<DriveFile> {
  const doing = `upload ${name} into folder ${folder}`
  const id = await beforehand(() => context.identity(() => newId(context)))
  const metadata = { id, name, parents: [folder], appProperties: { [MARK]: context.key } }
  try {
    const request = { method: 'POST' as const, path: `${UPLOADS}?${UPLOADED}`, metadata, doing, file }
    return await checkedJson(context, doing, DriveFile, await driveUpload(request, context))
  } catch (error) {
    const made = error instanceof AgentError && error.code === 'conflict' ? await fileIfAny(id, context) : null
    if (made) return made
    throw error
  }
}

/** An id for a file that is yet to be made. */
async function newId(context: Context): Promise<string> {
  const path = `/drive/v3/files/generateIds?${queryOf({ count: 1, space: 'drive', fields: 'ids' })}`
  return (await driveJson('get an id for a new file', path, Ids, context)).ids[0]!
}

async function replace({ id }: DriveFile, { file, name, folder }: Upload, context: Context): Promise<DriveFile> {
  const doing = `upload ${name} into folder ${folder}`
  const path = `${UPLOADS}/${pathSegment(id)}?${UPLOADED}`
  const reply = await driveUpload({ method: 'PATCH', path, metadata: { name }, doing, file }, context)
  return checkedJson(context, doing, DriveFile, reply)
}

async function md5Of(file: Bun.BunFile): Promise<string> {
  const hasher = new Bun.CryptoHasher('md5')
  for await (const chunk of chunksIn(file.stream())) hasher.update(chunk)
  return hasher.digest('hex')
}

function resultOf(file: DriveFile, how: string): AgentResult {
  const { id, webViewLink: url } = file
  return { text: `${file.name} ${how}`, data: brief(file), external: { id, ...(url && { url }) } }
}
