// Zendesk Support as far as the helpdesk agent goes: one ticket that can be read, commented and closed, and a search.

import { isObject } from '../../lib/json.ts'
import { type FakeVendor, fakeVendor, refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'

export const ACCOUNT = { subdomain: 'acme', email: 'agent@acme.test', api_token: 'canary-zendesk-token' }

export interface FakeComment {
  id: number
  type: 'Comment'
  body: string
  html_body: string
  public: boolean
  author_id: number
  created_at: string
  metadata: { system: object; custom: Record<string, unknown> }
}

export interface FakeHelpdesk extends FakeVendor {
  ticket: { id: number; status: string; subject: string; url: string; updated_at: string }
  comments: FakeComment[]
  /** How many results every search has. */
  results: number
}

const AUTHORIZATION = `Basic ${btoa(`${ACCOUNT.email}/token:${ACCOUNT.api_token}`)}`
const STATUSES = ['new', 'open', 'pending', 'hold', 'solved', 'closed']

export function fakeHelpdesk(): FakeHelpdesk {
  const server = fakeVendor(request => answer(request, state))
  const state: FakeHelpdesk = Object.assign(server, {
    ticket: {
      ...{ id: 35436, status: 'open', subject: 'Printer on fire', updated_at: '2026-02-01T10:30:00Z' },
      url: `${server.url}/api/v2/tickets/35436.json`,
    },
    comments: [],
    results: 250,
  })
  return state
}

function answer(request: VendorRequest, state: FakeHelpdesk): Response {
  const { method, path, query, headers } = request
  if (headers.get('authorization') !== AUTHORIZATION) return refusal(401, { error: "Couldn't authenticate you" })
  if (method === 'GET' && path === '/api/v2/users/me') {
    return Response.json({ user: { id: 1, name: 'An agent', email: ACCOUNT.email, role: 'agent' } })
  }
  if (method === 'GET' && path === '/api/v2/search') return search(query, state)
  if (method === 'GET' && path === '/api/v2/search/export') return exportSearch(query, state)
  const [, id, rest] = /^\/api\/v2\/tickets\/(\d+)(\/comments)?$/.exec(path) ?? []
  if (!id) return refusal(404, { error: 'InvalidEndpoint' })
  if (Number(id) !== state.ticket.id) return refusal(404, { error: 'RecordNotFound', description: 'Not found' })
  if (rest && method === 'GET') return listComments(query, state)
  if (method === 'GET') return Response.json({ ticket: state.ticket })
  return method === 'PUT' ? update(request, state) : refusal(405)
}

/** Offset pagination, at most 100 a page and 1,000 in all. */
function search(query: URLSearchParams, state: FakeHelpdesk): Response {
  if (!query.get('query')) return refusal(422, { error: 'Unprocessable Entity', description: 'query is missing' })
  const size = Number(query.get('per_page') ?? 100)
  const page = Number(query.get('page') ?? 1)
  if (!(size >= 1 && size <= 100) || page * size > 1_000) return refusal(422, { error: 'InvalidPaginationDepth' })
  const results = resultsOf((page - 1) * size, page * size, state)
  const next = page * size < state.results ? `https://elsewhere.test/api/v2/search.json?page=${page + 1}&query=x` : null
  return Response.json({ results, count: state.results, next_page: next, previous_page: null, facets: null })
}

function resultsOf(from: number, to: number, state: FakeHelpdesk) {
  const ids = Array.from({ length: state.results }, (_, at) => at + 1).slice(from, to)
  return ids.map(id => ({
    id,
    result_type: id === 2 ? 'user' : 'ticket',
    url: `${state.url}/api/v2/things/${id}.json`,
    ...(id === 2 ? { name: 'A user' } : { status: 'open', subject: `Ticket ${id}`, description: 'long '.repeat(20) }),
  }))
}

/** Cursor pagination, of one type of things, without a count. */
function exportSearch(query: URLSearchParams, state: FakeHelpdesk): Response {
  const size = Number(query.get('page[size]') ?? 100)
  const from = Number(query.get('page[after]') ?? 0)
  const isTyped = /^(ticket|user|organization|group)$/.test(query.get('filter[type]') ?? '')
  if (!query.get('query') || !isTyped || !(size >= 1 && size <= 1_000)) return refusal(422, { error: 'InvalidValue' })
  const has_more = from + size < state.results
  const meta = { has_more, after_cursor: `${from + size}`, before_cursor: null }
  return Response.json({ results: resultsOf(from, from + size, state), facets: null, meta, links: {} })
}

/** Cursor pagination. */
function listComments(query: URLSearchParams, state: FakeHelpdesk): Response {
  const size = Number(query.get('page[size]'))
  if (!(size >= 1 && size <= 100)) return refusal(400, { error: 'InvalidPaginationParameter' })
  const after = query.get('page[after]')
  const from = after === null ? 0 : Number(/^cursor=(\d+)==$/.exec(after)?.[1] ?? Number.NaN)
  if (Number.isNaN(from)) return refusal(400, { error: 'InvalidPaginationParameter' })
  const has_more = from + size < state.comments.length
  const meta = { has_more, after_cursor: has_more ? `cursor=${from + size}==` : null, before_cursor: null }
  return Response.json({ comments: state.comments.slice(from, from + size), meta, links: {} })
}

function update({ headers, body }: VendorRequest, state: FakeHelpdesk): Response {
  const ticket = isObject(body) && isObject(body.ticket) ? body.ticket : null
  if (!headers.get('content-type')?.startsWith('application/json') || !ticket)
    return refusal(400, { error: 'No ticket' })
  if (state.ticket.status === 'closed') return refusal(422, { error: 'RecordInvalid', description: 'closed' })
  const { status, comment, metadata = {}, safe_update, updated_stamp } = ticket
  if (safe_update === true && updated_stamp !== state.ticket.updated_at) {
    return refusal(409, { error: 'UpdateConflict', description: 'Safe Update prevented the update' })
  }
  const events: object[] = []
  if (status !== undefined) {
    if (!STATUSES.includes(status as string)) return refusal(422, { error: 'RecordInvalid', details: { status: [] } })
    state.ticket.status = status as string
    events.push({ id: 9_001, type: 'Change', field_name: 'status' })
  }
  if (comment !== undefined) {
    const text = isObject(comment) ? (comment.html_body ?? comment.body) : undefined
    if (!isObject(comment) || typeof text !== 'string') return refusal(422, { error: 'RecordInvalid' })
    const added = addComment(state, text, comment.public !== false, metadata as never)
    if (typeof comment.html_body === 'string') added.body = text.replace(/<[^>]+>/g, '')
    events.push({ id: added.id, type: 'Comment' })
  }
  touch(state)
  return Response.json({ ticket: state.ticket, audit: { id: 1, ticket_id: state.ticket.id, events } })
}

/** A ticket that has changed says so, to the second. */
export function touch({ ticket }: FakeHelpdesk): void {
  ticket.updated_at = new Date(Date.parse(ticket.updated_at) + 1_000).toISOString().replace('.000', '')
}

export function addComment(
  state: FakeHelpdesk,
  body: string,
  isPublic = true,
  custom: Record<string, unknown> = {},
): FakeComment {
  const comment: FakeComment = {
    id: 5_000 + state.comments.length,
    type: 'Comment',
    body,
    html_body: body,
    public: isPublic,
    author_id: 7,
    created_at: '2026-02-01T10:30:00Z',
    metadata: { system: {}, custom },
  }
  state.comments.push(comment)
  return comment
}
