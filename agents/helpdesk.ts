// helpdesk: reads and answers tickets in Zendesk Support.
//
//   settings: subdomain (acme, or acme.zendesk.com), email, api_token, base_url? (instead of https://<subdomain>.zendesk.com)
//   get_ticket     sources: [{ name, ref: ticket id }]                    the ticket as JSON
//   get_comments   sources: [{ name, ref: ticket id, limit? }]            oldest first
//   search         sources: [{ name, ref: query, limit? }]                add `type:ticket` to find tickets only, and
//                                                                         more than 1,000
//   add_comment    target_entries: [{ name, ref, file, public? }]         an internal note unless `public: true`; HTML
//                                                                         when the file ends in .html, else Markdown,
//                                                                         which Zendesk renders
//   update_status  target_entries: [{ name, ref, status | file }]         new, open, pending, hold, solved, closed
//
// Permissions: the account of `email` must be an agent with access to the tickets, and an admin must enable API tokens.
// Zendesk's search ends at 1,000 results, which `truncated` shows. If a query for one type asks for more, the search
// export is used instead, which sorts by creation time.
// What a repetition after a lost reply meets. add_comment: the idempotency key in the metadata of the comment, which is
// looked for in the ticket for 60 s; and an update of the ticket is refused once the ticket has changed (safe_update), so
// that a comment that lands after its repetition is no second one. update_status: the same status.
// https://developer.zendesk.com/api-reference/ticketing/tickets/tickets/
// https://developer.zendesk.com/api-reference/ticketing/tickets/ticket_comments/
// https://developer.zendesk.com/api-reference/ticketing/ticket-management/search/
// https://developer.zendesk.com/api-reference/introduction/pagination/

import {
  type AgentContext,
  AgentError,
  type AgentResult,
  agent,
  BaseUrl,
  basicAuth,
  beforehand,
  entryOf,
  type JsonObject,
  jsonApi,
  Limit,
  listingOf,
  needsOne,
  pagesOf,
  pathSegment,
  readText,
  secret,
  Type,
  writeListing,
} from 'cadre'
import { filePath, foundAmong, nullable, wordOf, zendeskSite, zendeskSubdomain } from 'cadre/vendors'

const PAGE = 100
const SEARCH_MOST = 1_000
/** The prefix of the cursors of an export. */
const AFTER = 'page[after]'
/** Maximum number of bytes that Zendesk stores of a comment. */
const COMMENT_MOST = 65_535
/** How often a comment is sent to a ticket that others update at the same time. */
const MOST_TRIES = 3
/** What an account needs for each of the actions. */
const AGENT = 'the role agent'
const STATUSES = ['new', 'open', 'pending', 'hold', 'solved', 'closed'] as const
/** The field of a comment's metadata that contains the idempotency key. */
const MARK = 'cadre_key'

const Settings = Type.Object({
  subdomain: Type.String({ minLength: 1, description: 'The account: `acme` of acme.zendesk.com.' }),
  email: Type.String({
    minLength: 1,
    description: 'The e-mail address of the agent in whose name the calls are made.',
  }),
  api_token: secret({ description: 'An API token (Admin Center → Apps and integrations → APIs → API tokens).' }),
  base_url: BaseUrl,
})
type Context = AgentContext<Type.Static<typeof Settings>>

const Text = Type.String({ minLength: 1 })
const ticketId = Type.String({
  pattern: '^[0-9]+$',
  'x-expected': 'the number of a ticket',
  description: 'The number of the ticket.',
})

interface Account {
  name: string
  email: string | null
  role: string
}

interface Ticket extends JsonObject {
  id: number
  status: string
  subject?: string | null
  updated_at?: string
}

/** The reply to an update: the ticket, and the events that the update caused. */
interface Updated {
  ticket: Ticket
  audit?: { events?: { id: number; type: string }[] }
}

interface Comment {
  id: number
  body: string
  public: boolean
  author_id: number
  created_at: string
  metadata?: { custom?: Record<string, unknown> }
}

interface Found extends JsonObject {
  id: number
  result_type: string
  url: string
}

/** Cursor pagination, or offsets for accounts and searches that do not support it. */
interface Paging {
  meta?: { has_more: boolean; after_cursor: string | null }
  next_page?: string | null
  count?: number
}

const Listed = Type.Object({ id: Type.Integer() })
/** What Zendesk answers at least: anything else comes from somebody else. */
const Reply = {
  account: Type.Object({ user: Type.Object({ role: Text, name: Text }) }),
  ticket: Type.Object({
    ticket: Type.Object({
      id: Type.Integer(),
      status: Text,
      subject: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    }),
  }),
  comments: Type.Object({ comments: Type.Array(Listed) }),
  results: Type.Object({ results: Type.Array(Listed) }),
}

