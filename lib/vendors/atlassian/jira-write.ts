// Writes to Jira in such a way that a write whose reply was lost can be found again. The idempotency key is stored where
// readers do not see it: in a property of a comment or of a created issue, and in the history metadata of a transition.
// https://developer.atlassian.com/cloud/jira/platform/rest/v3/intro/

import { AgentError } from '../../agent/core/agent-error.ts'
import { beforehand } from '../../agent/entry.ts'
import { pagesOf } from '../../agent/listing.ts'
import { messageOf } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { type AdfNode, markdownToAdf } from './adf-write.ts'
import type { IssueDraft } from './issues-file.ts'
import { DAY, MARK } from './jira-created.ts'
import { type JiraField, jiraFields } from './jira-fields.ts'
import { BROWSE, commentsPage, getIssue, type Issue, issuePath, type JiraComment, jira } from './jira-read.ts'
import { Reply } from './jira-replies.ts'
import type { AtlassianContext } from './site.ts'

/** The property by which Jira Service Management knows comments that customers do not see. */
const INTERNAL = { key: 'sd.public.comment', value: { internal: true } }
const EDIT = 'Edit Issues (write:jira-work)'

/** Writes a comment. With `internal` the customers of a service project do not see it. */
export async function comment(
  key: string,
  document: AdfNode,
  context: AtlassianContext,
  { internal = false } = {},
): Promise<Pick<JiraComment, 'id'>> {
  const mark = { key: MARK, value: { key: context.key } }
  const body = { body: document, properties: internal ? [mark, INTERNAL] : [mark] }
  const options = { method: 'POST', body, scope: 'Add Comments (write:jira-work)', reply: Reply.comment }
  return await jira(context)<Pick<JiraComment, 'id'>>(`comment on ${key}`, issuePath(key, '/comment'), options)
}

/** The comments with the mark of this entry. Only comments since the start of the run are searched. */
export async function commented(key: string, context: AtlassianContext): Promise<{ id: string }[]> {
  const found: { id: string }[] = []
  const begun = context.run.created_at
  // A clock that was ahead when the run was created does not say when that was.
  const since = begun > Date.now() ? 0 : begun - DAY
  const page = (start = 0) => commentsPage(key, start, '-created', context)
  for await (const { items } of pagesOf(page)) {
    const recent = items.filter(({ created }) => !(Date.parse(created) < since))
    if (recent.length > 0) found.push(...(await markedAmong(recent, key, context)))
    if (recent.length < items.length) break
  }
  return found
}

interface WithProperties {
  id: string
  properties?: { key: string; value?: { key?: string } | null }[]
}

/** The comments with this entry's mark. Lists of comments leave properties out, so they are read by id. */
async function markedAmong(comments: readonly JiraComment[], key: string, context: AtlassianContext) {
  const body = { ids: comments.map(({ id }) => Number(id)) }
  const options = { method: 'POST', query: { expand: 'properties' }, body, scope: BROWSE, reply: Reply.commentsById }
  const { values } = await jira(context)<{ values: WithProperties[] }>(
    `look for comment on ${key}`,
    '/rest/api/3/comment/list',
    options,
  )
  return values.filter(({ properties = [] }) =>
    properties.some(each => each.key === MARK && each.value?.key === context.key),
  )
}

interface Transition {
  id: string
  name: string
  to: { name: string; id: string }
}

/**
 * Moves an issue by the name or id of a transition, or to a status. An issue that already has the status is left alone.
 */
export async function move(issue: Issue, to: string, context: AtlassianContext): Promise<void> {
  const { key } = issue
  const same = (name: string | undefined) => name?.toLowerCase() === to.toLowerCase()
  if (same(issue.fields.status?.name)) return
  const path = issuePath(key, '/transitions')
  const options = { scope: BROWSE, reply: Reply.transitions }
  const { transitions } = await beforehand(() =>
    jira(context)<{ transitions: Transition[] }>(`get transitions of ${key}`, path, options),
  )
  const chosen =
    transitions.find(({ id }) => id === to) ??
    transitions.find(({ name }) => same(name)) ??
    transitions.find(each => same(each.to.name) || each.to.id === to)
  if (!chosen) {
    const there = transitions.map(({ name, to: status }) => `${name} (to ${status.name})`).join(', ') || 'none'
    const message = `[${context.callName}] ${key} has no transition ${JSON.stringify(to)} from ${issue.fields.status?.name}`
    throw new AgentError(message, { code: 'invalid_request', hint: `available transitions: ${there}`, sent: 'no' })
  }
  const historyMetadata = { type: MARK, description: `run ${context.run.id}`, extraData: { [MARK]: context.key } }
  const body = { transition: { id: chosen.id }, historyMetadata }
  await jira(context)(`move ${key} by ${chosen.name}`, path, {
    method: 'POST',
    body,
    reply: null,
    scope: 'Transition Issues (write:jira-work)',
    hints: {
      400: 'if the screen of the transition requires fields, write them with update_fields first, or use another transition',
    },
  })
}

