// https://developer.atlassian.com/cloud/jira/platform/rest/v3/intro/

import agent from '../../../agents/issues.ts'
import { type Contract, LOST } from '../contract.ts'
import { at, type Call, isText } from '../recorder.ts'
import { ACCOUNT, isDocument, isSigned } from './atlassian.ts'

const ISSUE = '/rest/api/3/issue/{issueIdOrKey}'
const GET = `GET ${ISSUE}`
const EDIT = `PUT ${ISSUE}`
const COMMENTS = `GET ${ISSUE}/comment`
const COMMENT = `POST ${ISSUE}/comment`
const TRANSITIONS = `GET ${ISSUE}/transitions`
const MOVE = `POST ${ISSUE}/transitions`
const CREATE = 'POST /rest/api/3/issue'
const SEARCH = 'POST /rest/api/3/search/jql'
const FIELDS = 'GET /rest/api/3/field'
const ALLOWED = 'GET /rest/api/3/mypermissions'
const FETCH = 'POST /rest/api/3/issue/bulkfetch'
const LISTED = 'POST /rest/api/3/comment/list'
const ATTACH = 'POST /rest/api/3/issue/ED-1/attachments'
const CONTENT = 'GET /rest/api/3/attachment/content/10000'

function rules(call: Call) {
  const { operation, line, body } = call
  const fields = at(body, 'fields')
  const description = at(fields, 'description')
  return [
    !isSigned(call) && 'no credential',
    / \/rest\/api\/3\/(search|issue\/createmeta)$/.test(line) && 'is being removed',
    operation === CREATE && !isText(at(fields, 'project', 'key') ?? at(fields, 'project', 'id')) && 'no project',
    operation === CREATE && !isText(at(fields, 'issuetype', 'name') ?? at(fields, 'issuetype', 'id')) && 'no issuetype',
    operation === CREATE && !isText(at(fields, 'summary')) && 'no summary',
    operation === EDIT && Object.keys((fields ?? {}) as object).length === 0 && 'no fields',
    description !== undefined && !isDocument(description) && 'description is no document',
    operation === COMMENT && !isDocument(at(body, 'body')) && 'body is no document',
    operation === MOVE && !isText(at(body, 'transition', 'id')) && 'no transition.id',
    operation === SEARCH && !isBounded(at(body, 'jql')) && 'jql is not bounded',
    operation === FETCH && !isShortList(at(body, 'issueIdsOrKeys'), 100) && 'not 1 to 100 issues',
    operation === LISTED && !isShortList(at(body, 'ids'), 1_000) && 'not 1 to 1,000 comments',
    operation === ATTACH && call.headers.get('x-atlassian-token') !== 'no-check' && 'no X-Atlassian-Token',
    operation === ATTACH && !/name="file"; filename="report.txt"/.test(String(body)) && 'no file',
  ]
}

function isShortList(value: unknown, most: number): boolean {
  return Array.isArray(value) && value.length > 0 && value.length <= most
}