const ticket = {
  id: Type.Integer({ description: 'The number of the ticket.' }),
  url: Type.String({ description: 'Its address in a browser.' }),
  status: Type.String({ description: 'Its status, such as `open`.' }),
  subject: nullable(Type.String(), { description: 'Its subject.' }),
}
const TicketData = Type.Object(ticket)
const CommentsData = listingOf({
  id: Type.Integer({ description: 'The id of the comment.' }),
  body: Type.String({ description: 'Its text.' }),
  public: Type.Boolean({ description: 'Whether the requester sees it.' }),
  author_id: Type.Integer({ description: 'The id of its author.' }),
  created_at: Type.String({ description: 'When it was written.' }),
})
const FoundData = listingOf({
  ...ticket,
  id: Type.Integer({ description: 'The number of the ticket, or the id of what else was found.' }),
  status: nullable(Type.String(), { description: 'Its status; null for what is not a ticket.' }),
  subject: Type.Optional(nullable(Type.String(), { description: 'The subject of a ticket.' })),
  type: Type.Optional(Type.String({ description: 'What it is, where it is not a ticket: `user`, for example.' })),
  name: Type.Optional(nullable(Type.String(), { description: 'The name of what is not a ticket.' })),
})

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Reads and answers tickets in Zendesk.',
  settings: Settings,
  addresses: settings => [siteOf({ settings })],
  account: apiOf,
  check({ subdomain, email }) {
    const isUnknown = subdomain !== undefined && zendeskSubdomain(subdomain) === null
    return {
      subdomain:
        isUnknown &&
        'must be the part before .zendesk.com: write it as acme, or the address of a host of your own as base_url',
      email:
        email !== undefined &&
        !email.includes('@') &&
        'must be the e-mail address of the account: write it as me@acme.com',
    }
  },
  async doctor(context) {
    const call = zendesk(context)<{ user: Account }>
    const { user } = await call('get the account', '/api/v2/users/me', { reply: Reply.account })
    const missing = user.role === 'end-user' ? [AGENT] : []
    return { who: user.email ?? user.name, missing, text: `${siteOf(context)}, as ${user.role}` }
  },
  actions: {
    get_ticket: {
      description: 'Reads a ticket.',
      direction: 'source',
      effect: 'read',
      permissions: [AGENT],
      example: { name: 'ticket.json', ref: '1234' },
      entry: entryOf({ ref: ticketId }),
      data: TicketData,
      async run({ name, ref }, context) {
        const ticket = await getTicket(ref, context)
        await context.write(name, ticket)
        return {
          text: `ticket ${ref} is ${ticket.status}: ${ticket.subject ?? 'no subject'}`,
          data: brief(ticket, context),
        }
      },
    },
    get_comments: {
      description: 'Reads the comments of a ticket, the oldest first.',
      direction: 'source',
      effect: 'read',
      permissions: [AGENT],
      example: { name: 'comments.json', ref: '1234' },
      entry: entryOf({ ref: ticketId, limit: Limit }),
      data: CommentsData,
      async run({ name, ref, limit }, context) {
        const data = await writeListing(context, {
          name,
          limit,
          page: cursor => commentsPage(ref, cursor, context),
          brief: ({ id, body, public: isPublic, author_id, created_at }) => {
            return { id, body, public: isPublic, author_id, created_at }
          },
        })
        return { text: `${data.items.length} of ${data.total} comments of ticket ${ref}`, data }
      },
    },
    search: {
      description: 'Searches tickets, users and organizations with the search syntax of Zendesk.',
      direction: 'source',
      effect: 'read',
      permissions: [AGENT],
      example: { name: 'open.json', ref: 'type:ticket status:open', limit: 50 },
      entry: entryOf({
        ref: Type.String({ minLength: 1, description: 'The search, such as `type:ticket status:open`.' }),
        limit: Limit,
      }),
      data: FoundData,
      async run({ name, ref, limit }, context) {
        const data = await writeListing(context, {
          name,
          limit,
          page: (cursor: string | undefined, wanted) => searchPage(ref, cursor, wanted, context),
          brief: found => (isTicket(found) ? brief(found, context) : briefOther(found)),
        })
        return { text: `${data.items.length} of ${data.total} results`, data }
      },
    },
    add_comment: {
      description: 'Adds a comment to a ticket: an internal note, unless it is public.',
      direction: 'target',
      effect: 'once',
      permissions: [AGENT],
      example: { name: 'answer', ref: '1234', file: 'files/write/answer.md', public: true },
      entry: entryOf({
        ref: ticketId,
        file: filePath('The text of the comment: HTML in a file .html, otherwise Markdown.'),
        public: Type.Optional(Type.Boolean({ description: 'Whether the requester sees the comment; default false.' })),
      }),
      data: Type.Object({ ...ticket, comment_id: nullable(Type.Integer(), { description: 'The id of the comment.' }) }),
      async run(entry, context) {
        const body = await readText(context, entry.file, COMMENT_MOST)
        const text = /\.html?$/i.test(entry.file) ? { html_body: body } : { body }
        const change = { comment: { ...text, public: entry.public ?? false }, metadata: { [MARK]: context.key } }
        return addComment(entry.ref, change, context)
      },
      async find({ ref }, context) {
        const mine = await commentsOf(ref, context)
        if (mine.length === 0) return null
        const ticket = await getTicket(ref, context)
        return foundAmong(mine.map(id => commented(ticket, id, context)))
      },
    },
    update_status: {
      description: 'Sets the status of a ticket.',
      direction: 'target',
      effect: 'idempotent',
      permissions: [AGENT],
      example: { name: 'solved', ref: '1234', status: 'solved' },
      entry: entryOf(
        {
          ref: ticketId,
          status: Type.Optional(Type.Enum([...STATUSES], { description: 'The new status.' })),
          file: Type.Optional(filePath('A file that contains the new status.')),
        },
        needsOne('status', 'file'),
      ),
      data: TicketData,
      async run({ ref, status, file }, context) {
        const wanted = (await wordOf(context, status, file)).toLowerCase()
        if (!(STATUSES as readonly string[]).includes(wanted)) {
          const problem = `${JSON.stringify(wanted.slice(0, 40))} is not a valid status`
          const hint = `${file} must contain one of ${STATUSES.join(', ')}`
          throw new AgentError(`[${context.callName}] ticket ${ref}: ${problem}`, {
            code: 'invalid_request',
            hint,
            sent: 'no',
          })
        }
        const { ticket } = await update(ref, 'set the status of', { status: wanted }, context)
        return { text: `ticket ${ref} is ${ticket.status}`, data: brief(ticket, context) }
      },
    },
  },
})

