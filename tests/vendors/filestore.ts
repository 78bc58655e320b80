// Google Drive and Google's token endpoint as far as the filestore agent goes. Contents are ASCII.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { exportPKCS8, generateKeyPair, jwtVerify } from 'jose'
import { isObject } from '../../lib/json.ts'
import { type FakeVendor, fakeVendor, refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'
import { folder } from '../support/folder.ts'

const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true })
const PEM = await exportPKCS8(privateKey)
export const CANARIES = ['canary-client-secret', 'canary-refresh-token', PEM.split('\n')[3]!, 'canary-access-token']

const SERVICE = {
  type: 'service_account',
  client_email: 'robot@acme.test',
  private_key: PEM,
  private_key_id: 'key-1',
}
const PERSON = {
  client_id: 'client-1',
  client_secret: 'canary-client-secret',
  refresh_token: 'canary-refresh-token',
}
const SCOPE = 'https://www.googleapis.com/auth/drive'

/** The path of a credentials file. */
export function credentials(mode: 'service_account' | 'oauth', fields: object = {}): string {
  const path = join(folder(), 'credentials.json')
  writeFileSync(path, JSON.stringify({ ...(mode === 'oauth' ? PERSON : SERVICE), ...fields }))
  return path
}

export interface FakeFile {
  id: string
  name: string
  mimeType: string
  parents: string[]
  content?: string
  appProperties?: Record<string, string>
  shortcutDetails?: { targetId: string }
}

export interface FakeDrive extends FakeVendor {
  files: FakeFile[]
  /** Tokens that were given out. */
  tokens: number
  /** In whose name tokens were given out. */
  subjects: string[]
  /** No token is good any more. */
  revoke(): void
  /** Bytes of a chunk that are kept; the rest is to be sent again. */
  keep: number
  /** How many lists of a folder do not show yet what was uploaded. */
  lag: number
}

interface State {
  files: FakeFile[]
  /** Ids that were given out for new files. */
  ids: Set<string>
  lag: number
  tokens: number
  subjects: string[]
  valid: Set<string>
  sessions: Map<string, { file: FakeFile; size: number; content: string; existing: boolean }>
  keep: number
  url: string
}

export function fakeDrive(): FakeDrive {
  const state: State = {
    ...{ files: [], tokens: 0, subjects: [], valid: new Set(), sessions: new Map() },
    ...{ keep: Infinity, url: '', lag: 0, ids: new Set() },
  }
  const server = fakeVendor(request => answer(request, state))
  state.url = server.url
  add(state, { id: 'folder-1', name: 'Reports', mimeType: 'application/vnd.google-apps.folder', parents: ['root'] })
  add(state, { id: 'file-1', name: 'plan 🎉/..', mimeType: 'text/plain', parents: ['root'], content: 'the plan' })
  return Object.assign(state, server, { revoke: () => state.valid.clear() })
}

export function add(state: { files: FakeFile[] }, file: FakeFile): FakeFile {
  state.files.push(file)
  return file
}

const said = (status: number, reason: string) =>
  refusal(status, { error: { code: status, message: reason, errors: [{ domain: 'global', reason, message: reason }] } })

async function answer(request: VendorRequest, state: State): Promise<Response> {
  const { method, path, query, headers } = request
  if (path === '/token') return token(request, state)
  if (!state.valid.has(headers.get('authorization')?.replace('Bearer ', '') ?? '')) return said(401, 'authError')
  if (path === '/drive/v3/files/generateIds') {
    const count = Number(query.get('count') ?? 10)
    if (method !== 'GET' || !(count >= 1 && count <= 1_000)) return said(400, 'invalid')
    const ids = Array.from({ length: count }, () => `new-${crypto.randomUUID()}`)
    for (const id of ids) state.ids.add(id)
    return Response.json({ kind: 'drive#generatedIds', space: query.get('space') ?? 'drive', ids })
  }
  if (path === '/drive/v3/about') {
    if (!query.get('fields')) return said(400, 'required')
    return Response.json({ user: { displayName: 'A robot', emailAddress: SERVICE.client_email } })
  }
  if (path.startsWith('/upload/drive/v3/files')) return upload(request, state)
  if (method !== 'GET') return said(404, 'notFound')
  if (query.get('supportsAllDrives') !== 'true' && !path.endsWith('/export')) return said(404, 'notFound')
  if (path === '/drive/v3/files') return list(query, state)
  const [, id, exporting] = /^\/drive\/v3\/files\/([^/]+)(\/export)?$/.exec(path) ?? []
  const file = state.files.find(each => each.id === decodeURIComponent(id ?? ''))
  if (!file) return said(404, 'notFound')
  const isDocument = file.mimeType.startsWith('application/vnd.google-apps.')
  if (exporting) {
    if (!isDocument) return said(403, 'fileNotExportable')
    return new Response(`${file.name} as ${query.get('mimeType')}`)
  }
  if (query.get('alt') !== 'media') return Response.json(shown(file, query.get('fields')))
  return isDocument ? said(403, 'fileNotDownloadable') : new Response(file.content)
}

