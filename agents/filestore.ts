// filestore: downloads files and lists folders of Google Drive, and uploads into folders.
//
//   settings: credentials_file, auth_mode? (service_account; or oauth, a file with client_id, client_secret and
//             refresh_token), base_url? (instead of https://www.googleapis.com)
//   sources:        [{ name, ref: file or folder id | folder/<id>, export?, limit? }]
//   target_entries: [{ name, ref: folder id, file, title?, mode? }]   title: the name in Drive, else that of the file
//
// Google's own documents are exported: Docs and Slides as text, Sheets as CSV, drawings as PNG, or as `export` says, a
// MIME type or one of docx, xlsx, pptx, pdf, md, html, txt, csv. `mode: create` (default) adds a file, `replace` gives the
// one of that name in the folder new content. Above 5 MiB uploads are resumable, and go on where they broke off.
// Permissions: scope https://www.googleapis.com/auth/drive, and the folders shared with the account; a service account
// has no storage of its own, so it uploads into shared drives only.
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
  drive,
  entryOf,
  Limit,
  pathSegment,
  Type,
  writeListing,
} from 'cadre'

const text = Type.String({ minLength: 1 })
const GOOGLE = 'application/vnd.google-apps.'
const EXPORTS: Record<string, string> = {
  document: 'text/plain',
  spreadsheet: 'text/csv',
  presentation: 'text/plain',
  drawing: 'image/png',
}
const OFFICE = 'application/vnd.openxmlformats-officedocument.'
const TYPES: Record<string, string> = {
  docx: `${OFFICE}wordprocessingml.document`,
  xlsx: `${OFFICE}spreadsheetml.sheet`,
  pptx: `${OFFICE}presentationml.presentation`,
  pdf: 'application/pdf',
  md: 'text/markdown',
  html: 'text/html',
  txt: 'text/plain',
  csv: 'text/csv',
}

const Settings = Type.Object({
  credentials_file: text,
  auth_mode: Type.Optional(Type.Enum(['service_account', 'oauth'], { default: 'service_account' })),
  base_url: BaseUrl,
})
type Context = AgentContext<Type.Static<typeof Settings>>

const Export = Type.String({ pattern: `^([a-z]+/.+|${Object.keys(TYPES).join('|')})$` })
export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Downloads from, lists and uploads into Google Drive.',
  settings: Settings,
  async doctor(context) {
    const path = `/drive/v3/about?${drive.query({ fields: 'user(displayName,emailAddress)' })}`
    const reply = await drive.request('get the account', path, context)
    const { user } = (await reply.json()) as { user: { displayName: string; emailAddress?: string } }
    const person = context.settings.auth_mode === 'oauth'
    const text = person ? 'Drive' : 'Drive; a service account uploads into shared drives only'
    return { who: user.emailAddress ?? user.displayName, missing: [], text }
  },
  source: {
    effect: 'read',
    entry: entryOf({ ref: text, export: Type.Optional(Export), limit: Limit }),
    async run({ name, ref, export: as, limit }, context) {
      if (ref.startsWith('folder/')) return list(name, ref.slice('folder/'.length), limit, context)
      let file = await drive.get(ref, context)
      if (file.shortcutDetails) file = await drive.get(file.shortcutDetails.targetId, context)
      if (file.mimeType === drive.FOLDER) return list(name, file.id, limit, context)
      return download(name, file, as, context)
    },
  },
  target: {
    effect: ({ mode }) => (mode === 'replace' ? 'idempotent' : 'once'),
    entry: entryOf({
      ref: text,
      file: text,
      title: Type.Optional(text),
      mode: Type.Optional(Type.Enum(['create', 'replace'])),
    }),
    async run({ ref: folder, file: path, title, mode }, context) {
      const file = await context.read(path)
      const name = title ?? basename(path)
      const existing = mode === 'replace' ? await beforehand(() => drive.named(name, folder, context)) : null
      const uploaded = await drive.upload({ file, name, folder, existing }, context)
      return resultOf(uploaded, existing ? 'replaced' : 'uploaded')
    },
    async find({ ref }, context) {
      const found = await drive.marked(ref, context)
      return found && resultOf(found, 'found')
    },
  },
})

async function list(name: string, folder: string, limit: number | undefined, context: Context): Promise<AgentResult> {
  const data = await writeListing(context, {
    name,
    limit,
    async page(pageToken, wanted) {
      const { files, nextPageToken } = await drive.folderPage(folder, pageToken, wanted, context)
      return { items: files, next: nextPageToken }
    },
    brief: file => ({ ...brief(file), type: file.mimeType, modified: file.modifiedTime ?? null }),
  })
  return { text: `${data.items.length} of ${data.total} files of folder ${folder}`, data }
}

function brief({ id, name, size, md5Checksum, webViewLink }: drive.DriveFile) {
  return {
    id,
    name,
    size: size === undefined ? null : Number(size),
    md5: md5Checksum ?? null,
    url: webViewLink ?? null,
  }
}

async function download(
  name: string,
  file: drive.DriveFile,
  as: string | undefined,
  context: Context,
): Promise<AgentResult> {
  const path = `/drive/v3/files/${pathSegment(file.id)}`
  const type = exportOf(file, as, context)
  const wanted = type ? `${path}/export?${drive.query({ mimeType: type })}` : `${path}?alt=media&supportsAllDrives=true`
  const reply = await drive.request(`download ${file.id}`, wanted, context, {
    headers: { accept: type ? '*/*' : 'application/octet-stream' },
  })
  const { bytes } = await context.write(name, reply.body ? verified(reply.body, file, context) : '')
  return { text: `${file.name}: ${bytes} bytes`, data: { ...brief(file), size: bytes, type: type ?? file.mimeType } }
}

/** What a document of Google's own is exported as; null for a file, which is what it is. */
function exportOf({ id, mimeType }: drive.DriveFile, as: string | undefined, { place }: Context): string | null {
  const kind = mimeType.startsWith(GOOGLE) ? mimeType.slice(GOOGLE.length) : null
  const type = as === undefined ? EXPORTS[kind ?? ''] : (TYPES[as] ?? as)
  if (kind !== null && type) return type
  if (kind === null && as === undefined) return null
  const why = kind === null ? 'is a file, which is not exported' : `is a ${kind}, which has no usual form`
  const hint = kind === null ? 'leave out `export`' : 'say which MIME type with `export`'
  throw new AgentError(`[${place}] ${id} ${why}`, { code: 'invalid_request', hint })
}

/** The bytes as they pass; fails at their end when they are not those that Drive named, so that no file is left. */
function verified(
  body: ReadableStream<Uint8Array>,
  { name, md5Checksum }: drive.DriveFile,
  { place }: Context,
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
      throw new AgentError(`[${place}] ${name} changed while it was downloaded`, { code: 'conflict', retryable: true })
    },
  })
  return body.pipeThrough(check)
}

function resultOf(file: drive.DriveFile, how: string): AgentResult {
  const { id, webViewLink: url } = file
  return { text: `${file.name} ${how}`, data: brief(file), external: { id, ...(url && { url }) } }
}
