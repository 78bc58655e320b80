// Jira Cloud as far as the issues agent goes: issues with comments, attachments, transitions, properties and a history,
// and the part of JQL that the agent itself writes. It is also reached through the gateway, at `/ex/jira/<cloud id>`.

import { isObject } from '../../lib/json.ts'
import { type FakeVendor, fakeVendor, refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'
import { formOf, isSigned, refusedForm } from './atlassian.ts'

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
  comments: FakeComment[]
  attachments: { id: string; filename: string; content: string }[]
  properties: Record<string, unknown>
  histories: { id: string; created: string; historyMetadata?: unknown }[]
}

interface FakeComment {
  id: string
  created: string
  author: { displayName: string; accountId: string }
  body: unknown
  properties: { key: string; value: unknown }[]
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
/** The address of the site for people. */
export const SITE = 'https://acme.atlassian.net'
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
    attachments: [],
    properties,
    histories: [],
  }
  state.issues.set(issue.key, issue)
  return issue
}

export function addComment(issue: FakeIssue, body: unknown, created = new Date().toISOString()) {
  const comment: FakeComment = {
    id: `${20_000 + issue.comments.length}`,
    created,
    author: USER,
    body,
    properties: [],
  }
  issue.comments.push(comment)
  return comment
}

export function addAttachment(issue: FakeIssue, filename: string, content: string) {
  const attachment = { id: `${30_000 + issue.attachments.length}`, filename, content }
  issue.attachments.push(attachment)
  return attachment
}

function answer(given: VendorRequest, state: FakeIssues): Response | Promise<Response> {
  const request = { ...given, path: given.path.replace(/^\/ex\/jira\/[^/]+/, '') }
  const { method, path, body } = request
  // The media service knows no credential of Jira.
  if (path.startsWith('/media/')) return content(path, state)
  if (!isSigned(request)) return refusal(401, { errorMessages: ['Client must be authenticated'] })
  const refused = refusedForm(request)
  if (refused) return refused
  if (path === '/rest/api/3/myself') return Response.json({ displayName: 'Ada Issues', active: true })
  if (path === '/rest/api/3/mypermissions') return permissions(request.query)
  if (path === '/rest/api/3/serverInfo') return Response.json({ baseUrl: SITE, deploymentType: 'Cloud' })
  if (path === '/rest/api/3/comment/list') return commentsById(request, state)
  if (path === '/rest/api/3/issue/bulkfetch') return bulkFetch(body, state)
  const attachment = /^\/rest\/api\/3\/attachment\/content\/(\d+)$/.exec(path)?.[1]
  if (attachment) return Response.redirect(`${state.url}/media/${attachment}`, 303)
  if (path === '/rest/api/3/search') return refusal(410, { errorMessages: ['removed: use /rest/api/3/search/jql'] })
  if (path === '/rest/api/3/search/jql') return search(body, state)
  if (path === '/rest/api/3/field') return Response.json(state.fields)
  if (path === '/rest/api/3/issue' && method === 'POST') return create(body, state)
  const [, key = '', rest = ''] =
    /^\/rest\/api\/3\/issue\/([^/]+)(\/comment|\/transitions|\/attachments)?$/.exec(path) ?? []
  const issue = state.issues.get(key)
  if (!issue) return refusal(404, { errorMessages: ['Issue does not exist or you do not have permission to see it.'] })
  if (rest === '/attachments') return attach(request, issue)
  if (rest === '/comment') return method === 'POST' ? comment(body, issue) : listComments(request, issue)
  if (rest === '/transitions') return method === 'POST' ? transition(body, issue) : listTransitions(issue)
  return method === 'PUT' ? edit(request, issue, state) : Response.json(shown(issue, request.query))
}

function shown({ id, key, fields, histories, attachments }: FakeIssue, query: URLSearchParams) {
  const changelog = { startAt: 0, maxResults: 100, total: histories.length, histories }
  return {
    id,
    key,
    fields: { ...fields, attachment: attachments.map(recordOf) },
    ...(query.get('expand') === 'changelog' && { changelog }),
  }
}

const recordOf = ({ id, filename, content }: FakeIssue['attachments'][number]) => {
  return { id, filename, size: Buffer.byteLength(content), mimeType: 'text/plain', author: USER }
}

function content(path: string, state: FakeIssues): Response {
  const all = [...state.issues.values()].flatMap(({ attachments }) => attachments)
  const found = all.find(({ id }) => path === `/media/${id}`)
  return found ? new Response(found.content) : refusal(404)
}

