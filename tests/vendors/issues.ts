// Jira Cloud as far as the issues agent goes: issues with comments, transitions, properties and a history, and the part
// of JQL that the agent itself writes.

import { isObject } from '../../lib/json.ts'
import { type FakeVendor, fakeVendor, refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'
import { isSigned, refusedForm } from './atlassian.ts'

interface Given {
  project?: { key: string }
  issuetype?: { name: string }
  parent?: { key: string }
  labels?: string[]
  priority?: { name?: string }
  [field: string]: unknown
}

interface Fields extends Given {
  status: { id: string; name: string | undefined }
}

export interface FakeIssue {
  id: string
  key: string
  fields: Fields
  comments: { id: string; created: string; author: { displayName: string; accountId: string }; body: unknown }[]
  properties: Record<string, unknown>
  histories: { id: string; created: string; historyMetadata?: unknown }[]
}

export interface FakeIssues extends FakeVendor {
  issues: Map<string, FakeIssue>
  fields: object[]
  /** Issues whose creation a search does not see yet. */
  unindexed: Set<string>
}

const STATUSES: Record<string, string> = { 1: 'To Do', 3: 'In Progress', 5: 'Done' }
const TRANSITIONS = [
  { id: '11', name: 'Start', from: '1', to: '3' },
  { id: '31', name: 'Finish', from: '3', to: '5' },
]
const USER = { displayName: 'Ada', accountId: '5b1' }

export const FIELDS = [
  { id: 'summary', name: 'Summary', schema: { type: 'string', system: 'summary' } },
  { id: 'environment', name: 'Environment', schema: { type: 'string', system: 'environment' } },
  { id: 'priority', name: 'Priority', schema: { type: 'priority', system: 'priority' } },
  { id: 'customfield_10016', name: 'Story Points', schema: { type: 'number', custom: 'x:float' } },
  { id: 'customfield_10020', name: 'Notes', schema: { type: 'string', custom: 'x:textarea' } },
  { id: 'customfield_10030', name: 'Teams', schema: { type: 'array', items: 'option', custom: 'x:multicheckboxes' } },
  { id: 'parent', name: 'Parent' },
  { id: 'customfield_10021', name: 'Sprint', schema: { type: 'array', items: 'json', custom: 'x:gh-sprint' } },
  { id: 'customfield_10031', name: 'Size', schema: { type: 'option', custom: 'x:select' } },
  { id: 'customfield_10032', name: 'Region', schema: { type: 'option-with-child', custom: 'x:cascadingselect' } },
  { id: 'customfield_10033', name: 'Reviewer', schema: { type: 'user', custom: 'x:userpicker' } },
  { id: 'customfield_10034', name: 'Due', schema: { type: 'date', custom: 'x:datepicker' } },
  { id: 'customfield_10035', name: 'Build', schema: { type: 'string', custom: 'x:textfield' } },
  { id: 'customfield_10036', name: 'Shipped', schema: { type: 'datetime', custom: 'x:datetime' } },
  { id: 'customfield_10041', name: 'Twin', schema: { type: 'string', custom: 'x:textfield' } },
  { id: 'customfield_10042', name: 'twin', schema: { type: 'string', custom: 'x:textfield' } },
]

export function fakeIssues(): FakeIssues {
  const server = fakeVendor(request => answer(request, state))
  const state: FakeIssues = Object.assign(server, { issues: new Map(), fields: FIELDS, unindexed: new Set<string>() })
  addIssue(state, { summary: 'Login fails', description: doc('On Mondays.') })
  return state
}

export const doc = (text: string) => ({
  type: 'doc',
  version: 1,
  content: [{ type: 'paragraph', content: [{ type: 'text', text }] }],
})

export function addIssue(state: FakeIssues, fields: Given, properties: Record<string, unknown> = {}): FakeIssue {
  const number = state.issues.size + 1
  const issue: FakeIssue = {
    id: `${10_000 + number}`,
    key: `WEB-${number}`,
    fields: {
      project: { key: 'WEB' },
      issuetype: { name: 'Story' },
      labels: [],
      issuelinks: [],
      priority: { name: 'Medium' },
      created: new Date().toISOString(),
      ...fields,
      status: { id: '1', name: STATUSES[1] },
    },
    comments: [],
    properties,
    histories: [],
  }
  state.issues.set(issue.key, issue)
  return issue
}

export function addComment(issue: FakeIssue, body: unknown, created = new Date().toISOString()) {
  const comment = { id: `${20_000 + issue.comments.length}`, created, author: USER, body }
  issue.comments.push(comment)
  return comment
}

function answer(request: VendorRequest, state: FakeIssues): Response {
  const { method, path, body } = request
  if (!isSigned(request)) return refusal(401, { errorMessages: ['Client must be authenticated'] })
  const refused = refusedForm(request)
  if (refused) return refused
  if (path === '/rest/api/3/myself') return Response.json({ displayName: 'Ada Issues', active: true })
  if (path === '/rest/api/3/mypermissions') return permissions(request.query)
  if (path === '/rest/api/3/search') return refusal(410, { errorMessages: ['removed: use /rest/api/3/search/jql'] })
  if (path === '/rest/api/3/search/jql') return search(body, state)
  if (path === '/rest/api/3/field') return Response.json(state.fields)
  if (path === '/rest/api/3/issue' && method === 'POST') return create(body, state)
  const [, key = '', rest = ''] = /^\/rest\/api\/3\/issue\/([^/]+)(\/comment|\/transitions)?$/.exec(path) ?? []
  const issue = state.issues.get(key)
  if (!issue) return refusal(404, { errorMessages: ['Issue does not exist or you do not have permission to see it.'] })
  if (rest === '/comment') return method === 'POST' ? comment(body, issue) : listComments(request, issue)
  if (rest === '/transitions') return method === 'POST' ? transition(body, issue) : listTransitions(issue)
  return method === 'PUT' ? edit(request, issue, state) : Response.json(shown(issue, request.query))
}

function shown({ id, key, fields, histories }: FakeIssue, query: URLSearchParams) {
  const changelog = { startAt: 0, maxResults: 100, total: histories.length, histories }
  return { id, key, fields, ...(query.get('expand') === 'changelog' && { changelog }) }
}

const invalid = (...errorMessages: string[]) => refusal(400, { errorMessages, errors: {} })

/** Of those that are asked for; without names Jira refuses. */
function permissions(query: URLSearchParams): Response {
  const names = query.get('permissions')?.split(',')
  if (!names) return invalid('permissions is required')
  const found = names.map(key => [key, { key, havePermission: true }])
  return Response.json({ permissions: Object.fromEntries(found) })
}

/** Texts of version 3 of the API are documents. */
function isDocument(value: unknown): boolean {
  return isObject(value) && value.type === 'doc' && value.version === 1 && Array.isArray(value.content)
}

function problemOf(fields: Given, state: FakeIssues): string | null {
  const { description, environment, labels, parent, priority, customfield_10020: notes } = fields
  for (const text of [description, environment, notes]) {
    if (text !== undefined && !isDocument(text)) return 'Operation value must be an Atlassian Document'
  }
  if (labels?.some((label: string) => /\s/.test(label))) return 'The label contains spaces'
  if (parent && !state.issues.has(parent.key)) return 'Given parent work item does not exist'
  if (priority && !priority.name) return 'Priority is invalid'
  const wrong = FIELDS.find(({ id, schema }) => schema && fields[id] != null && !isOfForm(schema, fields[id]))
  return wrong ? `${wrong.id}: data was not of the field's type` : null
}

const has = (value: unknown, name: string) => isObject(value) && typeof value[name] === 'string'

/** What Jira takes of values of the types in FIELDS. */
function isOfForm({ type, items, custom }: { type: string; items?: string; custom?: string }, value: unknown): boolean {
  if (custom === 'x:gh-sprint' || type === 'number') return typeof value === 'number'
  if (type === 'array') return Array.isArray(value) && value.every(item => isOfForm({ type: items! }, item))
  if (type === 'option-with-child')
    return has(value, 'value') && (!('child' in Object(value)) || has(Object(value).child, 'value'))
  if (type === 'option') return has(value, 'value') || has(value, 'id')
  if (type === 'user') return has(value, 'accountId')
  if (custom === 'x:textfield') return typeof value === 'string'
  if (type === 'datetime') return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}$/.test(`${value}`)
  return type !== 'date' || (typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value))
}

