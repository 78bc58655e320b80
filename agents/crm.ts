// crm: reads contacts, companies and deals in HubSpot, searches them and tickets, and adds notes.
//
//   settings: access_token (of a private app), base_url? (instead of https://api.hubapi.com)
//   get_contact   sources: [{ name, ref: id or e-mail, properties?, associations? }]
//   get_company   sources: [{ name, ref: id or domain, properties?, associations? }]
//   get_deal      sources: [{ name, ref: id, properties?, associations? }]
//   search        sources: [{ name, ref: text and/or filters, object?, properties?, limit? }]
//                 filters: [{ property, operator, value | values }], all must hold; BETWEEN takes two values
//   add_note      target_entries: [{ name, ref: <object>/<id>, file }]   plain text, or HTML when it ends in .html
//
// Scopes of the private app: crm.objects.contacts.read, .companies.read, .deals.read and `tickets`; to add notes also
// crm.objects.contacts.write. `url` is the address that HubSpot returns, or else the record's address in the API. A
// note ends with a line `cadre:<key>`, so that a note whose reply was lost can be found again.
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
  needsOne,
  pagesOf,
  pathSegment,
  readText,
  secret,
  Type,
  writeListing,
} from 'cadre'

const PAGE = 200
/** Number of associations in a page. It equals the number of notes that one batch can read. */
const ASSOCIATION_PAGE = 100
/** Maximum number of characters of a note. HubSpot allows 65,536; the difference is for tags and the marker. */
const NOTE_MOST = 60_000
const TYPE_OF_NOTE_TO = { contacts: 202, companies: 190, deals: 214, tickets: 228 }
const SCOPES = {
  contacts: 'crm.objects.contacts.read',
  companies: 'crm.objects.companies.read',
  deals: 'crm.objects.deals.read',
  tickets: 'tickets',
}
type ObjectName = keyof typeof SCOPES
const WRITE = 'crm.objects.contacts.write'

const Settings = Type.Object({ access_token: secret(), base_url: BaseUrl })
type Context = AgentContext<Type.Static<typeof Settings>>

const Text = Type.String({ minLength: 1 })
const Names = Type.Optional(Type.Array(Text))
const Get = entryOf({ ref: Text, properties: Names, associations: Names })

/** The operators of a search filter. */
const OPERATORS = [
  ...['EQ', 'NEQ', 'LT', 'LTE', 'GT', 'GTE', 'BETWEEN', 'IN', 'NOT_IN'],
  ...['HAS_PROPERTY', 'NOT_HAS_PROPERTY', 'CONTAINS_TOKEN', 'NOT_CONTAINS_TOKEN'],
]
const Value = Type.Union([Type.String(), Type.Number(), Type.Boolean()])

const Filter = Type.Object(
  {
    property: Type.String({ minLength: 1 }),
    operator: Type.Enum(OPERATORS),
    value: Type.Optional(Value),
    values: Type.Optional(Type.Array(Value, { minItems: 1 })),
  },
  { additionalProperties: false },
)

interface Page<T> {
  results: T[]
  total?: number
  paging?: { next?: { after: string } }
}

interface Item extends JsonObject {
  id: string
  properties: Record<string, string | null>
}