const zendesk = (context: Context) => jsonApi(context, apiOf(context))

/** The API with the account's token. */
function apiOf(context: Context) {
  const { email, api_token } = context.settings
  // Examples of the vendor show the user as `<email>/token`, which is accepted as a setting as well.
  const headers = { authorization: basicAuth(`${email.replace(/\/token$/, '')}/token`, api_token) }
  return { setting: 'api_token', base: siteOf(context), headers }
}

/** The address that precedes Zendesk's paths. */
function siteOf({ settings: { base_url, subdomain } }: Pick<Context, 'settings'>): string {
  return zendeskSite(subdomain, base_url)
}

async function getTicket(ref: string, context: Context): Promise<Ticket> {
  const call = zendesk(context)<{ ticket: Ticket }>
  const { ticket } = await call(`get ticket ${ref}`, pathOf(ref), { reply: Reply.ticket })
  return ticket
}

function pathOf(ticket: string): string {
  return `/api/v2/tickets/${pathSegment(ticket)}`
}

async function commentsPage(ticket: string, cursor: string | undefined, context: Context) {
  const query = { 'page[size]': PAGE, ...fromCursor(cursor) }
  const path = `${pathOf(ticket)}/comments`
  const reply = await zendesk(context)<Paging & { comments: Comment[] }>(`get comments of ticket ${ticket}`, path, {
    query,
    reply: Reply.comments,
  })
  return { items: reply.comments, next: nextOf(reply), total: reply.count }
}

/**
 * A page of search results. Zendesk's search ends at 1,000 results, so the search export is used when a query for one
 * type asks for more.
 */
async function searchPage(text: string, cursor: string | undefined, wanted: number, context: Context) {
  if (cursor?.startsWith(AFTER)) return exportPage(text, cursor, context)
  const query = { query: text, per_page: PAGE, ...fromCursor(cursor) }
  const call = zendesk(context)<Paging & { results: Found[] }>
  const reply = await call('search', '/api/v2/search', { query, reply: Reply.results })
  const { count = 0 } = reply
  const isFirst = cursor === undefined
  if (isFirst && Math.min(count, wanted) > SEARCH_MOST && typeOf(text)) {
    return { ...(await exportPage(text, undefined, context)), total: count }
  }
  const next = nextOf(reply)
  // Zendesk answers 422 for a page beyond the thousandth result.
  const isLast = Number(/^page=(\d+)$/.exec(next ?? '')?.[1]) > SEARCH_MOST / PAGE
  return { items: reply.results, next: isLast ? null : next, total: reply.count }
}

