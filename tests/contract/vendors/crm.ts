// https://developers.hubspot.com/docs/api-reference/

import agent from '../../../agents/crm.ts'
import { type Contract, LOST } from '../contract.ts'
import { at, type Call, isText } from '../recorder.ts'

const CONTACT = 'GET /crm/v3/objects/contacts/{contactId}'
const COMPANY = 'GET /crm/v3/objects/companies/{companyId}'
const DEAL = 'GET /crm/v3/objects/deals/{dealId}'
const ASSOCIATED = 'GET /crm/v4/objects/{objectType}/{objectId}/associations/{toObjectType}'
const NOTE = 'POST /crm/v3/objects/notes'
const NOTES = 'POST /crm/v3/objects/notes/batch/read'
const searchOf = (object: string) => `POST /crm/v3/objects/${object}/search`
const TOKEN = 'canary-hubspot-token'
const INFO = 'POST /oauth/v2/private-apps/get/access-token-info'
const SCOPES = [
  ...['contacts', 'companies', 'deals'].map(object => `crm.objects.${object}.read`),
  'tickets',
  'crm.objects.contacts.write',
]
const PAGE_MOST = 200
const GROUPS_MOST = 5

function rules({ operation, headers, body }: Call) {
  const isSearch = operation.endsWith('/search')
  const groups = (at(body, 'filterGroups') ?? []) as { filters: Record<string, unknown>[] }[]
  const filters = groups.flatMap(group => group.filters)
  const links = (at(body, 'associations') ?? []) as unknown[]
  return [
    headers.get('authorization') !== `Bearer ${TOKEN}` && 'no credential',
    isSearch && !isText(at(body, 'query')) && filters.length === 0 && 'searches for nothing',
    isSearch && !(Number(at(body, 'limit')) <= PAGE_MOST) && 'limit is above 200',
    isSearch && groups.length > GROUPS_MOST && 'more than 5 groups of filters',
    filters.some(({ operator, highValue }) => operator === 'BETWEEN' && !highValue) && 'BETWEEN without highValue',
    filters.some(({ operator, values }) => /IN$/.test(String(operator)) && !Array.isArray(values)) &&
      'IN without values',
    operation === NOTE && Number.isNaN(Date.parse(String(at(body, 'properties', 'hs_timestamp')))) && 'no hs_timestamp',
    operation === NOTE && !isText(at(body, 'properties', 'hs_note_body')) && 'no hs_note_body',
    operation === NOTE &&
      !links.every(link => at(link, 'types', 0, 'associationTypeId')) &&
      'an association of no type',
    operation === NOTE && links.length === 0 && 'a note to nothing',
  ]
}

const note = {
  action: 'add_note',
  phase: { target_entries: [{ name: 'note', ref: 'contacts/101', file: 'note.txt' }] },
  files: { 'note.txt': 'Called back.\nAll is well.\n' },
}
const noNext = (answer: object) => ({ ...answer, paging: undefined })
const linked = () => ({ results: [{ toObjectId: 501, associationTypes: [] }] })

export const crm: Contract = {
  document: 'crm',
  name: 'crm',
  agent,
  settings: url => ({ access_token: TOKEN, base_url: url }),
  rules,
  undeclared: [
    {
      operation: INFO,
      why: 'tokens are no part of the document',
      page: 'https://developers.hubspot.com/docs/api-reference/legacy/private-apps',
    },
    {
      operation: NOTES,
      why: 'the document declares no way to read the text of a note, which holds the idempotency key',
      page: 'https://developers.hubspot.com/docs/api-reference/crm-notes-v3/batch/post-crm-v3-objects-notes-batch-read',
    },
  ],
  doctor: {
    changes: { [INFO]: [() => ({ hubId: 7, scopes: SCOPES })] },
    calls: [INFO],
  },
  cases: [
    {
      title: 'by e-mail address, with properties and associations',
      action: 'get_contact',
      phase: {
        sources: [
          { name: 'c.json', ref: 'ada@example.com', properties: ['email', 'city'], associations: ['companies'] },
        ],
      },
      calls: [CONTACT],
    },
    {
      title: 'with more associations than a reply holds',
      action: 'get_contact',
      phase: { sources: [{ name: 'c.json', ref: '101', associations: ['deals'] }] },
      changes: {
        [CONTACT]: [
          answer => ({ ...answer, associations: { deals: { results: [], paging: { next: { after: '1' } } } } }),
        ],
        [ASSOCIATED]: [() => ({ ...linked(), paging: { next: { after: '7' } } }), linked],
      },
      calls: [CONTACT, ASSOCIATED, ASSOCIATED],
    },
    { title: 'by id', action: 'get_deal', phase: { sources: [{ name: 'd.json', ref: '301' }] }, calls: [DEAL] },
    {
      title: 'by domain',
      action: 'get_company',
      phase: { sources: [{ name: 'c.json', ref: 'example.com' }] },
      changes: { [searchOf('companies')]: [noNext] },
      calls: [searchOf('companies'), COMPANY],
    },
    ...['contacts', 'companies', 'deals', 'tickets'].map(object => ({
      title: `two pages of ${object} by text and filters`,
      action: 'search',
      phase: {
        sources: [
          {
            name: 'found.json',
            object,
            ref: 'ada',
            properties: ['createdate'],
            filters: [
              { property: 'createdate', operator: 'BETWEEN', values: [1, 2] },
              { property: 'hs_object_id', operator: 'IN', values: ['101', 102] },
              { property: 'hs_object_id', operator: 'HAS_PROPERTY' },
            ],
          },
        ],
      },
      changes: { [searchOf(object)]: [(answer: object) => answer, noNext] },
      calls: [searchOf(object), searchOf(object)],
    })),
    { title: 'to a contact', ...note, calls: [NOTE] },
    {
      title: 'that may be there already',
      ...note,
      changes: {
        [NOTE]: [LOST],
        [ASSOCIATED]: [linked],
        [NOTES]: [() => ({ results: [{ id: '501', properties: { hs_note_body: 'another' } }] })],
      },
      calls: [NOTE, ASSOCIATED, NOTES],
      state: 'failed',
    },
  ],
}
