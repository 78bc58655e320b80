// Confluence Cloud as far as the wiki agent goes: pages of one space, their versions, and a search.

import { isObject } from '../../lib/json.ts'
import { type FakeVendor, fakeVendor, refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'
import { isSigned, refusedForm } from './atlassian.ts'

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

export interface FakeWiki extends FakeVendor {
  pages: Map<string, FakePage>
  /** How many results every search has. */
  results: number
  /** Whether results are paged by `start`, as older sites do, and not by a cursor. */
  byStart: boolean
}

export const SPACE = { id: '65538', key: 'DOCS' }

export function fakeWiki(): FakeWiki {
  const server = fakeVendor(request => answer(request, state))
  const state: FakeWiki = Object.assign(server, { pages: new Map(), results: 250, byStart: false })
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

function answer(request: VendorRequest, state: FakeWiki): Response {
  const { method, path, query } = request
  if (!isSigned(request)) return refusal(401, { message: 'Client must be authenticated' })
  const refused = refusedForm(request)
  if (refused) return refused
  if (path === '/wiki/rest/api/user/current') return Response.json({ type: 'known', displayName: 'Ada Wiki' })
  if (path === '/wiki/rest/api/search') return search(query, state)
  if (path === '/wiki/api/v2/spaces') {
    return Response.json({ results: query.get('keys') === SPACE.key ? [{ ...SPACE, name: 'Documents' }] : [] })
  }
  // The old ways to write are gone.
  if (path.startsWith('/wiki/rest/api/content')) return refusal(410, { message: 'deprecated' })
  if (path === '/wiki/api/v2/pages') return method === 'POST' ? create(request, state) : list(query, state)
  const id = /^\/wiki\/api\/v2\/pages\/(\d+)$/.exec(path)?.[1]
  const page = id && state.pages.get(id)
  if (!page) return refusal(404, { errors: [{ status: 404, code: 'NOT_FOUND' }] })
  return method === 'PUT' ? update(request, page, state) : Response.json(linked(page, state))
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
