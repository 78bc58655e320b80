// https://developer.atlassian.com/cloud/confluence/rest/v2/api-group-page/

import agent from '../../../agents/wiki.ts'
import { type Contract, LOST } from '../contract.ts'
import { at, type Call, isText } from '../recorder.ts'
import { ACCOUNT, isSigned } from './atlassian.ts'

const GET = 'GET /wiki/api/v2/pages/{id}'
const PUT = 'PUT /wiki/api/v2/pages/{id}'
const LIST = 'GET /wiki/api/v2/pages'
const CREATE = 'POST /wiki/api/v2/pages'
const SPACES = 'GET /wiki/api/v2/spaces'
const SEARCH = 'GET /wiki/rest/api/search'
const WHO = 'GET /wiki/rest/api/user/current'
const NAMES = 'POST /wiki/api/v2/users-bulk'
const FILES = 'GET /wiki/api/v2/pages/131073/attachments'
const ATTACH = 'PUT /wiki/rest/api/content/131073/child/attachment'
const DOWNLOAD = 'GET /wiki/rest/api/content/131073/child/attachment/att1/download'
/** Of the page that the document has as its example. */
const VERSION = 3

function rules(call: Call) {
  const { operation, body } = call
  const isWrite = operation === CREATE || operation === PUT
  return [
    !isSigned(call) && 'no credential',
    isWrite && !isText(at(body, 'title')) && 'no title',
    isWrite && at(body, 'body', 'representation') !== 'storage' && 'no representation',
    isWrite && !isText(at(body, 'body', 'value')) && 'no value',
    operation === CREATE && !/^[0-9]+$/.test(String(at(body, 'spaceId'))) && 'spaceId is no number',
    operation === PUT && at(body, 'version', 'number') !== VERSION + 1 && 'version.number is not the next one',
    operation === PUT && !call.line.endsWith(`/${at(body, 'id')}`) && 'id is not that of the path',
    operation === SEARCH && !isText(call.query.get('cql')) && 'no cql',
    operation === ATTACH && call.headers.get('x-atlassian-token') !== 'nocheck' && 'no X-Atlassian-Token',
    operation === ATTACH && !/name="file"; filename="report.txt"/.test(String(body)) && 'no file',
  ]
}

const page = { name: 'page', ref: '131073', title: 'Runbook', file: 'page.md' }
const files = { 'page.md': '# Steps\n\n- one\n' }

export const wiki: Contract = {
  document: 'wiki',
  name: 'wiki',
  agent,
  settings: url => ({ ...ACCOUNT, base_url: url }),
  rules,
  undeclared: [
    {
      operation: WHO,
      why: 'the account is no part of the documents',
      page: 'https://developer.atlassian.com/cloud/confluence/rest/v1/api-group-users/#api-wiki-rest-api-user-current-get',
    },
    {
      operation: NAMES,
      why: 'people are no part of the documents',
      page: 'https://developer.atlassian.com/cloud/confluence/rest/v2/api-group-user/#api-users-bulk-post',
    },
    {
      operation: FILES,
      why: 'attachments are no part of the documents',
      page: 'https://developer.atlassian.com/cloud/confluence/rest/v2/api-group-attachment/#api-pages-id-attachments-get',
    },
    ...[ATTACH, DOWNLOAD].map(operation => ({
      operation,
      why: 'attachments are no part of the documents',
      page: 'https://developer.atlassian.com/cloud/confluence/rest/v1/api-group-content---attachments/',
    })),
  ],
  doctor: {
    changes: { [WHO]: [() => ({ displayName: 'Ada' })] },
    calls: [WHO, SPACES, LIST, SEARCH],
  },
  cases: [
    { title: 'a page', action: 'get_page', phase: { sources: [{ name: 'page.md', ref: '131073' }] }, calls: [GET] },
    {
      title: 'a page that mentions somebody',
      action: 'get_page',
      phase: { sources: [{ name: 'page.md', ref: '131073' }] },
      changes: {
        [GET]: [
          answer => ({ ...answer, body: { storage: { value: '<ac:link><ri:user ri:account-id="5b1" /></ac:link>' } } }),
        ],
        [NAMES]: [() => ({ results: [{ accountId: '5b1', displayName: 'Ada' }] })],
      },
      calls: [GET, NAMES],
    },
    {
      title: 'the files of a page',
      action: 'get_attachments',
      phase: { sources: [{ name: 'files', ref: '131073' }] },
      changes: {
        [FILES]: [() => ({ results: [{ id: 'att1', title: 'log.txt', fileSize: 5, version: { number: 1 } }] })],
        [DOWNLOAD]: [() => new Response('first')],
      },
      calls: [FILES, DOWNLOAD],
    },
    {
      title: 'a file, or its new version',
      action: 'add_attachment',
      phase: { target_entries: [{ name: 'file', ref: '131073', file: 'report.txt' }] },
      files: { 'report.txt': 'all is well' },
      changes: {
        [FILES]: [() => ({ results: [] })],
        [ATTACH]: [() => ({ results: [{ id: 'att1', title: 'report.txt' }] })],
      },
      calls: [GET, FILES, ATTACH],
    },
    {
      title: 'pages of results, by cursor and by start',
      action: 'search',
      phase: { sources: [{ name: 'found.json', ref: 'type = page and text ~ "release"', limit: 200 }] },
      changes: {
        [SEARCH]: [
          answer => ({ ...answer, _links: { next: '/rest/api/search?cql=x&cursor=raw_1' } }),
          answer => ({ ...answer, _links: { next: '/rest/api/search?cql=x&start=2' } }),
        ],
      },
      calls: [SEARCH, SEARCH, SEARCH],
    },
    {
      title: 'a page below another',
      action: 'create_page',
      phase: { target_entries: [{ ...page, ref: 'DEV', parent: 65600 }] },
      files,
      calls: [SPACES, CREATE],
    },
    {
      title: 'a page that may have been created already',
      action: 'create_page',
      phase: { target_entries: [{ ...page, ref: 'DEV' }] },
      files,
      changes: {
        [CREATE]: [LOST],
        [LIST]: [answer => ({ ...answer, results: [] })],
      },
      calls: [SPACES, CREATE, SPACES, LIST],
      state: 'failed',
    },
    { title: 'a page anew', action: 'update_page', phase: { target_entries: [page] }, files, calls: [GET, PUT] },
    {
      title: 'a page that someone else changed meanwhile',
      action: 'update_page',
      phase: { target_entries: [page] },
      files,
      changes: { [PUT]: [() => Response.json({}, { status: 409 })] },
      calls: [GET, PUT, GET, PUT],
    },
  ],
}