/** Jira refuses a query that is nothing but an order. */
function isBounded(jql: unknown): boolean {
  return typeof jql === 'string' && /(=|~|>|<| in ?\().*$/i.test(jql.replace(/ORDER BY.*/i, ''))
}

const story = {
  project: 'EX',
  type: 'Story',
  summary: 'Print invoices',
  description: 'As a **clerk**',
  labels: ['print'],
}
const file = (...list: object[]) => ({ 'dispatch.json': JSON.stringify({ issues: list }) })
const dispatch = { target_entries: [{ name: 'stories', file: 'dispatch.json' }] }
const none = (answer: object) => ({ ...answer, issues: [] })

// biome-ignore lint/suspicious/noExplicitAny: the answer of Prism
const withFile = (answer: any, file: object) => ({ ...answer, fields: { ...answer.fields, attachment: [file] } })

const granted = (names: string) => Object.fromEntries(names.split(',').map(name => [name, { havePermission: true }]))

export const issues: Contract = {
  document: 'issues',
  name: 'issues',
  agent,
  settings: url => ({ ...ACCOUNT, base_url: url }),
  rules,
  undeclared: [
    {
      operation: ALLOWED,
      why: 'permissions are no part of the document',
      page: 'https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-permissions/',
    },
    {
      operation: FETCH,
      why: 'the document has only a part of the API',
      page: 'https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issues/#api-rest-api-3-issue-bulkfetch-post',
    },
    {
      operation: LISTED,
      why: 'the document has only a part of the API',
      page: 'https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issue-comments/#api-rest-api-3-comment-list-post',
    },
    ...[ATTACH, CONTENT].map(operation => ({
      operation,
      why: 'attachments are no part of the document',
      page: 'https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issue-attachments/',
    })),
  ],
  doctor: {
    changes: { [ALLOWED]: [(_, { query }) => ({ permissions: granted(query.get('permissions') ?? '') })] },
    calls: ['GET /rest/api/3/myself', ALLOWED],
  },
  // The vendor answers so, though the document's lowest status is 200.
  prefer: { [EDIT]: 'code=204' },
  cases: [
    { title: 'an issue', action: 'get_issue', phase: { sources: [{ name: 'one.json', ref: 'ED-1' }] }, calls: [GET] },
    {
      title: 'two levels of children',
      action: 'get_issue_tree',
      phase: { sources: [{ name: 'tree.json', ref: 'ED-1', depth: 2 }] },
      changes: {
        [SEARCH]: [
          answer => ({ ...answer, issues: [{ ...answer.issues[0], key: 'ED-2' }], nextPageToken: 'CAEaAggD' }),
          none,
          none,
        ],
      },
      calls: [GET, SEARCH, SEARCH, SEARCH],
    },
    {
      title: 'comments of two pages',
      action: 'get_comments',
      phase: { sources: [{ name: 'comments.json', ref: 'ED-1', limit: 150 }] },
      changes: { [COMMENTS]: [answer => ({ ...answer, total: 2 }), answer => ({ ...answer, total: 2 })] },
      calls: [COMMENTS, COMMENTS],
    },
    {
      title: 'two pages of issues',
      action: 'search',
      phase: { sources: [{ name: 'found.json', ref: 'project = EX and status = Open', limit: 150 }] },
      changes: { [SEARCH]: [answer => ({ ...answer, nextPageToken: 'CAEaAggD' }), none] },
      calls: [SEARCH, SEARCH],
    },
    {
      title: 'Markdown',
      action: 'add_comment',
      phase: { target_entries: [{ name: 'comment', ref: 'ED-1', file: 'comment.md' }] },
      files: { 'comment.md': '# Done\n\n1. one\n2. [two](https://example.com)\n\n```sh\nmake\n```\n' },
      calls: [GET, COMMENT],
    },
    {
      title: 'a comment that may be there already',
      action: 'add_comment',
      phase: { target_entries: [{ name: 'comment', ref: 'ED-1', file: 'comment.md' }] },
      files: { 'comment.md': 'Done\n' },
      changes: {
        [COMMENT]: [LOST],
        // Older ones than the run are not looked at.
        [COMMENTS]: [answer => ({ ...answer, comments: [{ ...answer.comments[0], created: new Date() }] })],
        [LISTED]: [() => ({ values: [] })],
      },
      calls: [GET, COMMENT, COMMENTS, LISTED],
      state: 'failed',
    },
    {
      title: 'an internal note',
      action: 'add_comment',
      phase: { target_entries: [{ name: 'comment', ref: 'ED-1', file: 'comment.md', public: false }] },
      files: { 'comment.md': 'Only for us\n' },
      calls: [GET, COMMENT],
    },
    {
      title: 'the files of an issue',
      action: 'get_attachments',
      phase: { sources: [{ name: 'files', ref: 'ED-1' }] },
      changes: {
        [GET]: [answer => withFile(answer, { id: 10000, filename: 'log.txt', size: 5 })],
        [CONTENT]: [() => new Response('first')],
      },
      calls: [GET, CONTENT],
    },
    {
      title: 'a file that the issue does not have',
      action: 'add_attachment',
      phase: { target_entries: [{ name: 'file', ref: 'ED-1', file: 'report.txt' }] },
      files: { 'report.txt': 'all is well' },
      changes: { [ATTACH]: [() => [{ id: '10001', filename: 'report.txt', size: 11 }]] },
      calls: [GET, ATTACH],
    },
    {
      title: 'by the name of a transition, with a comment',
      action: 'transition',
      phase: { target_entries: [{ name: 'move', ref: 'ED-1', to: 'Close Issue', comment: 'Released' }] },
      calls: [GET, TRANSITIONS, MOVE, COMMENT, GET],
    },
    {
      title: 'a move that may have been made already',
      action: 'transition',
      phase: { target_entries: [{ name: 'move', ref: 'ED-1', to: 'Close Issue' }] },
      changes: { [MOVE]: [LOST] },
      calls: [GET, TRANSITIONS, MOVE, GET],
      state: 'failed',
    },
    {
      title: 'a story and its child, with a field by name',
      action: 'create_issue',
      phase: dispatch,
      files: file({ ...story, id: 'a' }, { ...story, type: '10001', parent: 'a', fields: { Summary: 'Another' } }),
      calls: [FIELDS, CREATE, CREATE, GET, GET],
    },
    {
      title: 'an issue that may have been created already',
      action: 'create_issue',
      phase: dispatch,
      files: file(story),
      changes: {
        [CREATE]: [LOST],
        [SEARCH]: [none, none, none, none, none, none],
        [FETCH]: [() => ({ issues: [] }), () => ({ issues: [] }), () => ({ issues: [] })],
      },
      calls: [CREATE, ...[1, 2, 3].flatMap(() => [SEARCH, SEARCH, FETCH])],
      state: 'failed',
    },
    {
      title: 'the main fields',
      action: 'update_issue',
      phase: dispatch,
      files: file({ key: 'ED-1', summary: 'New', description: 'New\n\n> text', labels: ['a'], parent: 'ED-9' }),
      calls: [EDIT, GET],
    },
    {
      title: 'fields by name, texts as documents',
      action: 'update_fields',
      phase: { target_entries: [{ name: 'fields', ref: 'ED-1', file: 'dispatch.json' }] },
      files: file({ fields: { Description: 'All **new**', summary: 'New' } }),
      calls: [FIELDS, EDIT, GET],
    },
  ],
}
