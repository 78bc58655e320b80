// Google Drive v3: requests as an account, what its refusals mean, searches, and uploads that go on where they broke off.
// https://developers.google.com/workspace/drive/api/guides/manage-uploads
// https://developers.google.com/workspace/drive/api/guides/handle-errors

import { type FileHandle, open } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { type AgentContext, AgentError, type FetchOptions, withSent } from './define.ts'
import { googleToken } from './google.ts'
import { beforehand, explain, pathSegment } from './vendor.ts'

const SCOPE = 'https://www.googleapis.com/auth/drive'
const FIELDS = 'id,name,mimeType,size,md5Checksum,modifiedTime,webViewLink,shortcutDetails(targetId)'
/** The MIME type of folders. */
export const FOLDER = 'application/vnd.google-apps.folder'
/** Bytes that are uploaded in one request. */
const SIMPLE_MOST = 5 * 1024 * 1024
/** Of a resumable upload: a multiple of 256 KiB, all that is in memory at a time. */
const CHUNK = 8 * 1024 * 1024
const CHUNK_TIMEOUT = 5 * 60_000
const TRIES = 5
/** Drive says 403, not 429, when an account asks too often. */
const TOO_OFTEN = /"(userRateLimitExceeded|rateLimitExceeded)"/
/** Where a file's private properties hold the idempotency key. */
const MARK = 'cadre_key'

export interface DriveSettings {
  credentials_file: string
  auth_mode?: 'service_account' | 'oauth'
  base_url?: string
}
type Context = AgentContext<DriveSettings>

export interface DriveFile {
  id: string
  name: string
  mimeType: string
  /** Decimal; Google's own documents have none. */
  size?: string
  md5Checksum?: string
  modifiedTime?: string
  webViewLink?: string
  shortcutDetails?: { targetId: string }
}

/** A reply of 200–299 or 308. Throws what `explain` says of another, once a new token and a pause did not help. */
export async function request(
  doing: string,
  path: string,
  context: Context,
  options: FetchOptions = {},
): Promise<Response> {
  const { credentials_file: file, auth_mode: mode = 'service_account', base_url } = context.settings
  const base = (base_url ?? 'https://www.googleapis.com').replace(/\/+$/, '')
  const tokenUri = base_url ? `${base}/token` : 'https://oauth2.googleapis.com/token'
  let renew = false
  for (let attempt = 1; ; attempt++) {
    const account = { file, mode, scope: SCOPE, tokenUri }
    const token = await beforehand(() => googleToken(context, account, renew))
    const headers = { ...(options.headers as Record<string, string>), authorization: `Bearer ${token}` }
    const reply = await context.fetch(base + path, { ...options, headers })
    if (reply.ok || reply.status === 308) return reply
    if (reply.status === 401 && !renew) {
      renew = true
      await reply.body?.cancel()
      continue
    }
    const error = await failure(reply, doing, context)
    if (reply.status !== 403 || error.code !== 'rate_limited' || attempt >= TRIES) throw error
    await pause(attempt, context)
  }
}

async function pause(attempt: number, { signal, log, waiting }: Context): Promise<void> {
  const ms = Math.round((0.5 + Math.random()) * 250 * 2 ** attempt)
  log('waiting: Drive asks for patience', { attempt, wait_ms: ms })
  using _ = waiting('Drive asks for patience')
  await wait(ms, undefined, { signal })
}

async function failure(reply: Response, doing: string, context: Context): Promise<AgentError> {
  const body = await reply.text().catch(() => '')
  const again = new Response(body, { status: reply.status, headers: reply.headers })
  const error = await explain(context, again, doing, { setting: 'credentials_file', scope: SCOPE })
  const { message, code } = error
  if (reply.status === 403 && TOO_OFTEN.test(body)) {
    return new AgentError(message, { code: 'rate_limited', retryable: true, sent: 'no' })
  }
  const hint = body.includes('"storageQuotaExceeded"')
    ? 'a service account has no storage of its own: upload into a shared drive, or use auth_mode oauth'
    : body.includes('"exportSizeLimitExceeded"')
      ? 'Drive exports at most 10 MB: choose another `export`, or split the document'
      : code === 'not_found'
        ? 'check the id, and share it with the account of the credentials'
        : undefined
  return hint ? new AgentError(message, { code, hint, sent: 'no' }) : error
}

export function query(fields: Record<string, string | number | boolean | undefined>): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) parameters.set(name, String(value))
  return parameters.toString()
}

export async function get(id: string, context: Context): Promise<DriveFile> {
  const path = `/drive/v3/files/${pathSegment(id)}?${query({ fields: FIELDS, supportsAllDrives: true })}`
  return (await (await request(`get ${id}`, path, context)).json()) as DriveFile
}

async function search(q: string, paging: Record<string, string | number | undefined>, context: Context) {
  const fields = `nextPageToken,files(${FIELDS})`
  const path = query({ q, fields, supportsAllDrives: true, includeItemsFromAllDrives: true, ...paging })
  const reply = await request('list files', `/drive/v3/files?${path}`, context)
  return (await reply.json()) as { files: DriveFile[]; nextPageToken?: string }
}