type Found = Item & { associations?: Record<string, Page<{ id: string }>> }

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Reads contacts, companies, deals and tickets in HubSpot, and adds notes.',
  settings: Settings,
  async doctor(context) {
    const path = '/oauth/v2/private-apps/get/access-token-info'
    const body = { tokenKey: context.settings.access_token }
    const call = hubspot(context)<{ hubId: number; scopes: string[] }>
    const { hubId, scopes } = await call('inspect the token', path, { method: 'POST', body })
    const missing = [...Object.values(SCOPES), WRITE].filter(scope => !scopes.includes(scope))
    return { who: `portal ${hubId}`, missing, text: baseOf(context) }
  },
  actions: {
    get_contact: reader('contacts'),
    get_deal: reader('deals'),
    get_company: reader('companies'),
    search: {
      direction: 'source',
      effect: 'read',
      entry: entryOf(
        {
          ref: Type.Optional(Text),
          filters: Type.Optional(Type.Array(Filter, { minItems: 1 })),
          object: Type.Optional(Type.Enum(['contacts', 'companies', 'deals', 'tickets'])),
          properties: Names,
          limit: Limit,
        },
        needsOne('ref', 'filters'),
      ),
      async run({ name, ref, filters, object = 'contacts', properties, limit }, context) {
        const query = {
          ...(ref !== undefined && { query: ref }),
          ...(filters && { filterGroups: [{ filters: filters.map(filter => filterOf(filter, context)) }] }),
          ...(properties && { properties }),
        }
        const data = await writeListing(context, {
          name,
          limit,
          page: (after: string | undefined, wanted) =>
            search(object, { ...query, limit: Math.min(wanted, PAGE) }, after, context),
          brief: item => brief(object, item, context),
        })
        return { text: `${data.items.length} of ${data.total} ${object}`, data }
      },
    },
    add_note: {
      direction: 'target',
      effect: 'once',
      entry: entryOf({
        ref: Type.String({ pattern: '^(contacts|companies|deals|tickets)/[^/]+$', 'x-expected': '`<object>/<id>`' }),
        file: Text,
      }),
      async run({ ref, file }, context) {
        const [object, id] = ref.split('/') as [ObjectName, string]
        const text = await readText(context, file, NOTE_MOST)
        const shown = /\.html?$/i.test(file) ? text : Bun.escapeHTML(text).replaceAll('\n', '<br>')
        const hs_note_body = `${shown}<p>${markOf(context)}</p>`
        const properties = { hs_timestamp: new Date().toISOString(), hs_note_body }
        const types = [{ associationCategory: 'HUBSPOT_DEFINED', associationTypeId: TYPE_OF_NOTE_TO[object] }]
        const note = await hubspot(context)<Item>(`add a note to ${ref}`, '/crm/v3/objects/notes', {
          method: 'POST',
          body: { properties, associations: [{ to: { id }, types }] },
          scope: WRITE,
        })
        return noted(ref, note, context)
      },
      /** Looks through the object's associations. Unlike the search index they contain a new note at once. */
      async find({ ref }, context) {
        const [object, id] = ref.split('/') as [ObjectName, string]
        const pages = pagesOf((after?: string) => associated(object, id, 'notes', after, context))
        for await (const { items } of pages) {
          if (items.length === 0) continue
          const { results } = await hubspot(context)<Page<Item>>('read notes', '/crm/v3/objects/notes/batch/read', {
            method: 'POST',
            body: { properties: ['hs_note_body'], inputs: items.map(id => ({ id })) },
          })
          const mine = results.find(note => note.properties.hs_note_body?.includes(markOf(context)))
          if (mine) return noted(ref, mine, context)
        }
        return null
      },
    },
  },
})

function hubspot(context: Context) {
  const headers = { authorization: `Bearer ${context.settings.access_token}` }
  return jsonApi(context, { setting: 'access_token', base: baseOf(context), headers })
}

function baseOf({ settings }: Context): string {
  return (settings.base_url ?? 'https://api.hubapi.com').replace(/\/+$/, '')
}

function reader(object: ObjectName) {
  const run = (entry: Type.Static<typeof Get>, context: Context) => get(object, entry, context)
  return { direction: 'source' as const, effect: 'read' as const, entry: Get, run }
}

async function get(object: ObjectName, entry: Type.Static<typeof Get>, context: Context): Promise<AgentResult> {
  const { name, properties, associations } = entry
  const scope = SCOPES[object]
  const idProperty = object === 'contacts' && entry.ref.includes('@') ? 'email' : undefined
  const ref = object === 'companies' && entry.ref.includes('.') ? await companyOf(entry.ref, context) : entry.ref
  const query = { properties, associations, idProperty }
  const path = `/crm/v3/objects/${object}/${pathSegment(ref)}`
  const found = await hubspot(context)<Found>(`get ${object}/${ref}`, path, { query, scope })
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
  const query = { limit: ASSOCIATION_PAGE, after }
  const call = hubspot(context)<Page<{ toObjectId: string | number }>>
  const { results, paging } = await call(`get ${to} of ${object}/${id}`, path, { query, scope: SCOPES[object] })
  return { items: results.map(({ toObjectId }) => String(toObjectId)), next: paging?.next?.after }
}

/** The id of a company with a domain. The domain is not a unique property, so a search is needed. */
async function companyOf(domain: string, context: Context): Promise<string> {
  const filters = [{ propertyName: 'domain', operator: 'EQ', value: domain.toLowerCase() }]
  const { items } = await search('companies', { filterGroups: [{ filters }], limit: 2 }, undefined, context)
  if (items.length === 1) return items[0]!.id
  const [code, what] = items.length === 0 ? ['not_found', 'no company has'] : ['ambiguous', 'several companies have']
  throw new AgentError(`[${context.place}] ${what} the domain ${domain}`, {
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
  })
  return { items: results, total, next: paging?.next?.after }
}

/**
 * A filter in HubSpot's form. Throws an AgentError `invalid_request` when the operator takes another number of values.
 */
function filterOf({ property, operator, value, values }: Type.Static<typeof Filter>, { place }: Context): JsonObject {
  const filter = { propertyName: property, operator }
  const invalid = (takes: string) =>
    new AgentError(`[${place}] filter of ${property}: ${operator} takes ${takes}`, {
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
