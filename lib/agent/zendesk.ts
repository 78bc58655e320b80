// Zendesk Support: tickets, their comments and searches, and how it pages each of them.
// https://developer.zendesk.com/api-reference/ticketing/tickets/tickets/
// https://developer.zendesk.com/api-reference/introduction/pagination/

import type { JsonObject } from '../json.ts'
import { type AgentContext, AgentError } from './define.ts'
import { basicAuth, jsonApi, pathSegment } from './vendor.ts'

const PAGE = 100
const SEARCH_MOST = 1_000
const AFTER = 'page[after]'

export interface ZendeskSettings {
  subdomain: string
  email: string
  api_token: string
  base_url?: string
}
type Context = AgentContext<ZendeskSettings>

export interface Ticket extends JsonObject {
  id: number
  status: string
  subject: string | null
}

export interface Comment {
  id: number
  body: string
  public: boolean
  author_id: number
  created_at: string
  metadata?: { custom?: Record<string, unknown> }
}

export interface Found extends JsonObject {
  id: number
  result_type: string
  url: string
}

/** Cursor pagination, and the offsets of accounts and searches that do not have it. */
interface Paging {
  meta?: { has_more: boolean; after_cursor: string | null }
  next_page?: string | null
  count?: number
}

/** Calls signed with the account's API token. */
export function api(context: Context) {
  const { email, api_token } = context.settings
  const headers = { authorization: basicAuth(`${email}/token`, api_token) }
  return jsonApi(context, { setting: 'api_token', base: siteOf(context), headers })
}

/** The address in front of the vendor's paths. */
export function siteOf({ settings: { base_url, subdomain } }: Context): string {
  return (base_url ?? `https://${subdomain}.zendesk.com`).replace(/\/+$/, '')
}

export async function getTicket(ref: string, context: Context): Promise<Ticket> {
  const { ticket } = await api(context)<{ ticket: Ticket }>(`get ticket ${ref}`, pathOf(ref))
  return ticket
}

function pathOf(ticket: string): string {
  return `/api/v2/tickets/${pathSegment(ticket)}`
}

export async function commentsPage(ticket: string, cursor: string | undefined, context: Context) {
  const query = { 'page[size]': PAGE, ...fromCursor(cursor) }
  const path = `${pathOf(ticket)}/comments`
  const reply = await api(context)<Paging & { comments: Comment[] }>(`get comments of ticket ${ticket}`, path, {
    query,
  })
  return { items: reply.comments, next: nextOf(reply), total: reply.count }
}

/** The vendor's search ends at 1,000 results; where more are wanted of one type, its export of a search is read instead. */
export async function searchPage(text: string, cursor: string | undefined, wanted: number, context: Context) {
  if (cursor?.startsWith(AFTER)) return exportPage(text, cursor, context)
  const query = { query: text, per_page: PAGE, ...fromCursor(cursor) }
  const reply = await api(context)<Paging & { results: Found[] }>('search', '/api/v2/search', { query })
  const { count = 0 } = reply
  const isFirst = cursor === undefined
  if (isFirst && Math.min(count, wanted) > SEARCH_MOST && typeOf(text)) {
    return { ...(await exportPage(text, undefined, context)), total: count }
  }
  const next = nextOf(reply)
  // The page after the thousandth result is answered 422.
  const isLast = Number(/^page=(\d+)$/.exec(next ?? '')?.[1]) > SEARCH_MOST / PAGE
  return { items: reply.results, next: isLast ? null : next, total: reply.count }
}

/** The one type of things that a query names. */
function typeOf(text: string): string | null {
  const types = [...text.matchAll(/(?<![^\s(])type:"?(ticket|user|organization|group)"?(?=\s|$)/gi)]
  return types.length === 1 ? types[0]![1]!.toLowerCase() : null
}

/** An export of a search counts nothing, and has no end but the last result. */
async function exportPage(text: string, cursor: string | undefined, context: Context) {
  const query = { query: text, 'filter[type]': typeOf(text)!, 'page[size]': PAGE, ...fromCursor(cursor) }
  const call = api(context)<Paging & { results: Found[] }>
  const reply = await call('export a search', '/api/v2/search/export', { query })
  return { items: reply.results, next: nextOf(reply) }
}

/** What asks for the next page, as `parameter=value`. */
function nextOf({ meta, next_page }: Paging): string | null {
  if (meta) return meta.has_more && meta.after_cursor ? `${AFTER}=${meta.after_cursor}` : null
  const page = next_page && URL.parse(next_page)?.searchParams.get('page')
  return page ? `page=${page}` : null
}

function fromCursor(cursor: string | undefined): Record<string, string> {
  const [name, ...value] = cursor?.split('=') ?? []
  return name ? { [name]: value.join('=') } : {}
}

interface Updated {
  ticket: Ticket
  audit?: { events?: { id: number; type: string }[] }
}

/** Updates a ticket. Sends it once more on 409, which says that another update of the ticket was under way and this one was not done. */
export async function update(ref: string, doing: string, ticket: JsonObject, context: Context): Promise<Updated> {
  const send = () => api(context)<Updated>(`${doing} ticket ${ref}`, pathOf(ref), { method: 'PUT', body: { ticket } })
  try {
    return await send()
  } catch (error) {
    if (!(error instanceof AgentError) || error.code !== 'conflict') throw error
    context.log(`ticket ${ref} was being updated by someone else: trying once more`)
    return send()
  }
}