/** Only what was asked for is answered, as Drive does. */
function shown(file: FakeFile, fields: string | null): object {
  const { content } = file
  const all: Record<string, unknown> = {
    ...file,
    modifiedTime: '2026-02-01T10:30:00.000Z',
    webViewLink: `https://drive.test/file/d/${file.id}/view`,
    ...(content !== undefined && {
      size: String(content.length),
      md5Checksum: new Bun.CryptoHasher('md5').update(content).digest('hex'),
    }),
  }
  const wanted = (fields ?? 'id,name,mimeType').replace(/\([^)]*\)/g, '').split(',')
  return Object.fromEntries(wanted.flatMap(name => (all[name] === undefined ? [] : [[name, all[name]]])))
}

function list(query: URLSearchParams, state: State): Response {
  const q = query.get('q') ?? ''
  const size = Number(query.get('pageSize') ?? 100)
  if (!(size >= 1 && size <= 1_000) || query.get('includeItemsFromAllDrives') !== 'true') return said(400, 'invalid')
  const parent = /'((?:[^'\\]|\\.)*)' in parents and trashed = false$/.exec(q)?.[1]
  const name = /^name = '((?:[^'\\]|\\.)*)' and /.exec(q)?.[1]
  const mark = /^appProperties has { key='cadre_key' and value='([^']*)' } and /.exec(q)?.[1]
  if (parent === undefined) return said(400, 'invalid')
  const plain = (text: string) => text.replace(/\\(.)/g, '$1')
  const isBehind = state.lag-- > 0
  const found = state.files.filter(
    file =>
      !(isBehind && file.id.startsWith('new-')) &&
      file.parents.includes(plain(parent)) &&
      (name === undefined || file.name === plain(name)) &&
      (mark === undefined || file.appProperties?.cadre_key === mark),
  )
  const from = Number(query.get('pageToken') ?? 0)
  const fields = /files\((.*)\)$/.exec(query.get('fields') ?? '')?.[1] ?? null
  const files = found.slice(from, from + size).map(file => shown(file, fields))
  return Response.json({ files, ...(from + size < found.length && { nextPageToken: String(from + size) }) })
}

