// https://developers.google.com/workspace/drive/api/reference/rest/v3/files
// https://developers.google.com/workspace/drive/api/guides/manage-uploads

import { decodeJwt } from 'jose'
import agent from '../../../agents/filestore.ts'
import { credentials } from '../../vendors/filestore.ts'
import { type Contract, LOST } from '../contract.ts'
import { at, type Call, isText } from '../recorder.ts'

const TOKEN = 'POST /token'
const GET = 'GET /drive/v3/files/{fileId}'
const LIST = 'GET /drive/v3/files'
const EXPORT = 'GET /drive/v3/files/{fileId}/export'
const UPLOAD = 'POST /upload/drive/v3/files'
const REPLACE = 'PATCH /upload/drive/v3/files/{fileId}'
const CHUNK = 'PUT /upload/drive/v3/files'
/** Ids for new files are given where a file would be, as the document has it. */
const IDS = { [GET]: [() => ({ ids: ['new-1'] })] }
const ABOUT = 'GET /drive/v3/about'
const MiB = 1024 * 1024
const GOOGLE = 'application/vnd.google-apps.'

function rules({ operation, headers, query, body }: Call) {
  const kind = query.get('uploadType')
  return [
    operation === TOKEN && refusedForm(new URLSearchParams(String(body))),
    operation !== TOKEN && headers.get('authorization') !== 'Bearer ya29.c.EXAMPLE' && 'not the token that was given',
    query.get('alt') === 'media' && headers.get('accept') !== 'application/octet-stream' && 'takes JSON for the bytes',
    operation === LIST && !isText(query.get('q')) && 'lists the whole drive',
    kind === 'multipart' && refusedParts(headers.get('content-type') ?? '', String(body)),
    kind === 'resumable' && operation !== CHUNK && !isText(at(body, 'name')) && 'no name',
    operation === CHUNK && refusedRange(headers.get('content-range') ?? '', String(body).length),
  ]
}

/** A signed assertion (RFC 7523) with the claims that Google asks for, or a refresh token. */
function refusedForm(form: URLSearchParams): string | false {
  if (form.get('grant_type') === 'refresh_token') return !form.get('refresh_token') && 'no refresh token'
  const { iss, scope, aud, iat = 0, exp = 0 } = decodeJwt<{ scope: string }>(form.get('assertion') ?? '')
  return !(iss && scope && aud && exp > iat && exp - iat <= 3_600) && 'a claim is missing or wrong'
}

/** multipart/related (RFC 2387): the metadata as JSON, then the bytes. */
function refusedParts(type: string, body: string): string | false {
  const boundary = /^multipart\/related; boundary=(\S+)$/.exec(type)?.[1]
  const [before, metadata, bytes, end, ...more] = body.split(`--${boundary}`)
  if (!boundary || before || end?.trim() !== '--' || more.length > 0) return 'is not made of two parts'
  const [head = '', ...json] = metadata!.trim().split('\r\n\r\n')
  if (!/^content-type: application\/json/i.test(head)) return 'the first part is no JSON'
  if (!isText(at(JSON.parse(json.join('')), 'name'))) return 'the metadata has no name'
  return !/^\r\ncontent-type: \S/i.test(bytes!) && 'the second part says not what it is'
}

function refusedRange(range: string, length: number): string | false {
  const [, from, to, size] = (/^bytes (\d+)-(\d+)\/(\d+)$/.exec(range) ?? []).map(Number)
  if (from === undefined || to === undefined || size === undefined) return !/^bytes \*\/\d+$/.test(range) && 'no range'
  if (to - from + 1 !== length || to >= size) return 'the range is not that of the bytes'
  return to + 1 < size && length % (256 * 1024) !== 0 && 'a chunk is no multiple of 256 KiB'
}

const file = (fields: object) => (answer: object) => ({ ...answer, ...fields })
const noNext = (answer: object) => ({ ...answer, nextPageToken: undefined })
const target = (fields: object = {}) => ({
  action: 'target',
  phase: { target_entries: [{ name: 'up', ref: 'folder-1', file: 'report.md', ...fields }] },
  files: { 'report.md': '# Report\n' },
})
const source = (ref: string, fields: object = {}) => ({
  action: 'source',
  phase: { sources: [{ name: 'out', ref, ...fields }] },
})

export const filestore: Contract = {
  document: 'filestore',
  name: 'filestore',
  agent,
  settings: url => ({ base_url: url, credentials_file: credentials('service_account') }),
  rules,
  undeclared: [
    {
      operation: ABOUT,
      why: 'the account is no part of the document',
      page: 'https://developers.google.com/workspace/drive/api/reference/rest/v3/about/get',
    },
    {
      operation: GET,
      when: ({ line }) => line.endsWith('/generateIds'),
      why: 'ids for new files are no part of the document',
      page: 'https://developers.google.com/workspace/drive/api/reference/rest/v3/files/generateIds',
    },
    {
      operation: TOKEN,
      when: ({ body }) => String(body).includes('grant_type=refresh_token'),
      why: 'the document describes the grant of service accounts only',
      page: 'https://developers.google.com/identity/protocols/oauth2/web-server#offline',
    },
  ],
  doctor: {
    changes: { [ABOUT]: [() => ({ user: { displayName: 'Ada' } })] },
    calls: [TOKEN, ABOUT],
  },
  cases: [
    { title: 'the bytes of a file', ...source('file-1'), calls: [TOKEN, GET, GET] },
    {
      title: 'as a person, who has a refresh token',
      ...source('file-1'),
      settings: { credentials_file: credentials('oauth'), auth_mode: 'oauth' },
      changes: { [TOKEN]: [() => ({ access_token: 'ya29.c.EXAMPLE', expires_in: 3_599 })] },
      calls: [TOKEN, GET, GET],
    },
    {
      title: 'a document, as it is exported',
      ...source('doc-1', { export: 'pdf' }),
      changes: { [GET]: [file({ mimeType: `${GOOGLE}document` })] },
      calls: [TOKEN, GET, EXPORT],
    },
    {
      title: 'what a shortcut leads to',
      ...source('link-1'),
      changes: { [GET]: [file({ shortcutDetails: { targetId: 'file-1' } })] },
      calls: [TOKEN, GET, GET, GET],
    },
    {
      title: 'two pages of a folder',
      ...source('folder/folder-1'),
      changes: { [LIST]: [answer => answer, noNext] },
      calls: [TOKEN, LIST, LIST],
    },
    { title: 'a small file', ...target(), changes: IDS, calls: [TOKEN, GET, UPLOAD] },
    {
      title: 'a small file in place of another',
      ...target({ mode: 'replace', title: 'Report' }),
      calls: [TOKEN, LIST, REPLACE],
    },
    {
      title: 'a large file in two chunks',
      ...target(),
      files: { 'report.md': 'x'.repeat(9 * MiB) },
      changes: {
        ...IDS,
        [CHUNK]: [() => new Response(null, { status: 308, headers: { range: `bytes=0-${8 * MiB - 1}` } })],
      },
      calls: [TOKEN, GET, UPLOAD, CHUNK, CHUNK],
    },
    {
      title: 'a file that may be there already',
      ...target(),
      changes: { [UPLOAD]: [LOST], [GET]: [...IDS[GET]!, () => new Response('', { status: 404 })] },
      calls: [TOKEN, GET, UPLOAD, GET],
      state: 'failed',
    },
  ],
}
