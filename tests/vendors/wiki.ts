// Confluence Cloud as far as the wiki agent goes: pages of one space, their versions and attachments, the names of people,
// and a search. It is also reached through the gateway, at `/ex/confluence/<cloud id>`, and its links then lead to the
// site.

import { isObject } from '../../lib/json.ts'
import { type FakeVendor, fakeVendor, refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'
import { formOf, isSigned, refusedForm } from './atlassian.ts'

export interface FakePage {
  id: string
  status: string
  title: string
  spaceId: string
  parentId: string | null
  version: { number: number; message: string }
  body: { storage: { representation: 'storage'; value: string } }
  _links: { webui: string }
}

export interface FakeAttachment {
  id: string
  title: string
  page: string
  content: string
  version: { number: number; message: string }
}

export interface FakeWiki extends FakeVendor {
  pages: Map<string, FakePage>
  attachments: FakeAttachment[]
  /** Display names by the id of an account. */
  people: Record<string, string>
  /** How many results every search has. */
  results: number
  /** Whether results are paged by `start`, as older sites do, and not by a cursor. */
  byStart: boolean
}

/** The address of the site for people. */
export const SITE = 'https://acme.atlassian.net'
export const SPACE = { id: '65538', key: 'DOCS' }

export function fakeWiki(): FakeWiki {
  const server = fakeVendor(request => answer(request, state))
  const state: FakeWiki = Object.assign(server, {
    pages: new Map(),
    attachments: [],
    people: {},
    results: 250,
    byStart: false,
  })
  addPage(state, { title: 'Runbook', value: '<h1>Steps</h1><p>Turn it <strong>off</strong>.</p>' })
  return state
}

export function addPage(state: FakeWiki, page: { title: string; value: string; parentId?: string | null }): FakePage {
  const id = `${131_073 + state.pages.size}`
  const made: FakePage = {
    id,
    status: 'current',
    title: page.title,
    spaceId: SPACE.id,
    parentId: page.parentId ?? null,
    version: { number: 1, message: '' },
    body: { storage: { representation: 'storage', value: page.value } },
    _links: { webui: `/spaces/${SPACE.key}/pages/${id}` },
  }
  state.pages.set(id, made)
  return made
}

export function addAttachment(state: FakeWiki, title: string, content: string, page = '131073'): FakeAttachment {
  const version = { number: 1, message: '' }
  const made = { id: `att${70_000 + state.attachments.length}`, title, page, content, version }
  state.attachments.push(made)
  return made
}

function answer(given: VendorRequest, server: FakeWiki): Response | Promise<Response> {
  const gateway = /^\/ex\/confluence\/[^/]+/.exec(given.path)?.[0] ?? ''
  const request = { ...given, path: given.path.slice(gateway.length) }
  const state = gateway ? { ...server, url: SITE } : server
  const { method, path, query } = request
  // The media service knows no credential of Confluence.
  if (path.startsWith('/media/')) return contentOf(path, state)
  if (!isSigned(request)) return refusal(401, { message: 'Client must be authenticated' })
  const refused = refusedForm(request)
  if (refused) return refused
  if (path === '/wiki/rest/api/user/current') return Response.json({ type: 'known', displayName: 'Ada Wiki' })
  if (path === '/wiki/rest/api/search') return search(query, state)
  if (path === '/wiki/api/v2/spaces') {
    const results = query.get('keys') === SPACE.key ? [{ ...SPACE, name: 'Documents' }] : []
    return Response.json({ results, _links: { base: `${state.url}/wiki` } })
  }
  if (path === '/wiki/api/v2/users-bulk') return people(request, state)
  const [, ofPage] = /^\/wiki\/api\/v2\/pages\/(\d+)\/attachments$/.exec(path) ?? []
  if (ofPage) return listAttachments(ofPage, query, state)
  const [, owner, download] =
    /^\/wiki\/rest\/api\/content\/(\d+)\/child\/attachment(?:\/([^/]+)\/download)?$/.exec(path) ?? []
  if (download) return Response.redirect(`${server.url}/media/${download}`, 302)
  if (owner) return attach(owner, request, server)
  // The old ways to write are gone.
  if (path.startsWith('/wiki/rest/api/content')) return refusal(410, { message: 'deprecated' })
  if (path === '/wiki/api/v2/pages') return method === 'POST' ? create(request, state) : list(query, state)
  const id = /^\/wiki\/api\/v2\/pages\/(\d+)$/.exec(path)?.[1]
  const page = id && state.pages.get(id)
  if (!page) return refusal(404, { errors: [{ status: 404, code: 'NOT_FOUND' }] })
  return method === 'PUT' ? update(request, page, state) : Response.json(linked(page, state))
}

function people({ body }: VendorRequest, { people }: FakeWiki): Response {
  const ids = isObject(body) && Array.isArray(body.accountIds) ? body.accountIds : []
  if (ids.length === 0 || ids.length > 250) return refusal(400, { message: 'accountIds' })
  const results = ids.flatMap(id => (people[id] ? [{ accountId: id, displayName: people[id] }] : []))
  return Response.json({ results })
}

function contentOf(path: string, { attachments }: FakeWiki): Response {
  const found = attachments.find(({ id }) => path === `/media/${id}`)
  return found ? new Response(found.content) : refusal(404)
}

function listAttachments(page: string, query: URLSearchParams, state: FakeWiki): Response {
  if (!state.pages.has(page)) return refusal(404, { errors: [{ status: 404, code: 'NOT_FOUND' }] })
  const all = state.attachments.filter(
    each => each.page === page && (!query.has('filename') || each.title === query.get('filename')),
  )
  const start = Number(query.get('cursor') ?? 0)
  const end = start + Number(query.get('limit') ?? 50)
  const results = all.slice(start, end).map(({ id, title, content, version }) => {
    return { id, status: 'current', title, mediaType: 'text/plain', fileSize: Buffer.byteLength(content), version }
  })
  const next = `/wiki/api/v2/pages/${page}/attachments?limit=${end - start}&cursor=${end}`
  return Response.json({ results, _links: { base: `${state.url}/wiki`, ...(end < all.length && { next }) } })
}

/** Creates an attachment, or a new version of the one with this name. */
async function attach(page: string, request: VendorRequest, state: FakeWiki): Promise<Response> {
  if (request.headers.get('x-atlassian-token') !== 'nocheck') return refusal(403, 'XSRF check failed')
  if (request.method !== 'PUT' || !state.pages.has(page)) return refusal(404)
  const form = await formOf(request)
  if (!form) return refusal(400, { message: 'file' })
  const there = state.attachments.find(each => each.page === page && each.title === form.filename)
  const made = there ?? addAttachment(state, form.filename, '', page)
  const number = made.version.number + (there ? 1 : 0)
  Object.assign(made, { content: form.content, version: { number, message: form.comment } })
  return Response.json({ results: [{ id: made.id, type: 'attachment', status: 'current', title: made.title }] })
}

const linked = (page: FakePage, { url }: FakeWiki) => ({ ...page, _links: { ...page._links, base: `${url}/wiki` } })

function list(query: URLSearchParams, state: FakeWiki): Response {
  const results = [...state.pages.values()].filter(
    ({ title, spaceId, status }) =>
      (!query.has('title') || title === query.get('title')) &&
      (!query.has('space-id') || spaceId === query.get('space-id')) &&
      status === (query.get('status') ?? 'current'),
  )
  const withBody = query.get('body-format') === 'storage'
  const shown = results.map(page => (withBody ? page : { ...page, body: {} }))
  return Response.json({ results: shown, _links: { base: `${state.url}/wiki` } })
}

/** The form of a body that both writes have. Storage format must be XML. */
function storageOf(body: unknown): string | Response {
  const { representation, value } = isObject(body) ? body : {}
  if (representation !== 'storage' || typeof value !== 'string') return refusal(400, { message: 'body is invalid' })
  return /<(br|hr)>|&(?!amp;|lt;|gt;|quot;|#)/.test(value) ? refusal(400, { message: 'Error parsing xhtml' }) : value
}

function create({ body }: VendorRequest, state: FakeWiki): Response {
  if (!isObject(body) || body.spaceId !== SPACE.id) return refusal(400, { message: 'spaceId' })
  const { title, parentId = null } = body
  if (typeof title !== 'string' || !title || title.length > 255) return refusal(400, { message: 'title' })
  if (parentId !== null && !state.pages.has(parentId as string)) return refusal(404, { message: 'parent' })
  if ([...state.pages.values()].some(page => page.title === title)) {
    return refusal(400, { message: 'A page with this title already exists' })
  }
  const value = storageOf(body.body)
  if (value instanceof Response) return value
  return Response.json(linked(addPage(state, { title, value, parentId: parentId as string | null }), state))
}

function update({ body }: VendorRequest, page: FakePage, state: FakeWiki): Response {
  if (!isObject(body) || body.id !== page.id || body.status !== 'current' || typeof body.title !== 'string') {
    return refusal(400, { message: 'id, status and title are required' })
  }
  const { number, message = '' } = body.version as { number: number; message?: string }
  if (number !== page.version.number + 1) return refusal(409, { message: `Version must be incremented` })
  const value = storageOf(body.body)
  if (value instanceof Response) return value
  Object.assign(page, { title: body.title, version: { number, message } })
  page.body.storage.value = value
  return Response.json(linked(page, state))
}

function search(query: URLSearchParams, state: FakeWiki): Response {
  if (!query.get('cql')) return refusal(400, { message: 'cql is required' })
  const limit = Number(query.get('limit') ?? 25)
  if (!(limit >= 1 && limit <= 100)) return refusal(400, { message: 'limit' })
  const start = Number((query.get('cursor') ?? '').replace(/^raw_/, '') || (query.get('start') ?? 0))
  const ids = Array.from({ length: state.results }, (_, at) => at + 1).slice(start, start + limit)
  const results = ids.map(id => ({
    content: { id: `${id}`, type: 'page', status: 'current', title: `Page ${id}` },
    title: `@@@hl@@@Page@@@endhl@@@ ${id}`,
    url: `/spaces/DOCS/pages/${id}`,
    entityType: 'content',
    lastModified: '2026-02-01T10:30:00.000Z',
  }))
  const end = start + ids.length
  const from = state.byStart ? `start=${end}` : `cursor=raw_${end}`
  const next = end < state.results ? { next: `/rest/api/search?cql=x&limit=${limit}&${from}` } : {}
  const _links = { base: `${state.url}/wiki`, context: '/wiki', ...next }
  return Response.json({ results, start, limit, size: ids.length, totalSize: state.results, _links })
}
