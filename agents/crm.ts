// crm: reads contacts, companies and deals in HubSpot, searches them and tickets, and adds notes.
//
//   settings: access_token (of a private app), base_url? (instead of https://api.hubapi.com)
//   get_contact   sources: [{ name, ref: id or e-mail, properties?, associations? }]
//   get_company   sources: [{ name, ref: id or domain, properties?, associations? }]
//   get_deal      sources: [{ name, ref: id, properties?, associations? }]
//   search        sources: [{ name, ref: text and/or filters, object?, properties?, limit? }]
//                 filters: [{ property, operator, value | values }], all must hold; BETWEEN takes two values
//   add_note      target_entries: [{ name, ref: <object>/<id>, file }]   HTML when it ends in .html, Markdown when it
//                                                                        ends in .md, else plain text
//
// Scopes of the private app: crm.objects.contacts.read, .companies.read, .deals.read and `tickets`; to add notes also
// crm.objects.contacts.write. `url` is the address that HubSpot returns, or else the record's address in the API.
// What a repetition of add_note meets: HubSpot takes no key, but a note ends with a line `cadre:<key>`, and is looked for
// among the notes of the record for 60 s. Unlike the search, these have no index that lags.
// https://developers.hubspot.com/docs/api-reference/crm-contacts-v3/guide
// https://developers.hubspot.com/docs/api-reference/search/guide
// https://developers.hubspot.com/docs/api-reference/crm-notes-v3/guide