/** The type that a query names; null if it names none or several. */
function typeOf(text: string): string | null {
  const types = [...text.matchAll(/(?<![^\s(])type:"?(ticket|user|organization|group)"?(?=\s|$)/gi)]
  return types.length === 1 ? types[0]![1]!.toLowerCase() : null
}

/** A page of a search export, which reports no total and has no limit on the number of results. */
async function exportPage(text: string, cursor: string | undefined, context: Context) {
  const query = { query: text, 'filter[type]': typeOf(text)!, 'page[size]': PAGE, ...fromCursor(cursor) }
  const call = zendesk(context)<Paging & { results: Found[] }>
  const reply = await call('export a search', '/api/v2/search/export', { query, reply: Reply.results })
  return { items: reply.results, next: nextOf(reply) }
}

/** The parameter for the next page, as `parameter=value`. */
function nextOf({ meta, next_page }: Paging): string | null {
  if (meta) return meta.has_more && meta.after_cursor ? `${AFTER}=${meta.after_cursor}` : null
  const page = next_page && URL.parse(next_page)?.searchParams.get('page')
  return page ? `page=${page}` : null
}

function fromCursor(cursor: string | undefined): Record<string, string> {
  const [name, ...value] = cursor?.split('=') ?? []
  return name ? { [name]: value.join('=') } : {}
}

/**
 * Comments on a ticket that is still what it was when we looked for an earlier comment of this entry. On 409 somebody has
 * changed it, or this is a repetition, which is then found.
 */
async function addComment(ref: string, change: JsonObject, context: Context): Promise<AgentResult> {
  for (let tries = 1; ; tries++) {
    // Read before the comments: what is written after them changes it.
    const { updated_at: updated_stamp } = await beforehand(() => getTicket(ref, context))
    if (context.attempt > 1 || tries > 1) {
      const [mine] = await beforehand(() => commentsOf(ref, context))
      if (mine !== undefined) return commented(await getTicket(ref, context), mine, context)
    }
    const ticket = { ...change, ...(updated_stamp !== undefined && { safe_update: true, updated_stamp }) }
    const headers = { 'idempotency-key': new Bun.CryptoHasher('sha256').update(JSON.stringify(ticket)).digest('hex') }
    const options = { method: 'PUT', body: { ticket }, headers, reply: Reply.ticket }
    try {
      const made = await zendesk(context)<Updated>(`comment on ticket ${ref}`, pathOf(ref), options)
      return commented(made.ticket, made.audit?.events?.find(event => event.type === 'Comment')?.id, context)
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== 'conflict' || tries === MOST_TRIES) throw error
      context.log(`ticket ${ref} was being updated by someone else; trying once more`)
    }
  }
}

/** The ids of the comments with the mark of this entry. */
async function commentsOf(ref: string, context: Context): Promise<number[]> {
  const mine: number[] = []
  for await (const { items } of pagesOf((cursor?: string) => commentsPage(ref, cursor, context))) {
    mine.push(...items.filter(comment => comment.metadata?.custom?.[MARK] === context.key).map(({ id }) => id))
  }
  return mine
}

/**
 * Updates a ticket. On 409 it tries once more, because that status means that another update was in progress and this
 * one was not applied.
 */
async function update(ref: string, doing: string, ticket: JsonObject, context: Context): Promise<Updated> {
  const options = { method: 'PUT', body: { ticket }, reply: Reply.ticket }
  const send = () => zendesk(context)<Updated>(`${doing} ticket ${ref}`, pathOf(ref), options)
  try {
    return await send()
  } catch (error) {
    if (!(error instanceof AgentError) || error.code !== 'conflict') throw error
    context.log(`ticket ${ref} was being updated by someone else; trying once more`)
    return send()
  }
}

function commented(ticket: Ticket, comment: number | undefined, context: Context): AgentResult {
  const data = { ...brief(ticket, context), comment_id: comment ?? null }
  return {
    text: `commented on ticket ${ticket.id}`,
    data,
    external: { id: String(comment ?? ticket.id), url: data.url },
  }
}

function brief({ id, status, subject }: Ticket, context: Context) {
  return { id, url: `${siteOf(context)}/agent/tickets/${id}`, status, subject: subject ?? null }
}

function isTicket(found: Found): found is Found & Ticket {
  return found.result_type === 'ticket'
}

/** A result that is not a ticket. A query without `type:ticket` also finds users, groups and organizations. */
function briefOther({ id, url, result_type, name }: Found) {
  return { id, url, status: null, type: result_type, name: name ?? null }
}