function create(body: unknown, state: FakeIssues): Response {
  const { fields, properties = [] } = body as { fields: Given; properties?: { key: string; value: unknown }[] }
  if (fields?.project?.key !== 'WEB') return invalid('valid project is required')
  if (!fields.issuetype?.name || !fields.summary) return invalid('issuetype and summary are required')
  const problem = problemOf(fields, state)
  if (problem) return invalid(problem)
  const issue = addIssue(state, fields, Object.fromEntries(properties.map(({ key, value }) => [key, value])))
  return Response.json(
    { id: issue.id, key: issue.key, self: `${state.url}/rest/api/3/issue/${issue.id}` },
    { status: 201 },
  )
}

function edit({ body, query }: VendorRequest, issue: FakeIssue, state: FakeIssues): Response {
  const { fields } = body as { fields: Given }
  if (!isObject(fields)) return invalid('fields is required')
  const problem = problemOf(fields, state)
  if (problem) return invalid(problem)
  Object.assign(issue.fields, fields)
  return query.get('returnIssue') === 'true' ? Response.json(shown(issue, query)) : new Response(null, { status: 204 })
}

function comment(body: unknown, issue: FakeIssue): Response {
  const text = (body as { body?: unknown }).body
  return isDocument(text)
    ? Response.json(addComment(issue, text), { status: 201 })
    : invalid('Comment body is not valid!')
}

