// HubSpot's CRM as far as the crm agent goes: objects by id or unique property, search, notes and their associations.

import { isObject } from '../../lib/json.ts'
import { type FakeVendor, fakeVendor, refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'

export const TOKEN = 'pat-na1-canary-hubspot-token'

export interface FakeRecord {
  id: string
  properties: Record<string, string>
}

export interface FakeCrm extends FakeVendor {
  objects: Record<string, FakeRecord[]>
  /** Ids by `contacts/1 companies`. */
  associations: Map<string, string[]>
}

const SCOPES = [
  ...['contacts', 'companies', 'deals'].map(object => `crm.objects.${object}.read`),
  ...['tickets', 'crm.objects.contacts.write', 'oauth'],
]
const TYPE_OF_NOTE_TO: Record<string, number> = { contacts: 202, companies: 190, deals: 214, tickets: 228 }
const OPERATORS =
  'EQ NEQ LT LTE GT GTE BETWEEN IN NOT_IN HAS_PROPERTY NOT_HAS_PROPERTY CONTAINS_TOKEN NOT_CONTAINS_TOKEN'
const EMBEDDED = 2

export function fakeCrm(): FakeCrm {
  const server = fakeVendor(request => answer(request, state))
  const state: FakeCrm = Object.assign(server, {
    objects: {
      contacts: [
        { id: '42', properties: { email: 'kim@acme.test', firstname: 'Kim', phone: '1' } },
        { id: '43', properties: { email: 'lee@acme.test', firstname: 'Lee', phone: '2' } },
      ],
      companies: [
        { id: '7', properties: { name: 'Acme', domain: 'acme.test' } },
        { id: '8', properties: { name: 'Twin', domain: 'twin.test' } },
        { id: '9', properties: { name: 'Twin too', domain: 'twin.test' } },
      ],
      deals: [{ id: '5', properties: { dealname: 'Anvils' } }],
      tickets: [],
      notes: [],
    },
    associations: new Map(),
  })
  return state
}

function answer(request: VendorRequest, state: FakeCrm): Response {
  const { method, path, headers } = request
  if (headers.get('authorization') !== `Bearer ${TOKEN}`) return wrong(401, 'INVALID_AUTHENTICATION')
  if (path === '/oauth/v2/private-apps/get/access-token-info') {
    const known = method === 'POST' && isObject(request.body) && request.body.tokenKey === TOKEN
    return known ? Response.json({ userId: 7, hubId: 1234, appId: 9, scopes: SCOPES }) : wrong(404, 'NOT_FOUND')
  }
  const [version, collection, object, ...rest] = path.split('/').slice(2).map(decodeURIComponent)
  if (collection !== 'objects' || !state.objects[object!]) return wrong(404, 'NOT_FOUND')
  const place = `${method} ${version} ${rest.length}`
  if (place === 'GET v4 3' && rest[1] === 'associations')
    return listAssociated(request, `${object}/${rest[0]} ${rest[2]}`, state)
  if (place === 'POST v3 1' && rest[0] === 'search') return search(request.body, state.objects[object!]!)
  if (place === 'POST v3 2' && object === 'notes' && rest.join('/') === 'batch/read') return batch(request.body, state)
  if (place === 'POST v3 0' && object === 'notes') return createNote(request.body, state)
  return place === 'GET v3 1' ? read(request, object!, rest[0]!, state) : wrong(405, 'METHOD')
}

function wrong(status: number, category: string, message = category): Response {
  return refusal(status, { status: 'error', category, message, correlationId: crypto.randomUUID() })
}

function show({ id, properties }: FakeRecord, names?: string[]) {
  const shown = Object.entries(properties).filter(([name]) => !names?.length || names.includes(name))
  return {
    id,
    properties: Object.fromEntries(shown),
    createdAt: '2026-01-05T09:00:00Z',
    updatedAt: '2026-02-01T10:30:00Z',
    archived: false,
  }
}

function read({ query }: VendorRequest, object: string, ref: string, state: FakeCrm): Response {
  const unique = query.get('idProperty')
  if (unique && !(object === 'contacts' && unique === 'email')) return wrong(400, 'VALIDATION_ERROR', 'not unique')
  const found = state.objects[object]!.find(({ id, properties }) => (unique ? properties[unique] : id) === ref)
  if (!found) return wrong(404, 'OBJECT_NOT_FOUND')
  const associations = Object.fromEntries(
    query.getAll('associations').flatMap(to => {
      const ids = state.associations.get(`${object}/${found.id} ${to}`) ?? []
      const paging = ids.length > EMBEDDED && { paging: { next: { after: 'x', link: 'https://elsewhere.test' } } }
      return ids.length > 0 ? [[to, { results: ids.slice(0, EMBEDDED).map(id => ({ id, type: 'x' })), ...paging }]] : []
    }),
  )
  const record = show(found, query.getAll('properties'))
  return Response.json(Object.keys(associations).length > 0 ? { ...record, associations } : record)
}

function listAssociated({ query }: VendorRequest, key: string, state: FakeCrm): Response {
  const limit = Number(query.get('limit') ?? 500)
  if (!(limit >= 1 && limit <= 500)) return wrong(400, 'VALIDATION_ERROR', 'limit')
  const from = Number(query.get('after') ?? 0)
  const ids = state.associations.get(key) ?? []
  const next = from + limit < ids.length && { paging: { next: { after: String(from + limit) } } }
  const associationTypes = [{ category: 'HUBSPOT_DEFINED', typeId: 1, label: null }]
  const results = ids
    .slice(from, from + limit)
    .map(toObjectId => ({ toObjectId: Number(toObjectId), associationTypes }))
  return Response.json({ results, ...next })
}

function search(body: unknown, records: FakeRecord[]): Response {
  if (!isObject(body)) return wrong(400, 'VALIDATION_ERROR', 'no body')
  const { query = '', filterGroups = [], limit = 10, after = '0', properties } = body as Record<string, never>
  const unknown = Object.keys(body).find(
    key => !['query', 'filterGroups', 'limit', 'after', 'properties'].includes(key),
  )
  if (unknown || !(limit >= 1 && limit <= 200) || typeof after !== 'string')
    return wrong(400, 'VALIDATION_ERROR', unknown)
  if (Number(after) + limit > 10_000) return wrong(400, 'VALIDATION_ERROR', 'paging past 10,000')
  const filters = (filterGroups as { filters: Record<string, unknown>[] }[]).flatMap(group => group.filters)
  for (const { propertyName, operator, value, highValue, values } of filters) {
    if (typeof propertyName !== 'string' || !OPERATORS.split(' ').includes(String(operator)))
      return wrong(400, 'FILTER')
    if (operator === 'BETWEEN' && (typeof value !== 'string' || typeof highValue !== 'string'))
      return wrong(400, 'BETWEEN')
    if (operator === 'IN' && !(Array.isArray(values) && values.every(each => typeof each === 'string')))
      return wrong(400, 'IN')
    if (['EQ', 'GT', 'CONTAINS_TOKEN'].includes(String(operator)) && typeof value !== 'string')
      return wrong(400, 'value')
  }
  const fits = records.filter(({ properties: has }) => {
    if (query && !Object.values(has).some(value => value.includes(query))) return false
    return filters.every(
      ({ propertyName, operator, value }) => operator !== 'EQ' || has[String(propertyName)] === value,
    )
  })
  const to = Number(after) + limit
  const paging = to < fits.length && { paging: { next: { after: String(to) } } }
  return Response.json({
    total: fits.length,
    results: fits.slice(Number(after), to).map(each => show(each, properties)),
    ...paging,
  })
}

function createNote(body: unknown, state: FakeCrm): Response {
  const { properties, associations = [] } = body as { properties?: Record<string, string>; associations?: never[] }
  if (!properties?.hs_timestamp || Number.isNaN(Date.parse(properties.hs_timestamp))) return wrong(400, 'hs_timestamp')
  if ((properties.hs_note_body ?? '').length > 65_536) return wrong(400, 'VALIDATION_ERROR', 'too long')
  const note = { id: String(500 + state.objects.notes!.length), properties }
  for (const { to, types } of associations as { to: { id: string }; types: Record<string, unknown>[] }[]) {
    const [object] = Object.entries(TYPE_OF_NOTE_TO).find(([, id]) => id === types[0]?.associationTypeId) ?? []
    if (types[0]?.associationCategory !== 'HUBSPOT_DEFINED' || !object) return wrong(400, 'association type')
    if (!state.objects[object]!.some(({ id }) => id === to.id)) return wrong(404, 'OBJECT_NOT_FOUND')
    const key = `${object}/${to.id} notes`
    state.associations.set(key, [...(state.associations.get(key) ?? []), note.id])
  }
  state.objects.notes!.push(note)
  return Response.json(show(note), { status: 201 })
}

function batch(body: unknown, state: FakeCrm): Response {
  const { inputs, properties } = body as { inputs?: { id: string }[]; properties?: string[] }
  if (!inputs || inputs.length > 100 || !properties) return wrong(400, 'VALIDATION_ERROR', 'inputs')
  const results = state.objects.notes!.filter(({ id }) => inputs.some(input => input.id === id))
  return Response.json({ status: 'COMPLETE', results: results.map(each => show(each, properties)) })
}