import {
  type AgentContext,
  AgentError,
  type AgentResult,
  agent,
  BaseUrl,
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
import { filePath, foundAmong, markdownToHtml, nullable } from 'cadre/vendors'

const PAGE = 200
/** Number of associations in a page. It equals the number of notes that one batch can read. */
const ASSOCIATION_PAGE = 100
/** Maximum number of characters of a note, as HTML and with the marker. */
const NOTE_MOST = 65_536
/** Maximum number of bytes of the file of a note. */
const FILE_MOST = 4 * NOTE_MOST
const TYPE_OF_NOTE_TO = { contacts: 202, companies: 190, deals: 214, tickets: 228 }
const SCOPES = {
  contacts: 'crm.objects.contacts.read',
  companies: 'crm.objects.companies.read',
  deals: 'crm.objects.deals.read',
  tickets: 'tickets',
}
type ObjectName = keyof typeof SCOPES
const WRITE = 'crm.objects.contacts.write'
/** All of them where a template stands for the object. */
const reading = (object: string) =>
  Object.hasOwn(SCOPES, object) ? [SCOPES[object as ObjectName]] : Object.values(SCOPES)

const API = 'https://api.hubapi.com'
/** The form of the API keys that HubSpot no longer accepts. */
const API_KEY = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const Settings = Type.Object({
  access_token: secret({
    description: 'The access token of a private app (Settings → Private apps), which begins with `pat-`.',
  }),
  base_url: BaseUrl,
})
type Context = AgentContext<Type.Static<typeof Settings>>

const Text = Type.String({ minLength: 1 })
const textOf = (description: string) => Type.String({ minLength: 1, description })
const namesOf = (description: string) => Type.Optional(Type.Array(Text, { description }))
const Properties = namesOf('The properties to read, by their internal names; the default properties if it is left out.')
const Associations = namesOf('The kinds of associated objects whose ids are read as well, such as `companies`.')

const shown = {
  id: Type.String({ description: 'The id of the record.' }),
  url: Type.String({ description: 'The address that HubSpot returns, or that of the record in the API.' }),
  properties: Type.Record(Type.String(), nullable(Type.String()), { description: 'Its properties, by internal name.' }),
}
const RecordData = Type.Object({
  ...shown,
  associations: Type.Optional(
    Type.Record(Type.String(), Type.Array(Type.String()), {
      description: 'The ids of associated objects by their kind, where `associations` asks for them.',
    }),
  ),
})
const NoteData = Type.Object({
  id: Type.String({ description: 'The id of the note.' }),
  url: Type.String({ description: 'The address of the note in the API.' }),
})

/** The operators of a search filter. */
const OPERATORS = [
  ...['EQ', 'NEQ', 'LT', 'LTE', 'GT', 'GTE', 'BETWEEN', 'IN', 'NOT_IN'],
  ...['HAS_PROPERTY', 'NOT_HAS_PROPERTY', 'CONTAINS_TOKEN', 'NOT_CONTAINS_TOKEN'],
]
const Value = Type.Union([Type.String(), Type.Number(), Type.Boolean()])

const Filter = Type.Object(
  {
    property: textOf('The internal name of the property.'),
    operator: Type.Enum(OPERATORS, { description: 'How the property is compared.' }),
    value: Type.Optional(
      Type.Union([Type.String(), Type.Number(), Type.Boolean()], {
        description: 'What the property is compared with.',
        'x-expected': 'a text, a number, true or false',
      }),
    ),
    values: Type.Optional(
      Type.Array(Value, { minItems: 1, description: 'The values of IN and NOT_IN, or the two bounds of BETWEEN.' }),
    ),
  },
  { additionalProperties: false },
)

/** What HubSpot answers at least: anything else comes from somebody else. */
const Item = Type.Object({ id: Text, properties: Type.Object({}) })
const paging = Type.Optional(Type.Object({ next: Type.Optional(Type.Object({ after: Text })) }))
const Ids = Type.Object({ results: Type.Array(Type.Object({ id: Text })), paging })
const Reply = {
  token: Type.Object({ hubId: Type.Integer(), scopes: Type.Array(Text) }),
  record: Type.Object({
    id: Text,
    properties: Type.Object({}),
    associations: Type.Optional(Type.Record(Type.String(), Ids)),
  }),
  note: Item,
  notes: Type.Object({ results: Type.Array(Item), paging }),
  found: Type.Object({ results: Type.Array(Item), paging, total: Type.Integer() }),
  associated: Type.Object({
    results: Type.Array(Type.Object({ toObjectId: Type.Union([Text, Type.Integer()]) })),
    paging,
  }),
}
type Item = Type.Static<typeof Item> & JsonObject & { properties: Record<string, string | null> }
type Found = Item & Pick<Type.Static<typeof Reply.record>, 'associations'>
type Page<T> = Omit<Type.Static<typeof Reply.notes>, 'results'> & { results: T[]; total?: number }

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Reads contacts, companies, deals and tickets in HubSpot, and adds notes.',
  settings: Settings,
  addresses: settings => [baseOf({ settings })],
  account: apiOf,
  check({ access_token }) {
    const outdated =
      access_token !== undefined &&
      API_KEY.test(access_token) &&
      'is an API key, which HubSpot no longer accepts: write the access token of a private app, which begins with pat-'
    return { access_token: outdated }
  },
  async doctor(context) {
    const path = '/oauth/v2/private-apps/get/access-token-info'
    const call = hubspot(context)<Type.Static<typeof Reply.token>>
    const options = { method: 'POST', body: { tokenKey: tokenOf(context) }, reply: Reply.token }
    const { hubId, scopes } = await call('inspect the token', path, options)
    const missing = [...Object.values(SCOPES), WRITE].filter(scope => !scopes.includes(scope))
    return { who: `portal ${hubId}`, missing, text: baseOf(context) }
  },
  actions: {
    get_contact: reader('contacts', 'Reads a contact.', 'The id or the e-mail address of the contact.', 'ada@acme.com'),
    get_deal: reader('deals', 'Reads a deal.', 'The id of the deal.', '4242'),
    get_company: reader('companies', 'Reads a company.', 'The id or the domain of the company.', 'acme.com'),
    search: {
      description: 'Searches contacts, companies, deals or tickets by text, by filters, or by both.',
      direction: 'source',
      effect: 'read',
      permissions: ({ object = 'contacts' }) => reading(object),
      example: { name: 'customers.json', ref: 'acme' },
      entry: entryOf(
        {
          ref: Type.Optional(textOf('The text to search for in the default properties.')),
          filters: Type.Optional(
            Type.Array(Filter, { minItems: 1, description: 'Conditions, all of which must hold.' }),
          ),
          object: Type.Optional(
            Type.Enum(['contacts', 'companies', 'deals', 'tickets'], {
              description: 'What to search; default `contacts`.',
            }),
          ),
          properties: Properties,
          limit: Limit,
        },
        needsOne('ref', 'filters'),
      ),
      data: listingOf(shown),
      async run({ name, ref, filters, object = 'contacts', properties, limit }, context) {
        const query = {
          ...(ref !== undefined && { query: ref }),
          ...(filters && { filterGroups: [{ filters: filters.map(filter => filterOf(filter, context)) }] }),
          ...(properties && { properties }),
        }
        const data = await writeListing(context, {
          name,
          limit,
          page: (after: string | undefined, wanted, fitting) =>
            search(object, { ...query, limit: Math.min(wanted, fitting, PAGE) }, after, context),
          brief: item => brief(object, item, context),
        })
        return { text: `${data.items.length} of ${data.total} ${object}`, data }
      },
    },
    add_note: {
      description: 'Adds a note to a contact, company, deal or ticket.',
      direction: 'target',
      effect: 'once',
      permissions: ({ ref }) => [WRITE, ...reading(ref.split('/', 1)[0]!)],
      example: { name: 'note', ref: 'contacts/42', file: 'files/write/note.md' },
      entry: entryOf({
        ref: Type.String({
          pattern: '^(contacts|companies|deals|tickets)/[^/]+$',
          'x-expected': '`<object>/<id>`, such as contacts/42',
          description: 'The record that gets the note, such as `contacts/42`.',
        }),
        file: filePath('The text of the note: HTML in a file .html, Markdown in a file .md, otherwise plain text.'),
      }),
      data: NoteData,
      async run({ ref, file }, context) {
        const [object, id] = ref.split('/') as [ObjectName, string]
        const text = await readText(context, file, FILE_MOST)
        const hs_note_body = `${htmlOf(file, text)}<p>${markOf(context)}</p>`
        // HubSpot refuses a longer note with words that do not name the file.
        if (hs_note_body.length > NOTE_MOST) {
          const problem = `${file} has ${hs_note_body.length} characters as HTML, but HubSpot accepts at most ${NOTE_MOST}`
          throw new AgentError(`[${context.callName}] ${problem}`, { code: 'invalid_request', sent: 'no' })
        }
        const properties = { hs_timestamp: new Date().toISOString(), hs_note_body }
        const types = [{ associationCategory: 'HUBSPOT_DEFINED', associationTypeId: TYPE_OF_NOTE_TO[object] }]
        const note = await hubspot(context)<Item>(`add a note to ${ref}`, '/crm/v3/objects/notes', {
          method: 'POST',
          body: { properties, associations: [{ to: { id }, types }] },
          scope: WRITE,
          reply: Reply.note,
        })
        return noted(ref, note, context)
      },
      /** Looks through the object's associations. Unlike the search index they contain a new note at once. */
      async find({ ref }, context) {
        const [object, id] = ref.split('/') as [ObjectName, string]
        const pages = pagesOf((after?: string) => associated(object, id, 'notes', after, context))
        const found: AgentResult[] = []
        for await (const { items } of pages) {
          if (items.length === 0) continue
          const doing = `read the notes of ${ref}`
          const { results } = await hubspot(context)<Page<Item>>(doing, '/crm/v3/objects/notes/batch/read', {
            method: 'POST',
            effect: 'read',
            body: { properties: ['hs_note_body'], inputs: items.map(id => ({ id })) },
            reply: Reply.notes,
          })
          const mine = results.filter(note => note.properties.hs_note_body?.includes(markOf(context)))
          found.push(...mine.map(note => noted(ref, note, context)))
        }
        return foundAmong(found)
      },
    },
  },
})