interface History {
  historyMetadata?: { extraData?: Record<string, string> }
}

/** Whether this entry has moved the issue, or the issue already has the wanted status. */
export async function moved(key: string, to: string, context: AtlassianContext): Promise<boolean> {
  const issue = await getIssue(key, context, { fields: 'status', expand: 'changelog' })
  if (issue.fields.status?.name.toLowerCase() === to.toLowerCase()) return true
  const { histories = [] } = (issue.changelog ?? {}) as { histories?: History[] }
  return histories.some(({ historyMetadata }) => historyMetadata?.extraData?.[MARK] === context.key)
}

/** Creates the issue at `index` of its file. `parent` is the key of an issue. */
export async function create(issue: IssueDraft, index: number, known: Known, context: AtlassianContext) {
  const { project = '', type = '' } = issue
  const fields = {
    project: /^\d+$/.test(project) ? { id: project } : { key: project },
    issuetype: /^\d+$/.test(type) ? { id: type } : { name: type },
    ...(await mainFields(issue, known)),
    ...(await ownFields(issue, known, context)),
  }
  const properties = [{ key: MARK, value: { key: context.key, index } }]
  const options = {
    method: 'POST',
    body: { fields, properties },
    reply: Reply.created,
    scope: 'Create Issues (write:jira-work)',
    hints: { 400: 'check project and type, and that `fields` contains every field that this type requires' },
  }
  const made = await jira(context)<{ key: string }>(`create "${issue.summary}"`, '/rest/api/3/issue', options)
  return made.key
}

/** Writes these fields of an issue and returns the issue as it is afterwards. */
export async function edit(key: string, fields: JsonObject, context: AtlassianContext): Promise<Issue> {
  await jira(context)(`edit ${key}`, issuePath(key), { method: 'PUT', body: { fields }, scope: EDIT, reply: null })
  return getIssue(key, context)
}

/** The issues as they are after a write, in the order of `keys`. */
export async function readBack(keys: readonly string[], context: AtlassianContext): Promise<Issue[]> {
  const issues: Issue[] = []
  for (const key of keys) issues.push(await readWritten(key, context))
  return issues
}

/**
 * The issue as it is after a write. If it cannot be read, because some accounts may create issues that they may not
 * see, the result has only its key.
 */
export async function readWritten(key: string, context: AtlassianContext): Promise<Issue> {
  try {
    return await getIssue(key, context)
  } catch (error) {
    context.log(`${key} was written but cannot be read: ${messageOf(error)}`)
    return { id: '', key, fields: {} }
  }
}

/** What is known when the issues of a file are written. */
export interface Known {
  fields: readonly JiraField[]
  /** The keys of the issues of the file, by their `id`. */
  keys: ReadonlyMap<string, string>
}

/** Jira's fields. They are requested only when an issue of the file has `fields`. */
export async function fieldsFor(issues: readonly IssueDraft[], context: AtlassianContext): Promise<JiraField[]> {
  if (!issues.some(({ fields }) => fields && Object.keys(fields).length > 0)) return []
  return await jira(context)<JiraField[]>('get fields', '/rest/api/3/field', { scope: BROWSE, reply: Reply.fields })
}

export async function mainFields(issue: IssueDraft, { keys }: Known): Promise<JsonObject> {
  const { summary, description, labels, parent } = issue
  return {
    ...(summary !== undefined && { summary }),
    ...(description !== undefined && { description: await markdownToAdf(description) }),
    ...(labels !== undefined && { labels }),
    ...(parent !== undefined && { parent: { key: keys.get(`${parent}`) ?? `${parent}` } }),
  }
}

export async function ownFields(
  { fields = {} }: IssueDraft,
  known: Known,
  context: AtlassianContext,
): Promise<JsonObject> {
  return jiraFields(context, fields, known.fields)
}
