// helpdesk: reads and answers tickets in Zendesk Support.
//
//   settings: subdomain (acme of acme.zendesk.com), email, api_token, base_url? (instead of https://<subdomain>.zendesk.com)
//   get_ticket     sources: [{ name, ref: ticket id }]                    the ticket as JSON
//   get_comments   sources: [{ name, ref: ticket id, limit? }]            oldest first
//   search         sources: [{ name, ref: query, limit? }]                add `type:ticket` to find tickets only, and
//                                                                         more than 1,000
//   add_comment    target_entries: [{ name, ref, file, public? }]         an internal note unless `public: true`; HTML
//                                                                         when the file ends in .html, else Markdown,
//                                                                         which Zendesk renders
//   update_status  target_entries: [{ name, ref, status | file }]         new, open, pending, hold, solved, closed
//
// Permissions: the account of `email` is an agent with access to the tickets; API tokens are switched on by an admin.
// The vendor's search ends at 1,000 results: `truncated` says so. Where more are wanted of one type, its export of a
// search is read instead, which sorts by time of creation. A comment carries the idempotency key in its metadata,
// so that one whose reply was lost is found again.
// https://developer.zendesk.com/api-reference/ticketing/tickets/tickets/
// https://developer.zendesk.com/api-reference/ticketing/tickets/ticket_comments/
// https://developer.zendesk.com/api-reference/ticketing/ticket-management/search/

import {
  type AgentContext,
  AgentError,
  type AgentResult,
  agent,
  BaseUrl,
  entryOf,
  Limit,
  needsOne,
  pagesOf,
  readText,
  secret,
  Type,
  wordOf,
  writeListing,
  zendesk,
} from 'cadre'

/** Bytes that Zendesk keeps of a comment. */
const COMMENT_MOST = 65_535
const STATUSES = ['new', 'open', 'pending', 'hold', 'solved', 'closed'] as const
/** Where a comment's metadata holds the idempotency key. */
const MARK = 'cadre_key'

const Settings = Type.Object({
  subdomain: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9-]*$' }),
  email: Type.String({ minLength: 3 }),
  api_token: secret(),
  base_url: BaseUrl,
})
type Context = AgentContext<Type.Static<typeof Settings>>

const Text = Type.String({ minLength: 1 })
const ticketId = Type.String({ pattern: '^[0-9]+$', 'x-expected': 'the number of a ticket' })

interface Account {
  name: string
  email: string | null
  role: string
}

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Reads and answers tickets in Zendesk.',
  settings: Settings,
  async doctor(context) {
    const { user } = await zendesk.api(context)<{ user: Account }>('get the account', '/api/v2/users/me')
    const missing = user.role === 'end-user' ? ['the role agent'] : []
    return { who: user.email ?? user.name, missing, text: `${zendesk.siteOf(context)}, as ${user.role}` }
  },
  actions: {
    get_ticket: {
      direction: 'source',
      effect: 'read',
      entry: entryOf({ ref: ticketId }),
      async run({ name, ref }, context) {
        const ticket = await zendesk.getTicket(ref, context)
        await context.write(name, ticket)
        return { text: `ticket ${ref} is ${ticket.status}: ${ticket.subject}`, data: brief(ticket, context) }
      },
    },
    get_comments: {
      direction: 'source',
      effect: 'read',
      entry: entryOf({ ref: ticketId, limit: Limit }),
      async run({ name, ref, limit }, context) {
        const data = await writeListing(context, {
          name,
          limit,
          page: cursor => zendesk.commentsPage(ref, cursor, context),
          brief: ({ id, body, public: isPublic, author_id, created_at }) => {
            return { id, body, public: isPublic, author_id, created_at }
          },
        })
        return { text: `${data.items.length} of ${data.total} comments of ticket ${ref}`, data }
      },
    },
    search: {
      direction: 'source',
      effect: 'read',
      entry: entryOf({ ref: Text, limit: Limit }),
      async run({ name, ref, limit }, context) {
        const data = await writeListing(context, {
          name,
          limit,
          page: (cursor: string | undefined, wanted) => zendesk.searchPage(ref, cursor, wanted, context),
          brief: found => (found.result_type === 'ticket' ? brief(found as never, context) : briefOther(found)),
        })
        return { text: `${data.items.length} of ${data.total} results`, data }
      },
    },
    add_comment: {
      direction: 'target',
      effect: 'once',
      entry: entryOf({ ref: ticketId, file: Text, public: Type.Optional(Type.Boolean()) }),
      async run(entry, context) {
        const body = await readText(context, entry.file, COMMENT_MOST)
        const text = /\.html?$/i.test(entry.file) ? { html_body: body } : { body }
        const change = { comment: { ...text, public: entry.public ?? false }, metadata: { [MARK]: context.key } }
        const { ticket, audit } = await zendesk.update(entry.ref, 'comment on', change, context)
        return commented(ticket, audit?.events?.find(event => event.type === 'Comment')?.id, context)
      },
      async find({ ref }, context) {
        for await (const { items } of pagesOf((cursor?: string) => zendesk.commentsPage(ref, cursor, context))) {
          const mine = items.find(comment => comment.metadata?.custom?.[MARK] === context.key)
          if (!mine) continue
          return commented(await zendesk.getTicket(ref, context), mine.id, context)
        }
        return null
      },
    },
    update_status: {
      direction: 'target',
      effect: 'idempotent',
      entry: entryOf(
        { ref: ticketId, status: Type.Optional(Type.Enum([...STATUSES])), file: Type.Optional(Text) },
        needsOne('status', 'file'),
      ),
      async run({ ref, status, file }, context) {
        const wanted = (await wordOf(context, status, file)).toLowerCase()
        if (!(STATUSES as readonly string[]).includes(wanted)) {
          const problem = `${JSON.stringify(wanted.slice(0, 40))} is no status`
          const hint = `${file} must hold one of ${STATUSES.join(', ')}`
          throw new AgentError(`[${context.place}] ticket ${ref}: ${problem}`, {
            code: 'invalid_request',
            hint,
            sent: 'no',
          })
        }
        const { ticket } = await zendesk.update(ref, 'set the status of', { status: wanted }, context)
        return { text: `ticket ${ref} is ${ticket.status}`, data: brief(ticket, context) }
      },
    },
  },
})

function commented(ticket: zendesk.Ticket, comment: number | undefined, context: Context): AgentResult {
  const data = { ...brief(ticket, context), comment_id: comment ?? null }
  return {
    text: `commented on ticket ${ticket.id}`,
    data,
    external: { id: String(comment ?? ticket.id), url: data.url },
  }
}

function brief({ id, status, subject }: zendesk.Ticket, context: Context) {
  return { id, url: `${zendesk.siteOf(context)}/agent/tickets/${id}`, status, subject }
}

/** Users, groups and organizations are found by a query that does not say `type:ticket`. */
function briefOther({ id, url, result_type, name }: zendesk.Found) {
  return { id, url, status: null, type: result_type, name: name ?? null }
}