async function attach(request: VendorRequest, issue: FakeIssue): Promise<Response> {
  if (request.headers.get('x-atlassian-token') !== 'no-check') return refusal(403, 'XSRF check failed')
  const form = await formOf(request)
  if (!form) return invalid('file is required')
  return Response.json([recordOf(addAttachment(issue, form.filename, form.content))])
}

/** Issues by id or key, as the database has them. Those that are not there are left out. */
function bulkFetch(body: unknown, state: FakeIssues): Response {
  const { issueIdsOrKeys = [], properties = [] } = body as { issueIdsOrKeys?: string[]; properties?: string[] }
  if (issueIdsOrKeys.length === 0 || issueIdsOrKeys.length > 100) return invalid('issueIdsOrKeys')
  const found = issueIdsOrKeys.flatMap(key => state.issues.get(key) ?? [])
  const issues = found.map(issue => ({ id: issue.id, key: issue.key, properties: chosen(issue, properties) }))
  return Response.json({ issues, issueErrors: [] })
}

const chosen = (issue: FakeIssue, properties: string[]) =>
  Object.fromEntries(properties.flatMap(key => (key in issue.properties ? [[key, issue.properties[key]]] : [])))

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

function comment(given: unknown, issue: FakeIssue): Response {
  const { body, properties = [] } = given as Partial<FakeComment>
  if (!isDocument(body)) return invalid('Comment body is not valid!')
  const made = Object.assign(addComment(issue, body), { properties })
  return Response.json(listed(made), { status: 201 })
}

/** Comments have their properties only when they are asked for by id. */
function listed({ properties, ...comment }: FakeComment) {
  const isInternal = properties.some(
    ({ key, value }) => key === 'sd.public.comment' && isObject(value) && value.internal,
  )
  return { ...comment, jsdPublic: !isInternal }
}

function commentsById({ body, query }: VendorRequest, state: FakeIssues): Response {
  const { ids = [] } = body as { ids?: number[] }
  if (ids.length === 0 || ids.length > 1_000 || ids.some(id => typeof id !== 'number')) return invalid('ids')
  const all = [...state.issues.values()].flatMap(({ comments }) => comments)
  const found = all.filter(({ id }) => ids.includes(Number(id)))
  const isExpanded = query.get('expand') === 'properties'
  return Response.json({ values: found.map(each => (isExpanded ? each : listed(each))), total: found.length })
}

function listComments({ query }: VendorRequest, { comments }: FakeIssue): Response {
  const start = Number(query.get('startAt') ?? 0)
  const most = Math.min(Number(query.get('maxResults') ?? 100), 100)
  const ordered = query.get('orderBy') === '-created' ? comments.toReversed() : comments
  const page = {
    startAt: start,
    maxResults: most,
    total: comments.length,
    comments: ordered.slice(start, start + most).map(listed),
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

/** Knows `parent in (…)` and the order by key; any other bounded query finds all. */
function search(body: unknown, state: FakeIssues): Response {
  const known = ['jql', 'fields', 'maxResults', 'nextPageToken', 'properties']
  if (!isObject(body) || Object.keys(body).some(key => !known.includes(key))) return invalid('unknown field')
  const {
    jql,
    maxResults = 50,
    nextPageToken = '0',
    fields = ['id'],
    properties = [],
  } = body as {
    jql?: string
    maxResults?: number
    nextPageToken?: string
    fields?: string[]
    properties?: string[]
  }
  if (!jql || /^\s*order by/i.test(jql)) return invalid('Unbounded JQL queries are not allowed here')
  if (maxResults > 100) return invalid('maxResults')
  const parents = /^parent in \(([^)]*)\)/.exec(jql)?.[1]
  const matching = [...state.issues.values()].filter(
    issue => !state.unindexed.has(issue.key) && (!parents || parents.includes(`"${issue.fields.parent?.key}"`)),
  )
  const found = jql.endsWith('ORDER BY key DESC') ? matching.toReversed() : matching
  const start = Number(nextPageToken)
  const end = start + maxResults
  // Without fields there are only ids, and keys have to be asked for as well.
  const wanted = fields.filter(field => field !== 'id')
  const issues = found.slice(start, end).map(issue => ({
    id: issue.id,
    ...(wanted.length > 0 && { key: issue.key }),
    ...(wanted.some(field => field !== 'key') && { fields: issue.fields }),
    ...(properties.length > 0 && { properties: chosen(issue, properties) }),
  }))
  return Response.json({ issues, isLast: end >= found.length, ...(end < found.length && { nextPageToken: `${end}` }) })
}