function quoted(text: string): string {
  return text.replace(/[\\']/g, '\\$&')
}

function inFolder(id: string): string {
  return `'${quoted(id)}' in parents and trashed = false`
}

/** One page of a folder. Drive lists nothing, too, of what is no folder: that is an error. */
export async function folderPage(folder: string, pageToken: string | undefined, pageSize: number, context: Context) {
  const paging = { pageSize: Math.min(pageSize, 1_000), orderBy: 'name', pageToken }
  const page = await search(inFolder(folder), paging, context)
  if (page.files.length === 0 && !pageToken && (await get(folder, context)).mimeType !== FOLDER) {
    throw new AgentError(`[${context.place}] ${folder} is no folder`, { code: 'not_found', hint: 'leave out folder/' })
  }
  return page
}

/** The file that an upload with this context's key left in the folder. */
export async function marked(folder: string, context: Context): Promise<DriveFile | null> {
  const q = `appProperties has { key='${MARK}' and value='${quoted(context.key)}' } and ${inFolder(folder)}`
  return (await search(q, { pageSize: 1 }, context)).files[0] ?? null
}

/** The file of that name in the folder. */
export async function named(title: string, folder: string, context: Context): Promise<DriveFile | null> {
  const { files } = await search(`name = '${quoted(title)}' and ${inFolder(folder)}`, { pageSize: 2 }, context)
  if (files.length < 2) return files[0] ?? null
  const hint = 'rename or remove all but one, or give another `title`'
  throw new AgentError(`[${context.place}] the folder has several files named ${title}`, { code: 'conflict', hint })
}

export interface Upload {
  file: Bun.BunFile
  name: string
  /** Id of the folder. */
  folder: string
  /** The file that gets new content; null: a new one. */
  existing: DriveFile | null
}

/** In one request up to 5 MiB, else resumable, with one chunk in memory at a time. Marked with the idempotency key. */
export async function upload({ file, name, folder, existing }: Upload, context: Context): Promise<DriveFile> {
  const metadata = { name, appProperties: { [MARK]: context.key }, ...(!existing && { parents: [folder] }) }
  const path = `/upload/drive/v3/files${existing ? `/${pathSegment(existing.id)}` : ''}`
  const method = existing ? 'PATCH' : 'POST'
  const doing = `upload ${name}`
  const at = (uploadType: string) => `${path}?${query({ uploadType, fields: FIELDS, supportsAllDrives: true })}`
  const json = 'application/json; charset=UTF-8'
  if (file.size <= SIMPLE_MOST) {
    const boundary = crypto.randomUUID()
    const head = `--${boundary}\r\ncontent-type: ${json}\r\n\r\n${JSON.stringify(metadata)}\r\n`
    const part = `--${boundary}\r\ncontent-type: ${file.type}\r\n\r\n`
    const body = new Blob([head, part, await file.bytes(), `\r\n--${boundary}--\r\n`])
    const headers = { 'content-type': `multipart/related; boundary=${boundary}` }
    return (await (await request(doing, at('multipart'), context, { method, headers, body })).json()) as DriveFile
  }
  const headers = {
    'content-type': json,
    'x-upload-content-type': file.type,
    'x-upload-content-length': `${file.size}`,
  }
  // A session alone is no file, so a failure to begin one left nothing.
  const begun = await beforehand(() =>
    request(doing, at('resumable'), context, { method, headers, body: JSON.stringify(metadata) }),
  )
  const session = URL.parse(begun.headers.get('location') ?? '')
  if (!session)
    throw new AgentError(`[${context.place}] ${doing}: Drive gave no session`, { code: 'vendor_error', sent: 'no' })
  // Whoever knows the session may write to it.
  context.conceal(session.searchParams.get('upload_id') ?? session.search)
  // Only path and query of its address count, so that the token cannot be led to another host.
  return sendChunks(file, doing, session.pathname + session.search, context)
}

/** Chunk after chunk, each in the same bytes of memory; after a failure Drive is asked how much it has. */
async function sendChunks(file: Bun.BunFile, doing: string, session: string, context: Context): Promise<DriveFile> {
  const { size, type } = file
  const handle = await open(file.name!, 'r')
  try {
    const chunk = new Uint8Array(CHUNK)
    let received = 0
    let asking = false
    for (let failures = 0; ; ) {
      const body = asking ? '' : await fill(handle, chunk.subarray(0, size - received), received, context)
      const range = asking ? `bytes */${size}` : `bytes ${received}-${received + body.length - 1}/${size}`
      const headers = { 'content-range': range, 'content-type': type }
      const put = { method: 'PUT', headers, body, timeout: CHUNK_TIMEOUT, attempts: 1 }
      const reply = await settled(request(doing, session, context, put))
      if (reply instanceof Response && reply.ok) return (await reply.json()) as DriveFile
      if (reply instanceof AgentError) {
        if (++failures >= TRIES || !reply.retryable) throw reply
        asking = true
      } else {
        const has = Number(/-(\d+)$/.exec(reply.headers.get('range') ?? '')?.[1] ?? -1) + 1
        if (has > received) failures = 0
        else if (!asking && ++failures >= TRIES) {
          throw new AgentError(`[${context.place}] ${doing}: Drive keeps no byte of it`, { code: 'vendor_error' })
        }
        received = has
        asking = false
      }
      if (failures > 0) await pause(failures, context)
    }
  } finally {
    await handle.close()
  }
}

async function fill(
  handle: FileHandle,
  bytes: Uint8Array<ArrayBuffer>,
  from: number,
  context: Context,
): Promise<Uint8Array<ArrayBuffer>> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await handle.read(bytes, at, bytes.length - at, from + at)
    if (bytesRead === 0) {
      throw new AgentError(`[${context.place}] the file became shorter while it was sent`, {
        code: 'conflict',
        sent: 'no',
      })
    }
    at += bytesRead
  }
  return bytes
}

/** A refusal may come after the last byte, whose own reply was lost: nobody can say that nothing was written. */
async function settled(work: Promise<Response>): Promise<Response | AgentError> {
  try {
    return await work
  } catch (error) {
    if (error instanceof AgentError) return withSent(error, 'unknown')
    throw error
  }
}
