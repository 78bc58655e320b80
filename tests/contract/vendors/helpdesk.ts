// https://developer.zendesk.com/api-reference/ticketing/tickets/tickets/

import agent from '../../../agents/helpdesk.ts'
import { type Contract, LOST } from '../contract.ts'
import { at, basicOf, type Call, isText } from '../recorder.ts'

const TICKET = 'GET /api/v2/tickets/{ticket_id}'
const UPDATE = 'PUT /api/v2/tickets/{ticket_id}'
const COMMENTS = 'GET /api/v2/tickets/{ticket_id}/comments'
const SEARCH = 'GET /api/v2/search'
const EXPORT = 'GET /api/v2/search/export'
const ME = 'GET /api/v2/users/me'
const ACCOUNT = { subdomain: 'acme', email: 'kim@acme.test', api_token: 'canary-zendesk-token' }

function rules(call: Call) {
  const { operation, line, body } = call
  const ticket = at(body, 'ticket')
  const hasWork = isText(at(ticket, 'status')) || isText(at(ticket, 'comment', 'body'))
  return [
    basicOf(call) !== `${ACCOUNT.email}/token:${ACCOUNT.api_token}` && 'no credential',
    line.endsWith('.json') && 'has an ending that the document has not',
    operation === UPDATE && !hasWork && 'no ticket with a status or a comment',
    operation === UPDATE &&
      at(ticket, 'comment') !== undefined &&
      typeof at(ticket, 'comment', 'public') !== 'boolean' &&
      'says not whether the comment is public',
    [SEARCH, EXPORT].includes(operation) && !isText(call.query.get('query')) && 'no query',
    operation === EXPORT && call.query.get('filter[type]') !== 'ticket' && 'no type',
  ]
}

const comment = {
  action: 'add_comment',
  phase: { target_entries: [{ name: 'answer', ref: 35436, file: 'answer.md', public: true }] },
  files: { 'answer.md': 'The fire is out.\n' },
}
const PAGES = 'https://developer.zendesk.com/api-reference/introduction/pagination/'

export const helpdesk: Contract = {
  document: 'helpdesk',
  name: 'helpdesk',
  agent,
  settings: url => ({ ...ACCOUNT, base_url: url }),
  rules,
  undeclared: [
    {
      operation: ME,
      why: 'users are no part of the document',
      page: 'https://developer.zendesk.com/api-reference/ticketing/users/users/#show-self',
    },
    {
      operation: EXPORT,
      why: 'exports of searches are no part of the document',
      page: 'https://developer.zendesk.com/api-reference/ticketing/ticket-management/search/#export-search-results',
    },
    { operation: COMMENTS, names: ['page[size]', 'page[after]'], why: 'paging is in prose only', page: PAGES },
    { operation: SEARCH, names: ['per_page', 'page'], why: 'paging is in prose only', page: PAGES },
    {
      operation: UPDATE,
      names: ['body.ticket.metadata'],
      why: 'custom metadata of an update is described for audits',
      page: 'https://developer.zendesk.com/documentation/ticketing/managing-tickets/adding-metadata-to-tickets/',
    },
  ],
  doctor: {
    changes: { [ME]: [() => ({ user: { name: 'Kim', email: ACCOUNT.email, role: 'agent' } })] },
    calls: [ME],
  },
  cases: [
    { title: 'a ticket', action: 'get_ticket', phase: { sources: [{ name: 't.json', ref: 35436 }] }, calls: [TICKET] },
    {
      title: 'comments of two pages',
      action: 'get_comments',
      phase: { sources: [{ name: 'comments.json', ref: 35436 }] },
      changes: { [COMMENTS]: [answer => ({ ...answer, meta: { has_more: true, after_cursor: 'eyJvIjoiaWQifQ==' } })] },
      calls: [COMMENTS, COMMENTS],
    },
    {
      title: 'two pages of results',
      action: 'search',
      phase: { sources: [{ name: 'found.json', ref: 'type:ticket status:open' }] },
      changes: {
        [SEARCH]: [
          answer => ({ ...answer, next_page: 'https://acme.zendesk.com/api/v2/search.json?query=x&page=2' }),
          answer => ({ ...answer, next_page: null }),
        ],
      },
      calls: [SEARCH, SEARCH],
    },
    {
      title: 'more results than a search gives',
      action: 'search',
      phase: { sources: [{ name: 'found.json', ref: 'type:ticket status:open', limit: 2_000 }] },
      changes: {
        [SEARCH]: [answer => ({ ...answer, count: 1_500 })],
        [EXPORT]: [
          () => ({ results: [], meta: { has_more: true, after_cursor: 'eyJ9' } }),
          () => ({ results: [], meta: { has_more: false, after_cursor: null } }),
        ],
      },
      calls: [SEARCH, EXPORT, EXPORT],
    },
    { title: 'a public one', ...comment, calls: [TICKET, UPDATE] },
    {
      title: 'one that may be there already',
      ...comment,
      changes: { [UPDATE]: [LOST] },
      calls: [TICKET, UPDATE, COMMENTS],
      state: 'failed',
    },
    {
      title: 'solved',
      action: 'update_status',
      phase: { target_entries: [{ name: 'solved', ref: 35436, status: 'solved' }] },
      calls: [UPDATE],
    },
  ],
}