const hubspot = (context: Context) => jsonApi(context, apiOf(context))

function apiOf(context: Context) {
  const headers = { authorization: `Bearer ${tokenOf(context)}` }
  return { setting: 'access_token', base: baseOf(context), headers }
}

/** The token, also where it was copied together with the word that precedes it in a header. */
function tokenOf({ settings }: Context): string {
  return settings.access_token.replace(/^Bearer\s+/i, '')
}

/** The address of the API, also where the setting is that of the web application. */
function baseOf({ settings: { base_url = API } }: Pick<Context, 'settings'>): string {
  const isApp = /(^|\.)hubspot\.com$/i.test(URL.parse(base_url)?.hostname ?? '')
  return isApp ? API : base_url.replace(/\/+$/, '')
}

/** The text of a file as HTML. */
function htmlOf(file: string, text: string): string {
  if (/\.html?$/i.test(file)) return text
  return /\.(md|markdown)$/i.test(file) ? markdownToHtml(text) : Bun.escapeHTML(text).replaceAll('\n', '<br>')
}

interface Get {
  name: string
  ref: string
  properties?: string[]
  associations?: string[]
}

function reader(object: ObjectName, description: string, ref: string, sample: string) {
  const entry = entryOf({ ref: textOf(ref), properties: Properties, associations: Associations })
  const run = (entry: Get, context: Context) => get(object, entry, context)
  const example = { name: `${object}.json`, ref: sample }
  const call = { direction: 'source' as const, effect: 'read' as const, permissions: reading(object) }
  return { ...call, description, example, entry, data: RecordData, run }
}