async function token({ body }: VendorRequest, state: State): Promise<Response> {
  const form = Object.fromEntries(new URLSearchParams(String(body)))
  const refused = refusal(400, { error: 'invalid_grant', error_description: 'Invalid JWT or token' })
  if (form.grant_type === 'refresh_token') {
    const { client_id, client_secret, refresh_token } = form
    if (JSON.stringify({ client_id, client_secret, refresh_token }) !== JSON.stringify(PERSON)) return refused
  } else {
    if (form.grant_type !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') return refusal(400)
    try {
      const options = { issuer: SERVICE.client_email, audience: `${state.url}/token`, typ: 'JWT' }
      const { payload, protectedHeader } = await jwtVerify(form.assertion!, publicKey, options)
      if (payload.exp! - payload.iat! > 3_600 || payload.scope !== SCOPE || protectedHeader.kid !== 'key-1')
        return refused
      if (payload.sub === 'boss@acme.test') return refusal(401, { error: 'unauthorized_client' })
      if (payload.sub) state.subjects.push(payload.sub)
    } catch {
      return refused
    }
  }
  const access_token = `canary-access-token-${++state.tokens}`
  state.valid.add(access_token)
  return Response.json({ access_token, expires_in: 3_599, token_type: 'Bearer' })
}

function upload({ method, path, query, headers, body }: VendorRequest, state: State): Response {
  const id = /^\/upload\/drive\/v3\/files\/(.+)$/.exec(path)?.[1]
  const existing = id === undefined ? null : state.files.find(file => file.id === id)
  if (existing === undefined) return said(404, 'notFound')
  const type = query.get('uploadType')
  if (method === 'PUT') return chunk(query, headers, String(body), state)
  if (method !== (existing ? 'PATCH' : 'POST') || query.get('supportsAllDrives') !== 'true') return said(400, 'invalid')
  if (type === 'multipart') {
    const boundary = /^multipart\/related; boundary=(.+)$/.exec(headers.get('content-type') ?? '')?.[1]
    const parts = String(body).split(`--${boundary}`)
    if (!boundary || parts.length !== 4 || parts[3] !== '--\r\n') return said(400, 'badContent')
    const [metadata, content] = [parts[1]!, parts[2]!].map(part => part.slice(part.indexOf('\r\n\r\n') + 4, -2))
    const file = described(JSON.parse(metadata!), existing, state)
    if (file instanceof Response) return file
    return Response.json(shown(finish(file, content!, existing === null, state), query.get('fields')))
  }
  const file = type === 'resumable' && isObject(body) ? described(body, existing, state) : said(400, 'invalid')
  const size = Number(headers.get('x-upload-content-length'))
  if (file instanceof Response) return file
  if (!headers.get('x-upload-content-type') || !(size > 0)) return said(400, 'invalid')
  const upload_id = crypto.randomUUID()
  state.sessions.set(upload_id, { file, size, content: '', existing: existing !== null })
  // As the vendor names itself, whatever address it was reached by.
  const location = `https://www.googleapis.com${path}?${new URLSearchParams({ uploadType: 'resumable', upload_id, fields: query.get('fields')! })}`
  return new Response(null, { headers: { location } })
}

/** Drive takes only ids that it has given out, and each of them for one file. */
function described(metadata: Record<string, unknown>, existing: FakeFile | null, state: State): FakeFile | Response {
  const { id, name, parents, appProperties } = metadata as never as FakeFile
  if (typeof name !== 'string' || (existing === null) !== Array.isArray(parents)) return said(400, 'invalid')
  if (existing) return Object.assign(existing, { name, ...(appProperties && { appProperties }) })
  if (id !== undefined && !state.ids.has(id)) return said(400, 'invalid')
  if (isTaken(id, state)) return said(409, 'fileIdInUse')
  return {
    id: id ?? `new-${crypto.randomUUID()}`,
    name,
    mimeType: 'text/plain',
    parents,
    appProperties: appProperties!,
  }
}

const isTaken = (id: string, { files }: State): boolean => files.some(file => file.id === id)

function finish(file: FakeFile, content: string, isNew: boolean, state: State): FakeFile {
  file.content = content
  return isNew ? add(state, file) : file
}

function chunk(query: URLSearchParams, headers: Headers, body: string, state: State): Response {
  const session = state.sessions.get(query.get('upload_id') ?? '')
  if (!session) return said(404, 'notFound')
  const { file, size } = session
  const done = () => Response.json(shown(file, query.get('fields')))
  const [, from, to, total] = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+)$/.exec(headers.get('content-range') ?? '') ?? []
  if (Number(total) !== size) return said(400, 'invalid')
  if (from !== undefined) {
    const last = Number(to) + 1 === size
    if (Number(from) !== session.content.length || Number(to) - Number(from) + 1 !== body.length)
      return said(400, 'range')
    if (!last && body.length % (256 * 1024) !== 0) return said(400, 'chunk')
    session.content += body.slice(0, state.keep)
    if (session.content.length === size && !session.existing && isTaken(file.id, state)) return said(409, 'fileIdInUse')
    if (session.content.length === size) finish(file, session.content, !session.existing, state)
  }
  if (session.content.length === size) return done()
  const range = session.content ? { range: `bytes=0-${session.content.length - 1}` } : {}
  return new Response(null, { status: 308, headers: range })
}