function listComments({ query }: VendorRequest, { comments }: FakeIssue): Response {
  const start = Number(query.get('startAt') ?? 0)
  const most = Math.min(Number(query.get('maxResults') ?? 100), 100)
  const ordered = query.get('orderBy') === '-created' ? comments.toReversed() : comments
  const page = {
    startAt: start,
    maxResults: most,
    total: comments.length,
    comments: ordered.slice(start, start + most),
  }
  return Response.json(page)
}

function listTransitions({ fields }: FakeIssue): Response {
  const transitions = TRANSITIONS.filter(({ from }) => from === fields.status.id)
  return Response.json({
    transitions: transitions.map(({ id, name, to }) => ({ id, name, to: { id: to, name: STATUSES[to] } })),
  })
}

function transition(body: unknown, issue: FakeIssue): Response {
  const { transition: wanted, historyMetadata } = body as { transition?: { id?: string }; historyMetadata?: unknown }
  const found = TRANSITIONS.find(({ id, from }) => id === wanted?.id && from === issue.fields.status.id)
  if (!found) return invalid('It is not possible to make this transition')
  issue.fields.status = { id: found.to, name: STATUSES[found.to] }
  issue.histories.unshift({
    id: '1',
    created: new Date().toISOString(),
    ...(historyMetadata ? { historyMetadata } : {}),
  })
  return new Response(null, { status: 204 })
}

/** Knows `parent in (…)` and `project in (…) AND …`; any other bounded query finds all. */
function search(body: unknown, state: FakeIssues): Response {
  const known = ['jql', 'fields', 'maxResults', 'nextPageToken', 'properties']
  if (!isObject(body) || Object.keys(body).some(key => !known.includes(key))) return invalid('unknown field')
  const {
    jql,
    maxResults = 50,
    nextPageToken = '0',
    fields,
    properties = [],
  } = body as {
    jql?: string
    maxResults?: number
    nextPageToken?: string
    fields?: string[]
    properties?: string[]
  }
  if (!jql || /^\s*order by/i.test(jql)) return invalid('Unbounded JQL queries are not allowed here')
  if (maxResults > 100 && fields?.length) return invalid('maxResults')
  const parents = /^parent in \(([^)]*)\)/.exec(jql)?.[1]
  const found = [...state.issues.values()].filter(
    issue => !state.unindexed.has(issue.key) && (!parents || parents.includes(`"${issue.fields.parent?.key}"`)),
  )
  const start = Number(nextPageToken)
  const end = start + maxResults
  const issues = found.slice(start, end).map(issue => ({
    id: issue.id,
    key: issue.key,
    ...(fields && { fields: issue.fields }),
    ...(properties.length > 0 && {
      properties: Object.fromEntries(
        properties.flatMap(key => (key in issue.properties ? [[key, issue.properties[key]]] : [])),
      ),
    }),
  }))
  return Response.json({ issues, isLast: end >= found.length, ...(end < found.length && { nextPageToken: `${end}` }) })
}