async function get(object: ObjectName, entry: Get, context: Context): Promise<AgentResult> {
  const { name, properties, associations } = entry
  const scope = SCOPES[object]
  const idProperty = object === 'contacts' && entry.ref.includes('@') ? 'email' : undefined
  const ref = object === 'companies' && entry.ref.includes('.') ? await companyOf(entry.ref, context) : entry.ref
  const query = { properties, associations, idProperty }
  const path = `/crm/v3/objects/${object}/${pathSegment(ref)}`
  const options = { query, scope, reply: Reply.record }
  const found = await hubspot(context)<Found>(`get ${object}/${ref}`, path, options)
  const ids: Record<string, string[]> = {}
  for (const [to, page] of Object.entries(found.associations ?? {})) {
    // If there is a next page, these are only the first associations.
    const pages = page.paging?.next && pagesOf((after?: string) => associated(object, found.id, to, after, context))
    ids[to] = pages ? (await Array.fromAsync(pages)).flatMap(({ items }) => items) : page.results.map(({ id }) => id)
  }
  const more = associations && { associations: ids }
  await context.write(name, { ...found, ...more } as JsonObject)
  return { text: `${object}/${found.id}`, data: { ...brief(object, found, context), ...more } }
}

async function associated(object: ObjectName, id: string, to: string, after: string | undefined, context: Context) {
  const path = `/crm/v4/objects/${object}/${pathSegment(id)}/associations/${pathSegment(to)}`
  const call = hubspot(context)<Type.Static<typeof Reply.associated>>
  const options = { query: { limit: ASSOCIATION_PAGE, after }, scope: SCOPES[object], reply: Reply.associated }
  const { results, paging } = await call(`get ${to} of ${object}/${id}`, path, options)
  return { items: results.map(({ toObjectId }) => String(toObjectId)), next: paging?.next?.after }
}

/** The id of a company with a domain. The domain is not a unique property, so a search is needed. */
async function companyOf(domain: string, context: Context): Promise<string> {
  const filters = [{ propertyName: 'domain', operator: 'EQ', value: domain.toLowerCase() }]
  const { items } = await search('companies', { filterGroups: [{ filters }], limit: 2 }, undefined, context)
  if (items.length === 1) return items[0]!.id
  const [code, what] = items.length === 0 ? ['not_found', 'no company has'] : ['ambiguous', 'several companies have']
  throw new AgentError(`[${context.callName}] ${what} the domain ${domain}`, {
    code,
    hint: 'use the id of the company as `ref`',
  })
}

async function search(object: ObjectName, query: JsonObject, after: string | undefined, context: Context) {
  const call = hubspot(context)<Page<Item>>
  const { results, total, paging } = await call(`search ${object}`, `/crm/v3/objects/${object}/search`, {
    method: 'POST',
    body: { ...query, ...(after !== undefined && { after }) },
    scope: SCOPES[object],
    reply: Reply.found,
  })
  return { items: results, total, next: paging?.next?.after }
}

/**
 * A filter in HubSpot's form. Throws an AgentError `invalid_request` when the operator takes another number of values.
 */
function filterOf(
  { property, operator, value, values }: Type.Static<typeof Filter>,
  { callName }: Context,
): JsonObject {
  const filter = { propertyName: property, operator }
  const invalid = (takes: string) =>
    new AgentError(`[${callName}] filter of ${property}: ${operator} takes ${takes}`, {
      code: 'invalid_request',
      sent: 'no',
    })
  if (operator === 'IN' || operator === 'NOT_IN') {
    const all = values ?? (value === undefined ? [] : [value])
    if (all.length === 0) throw invalid('`values`')
    return { ...filter, values: all.map(String) }
  }
  if (operator !== 'BETWEEN') {
    if (values) throw invalid('`value`, not `values`')
    return { ...filter, ...(value !== undefined && { value: `${value}` }) }
  }
  if (values?.length !== 2) throw invalid('`values: [lowest, highest]`')
  return { ...filter, value: `${values[0]}`, highValue: `${values[1]}` }
}

function noted(ref: string, { id }: Item, context: Context): AgentResult {
  const url = `${baseOf(context)}/crm/v3/objects/notes/${id}`
  return { text: `added note ${id} to ${ref}`, data: { id, url }, external: { id, url } }
}

function brief(object: ObjectName, { id, properties, url }: Item, context: Context) {
  return { id, url: typeof url === 'string' ? url : `${baseOf(context)}/crm/v3/objects/${object}/${id}`, properties }
}

function markOf({ key }: Context): string {
  return `cadre:${key}`
}
