// Writes to Jira in such a way that a write whose reply was lost can be found again. The idempotency key is stored in
// the last line of a comment, in the history metadata of a transition, and in a property of a created issue.
// https://developer.atlassian.com/cloud/jira/platform/rest/v3/intro/

import { setTimeout as pause } from 'node:timers/promises'
import { AgentError } from '../../agent/define.ts'
import { beforehand } from '../../agent/entry.ts'
import { pagesOf } from '../../agent/listing.ts'
import { messageOf } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { type AdfNode, markdownToAdf } from './adf-write.ts'
import type { IssueDraft } from './issues-file.ts'
import { type JiraField, jiraFields } from './jira-fields.ts'
import {
  BROWSE,
  commentsPage,
  getIssue,
  type Issue,
  issuePath,
  type JiraComment,
  jira,
  searchPage,
} from './jira-read.ts'
import type { AtlassianContext } from './site.ts'

/** The name of the issue property and of the history's extra data that hold the idempotency key. */
const MARK = 'cadre'
const DAY = 24 * 3_600_000
/** Milliseconds until a search finds an issue that was just created. */
const INDEXED = 1_500
const EDIT = 'Edit Issues (write:jira-work)'

export async function comment(key: string, document: AdfNode, context: AtlassianContext): Promise<JiraComment> {
  const last = { type: 'paragraph', content: [{ type: 'text', text: markOf(context), marks: [{ type: 'code' }] }] }
  const body = { ...document, content: [...(document.content ?? []), last] }
  const options = { method: 'POST', body: { body }, scope: 'Add Comments (write:jira-work)' }
  return await jira(context)<JiraComment>(`comment on ${key}`, issuePath(key, '/comment'), options)
}

/** The comment that this entry wrote, or null. Only comments since the start of the run are searched. */
export async function commented(key: string, context: AtlassianContext): Promise<JiraComment | null> {
  const page = (start = 0) => commentsPage(key, start, '-created', context)
  for await (const { items } of pagesOf(page)) {
    const mine = items.find(({ body }) => JSON.stringify(body).includes(markOf(context)))
    if (mine) return mine
    if (items.some(({ created }) => Date.parse(created) < startOf(context) - DAY)) return null
  }
  return null
}

const markOf = ({ key }: AtlassianContext) => `cadre ${key}`

/** The time at which the run was created. Its id is a UUIDv7, which begins with that time. */
function startOf({ run }: AtlassianContext): number {
  return Number.parseInt(run.id.replaceAll('-', '').slice(0, 12), 16)
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
  const options = { scope: BROWSE }
  const { transitions } = await beforehand(() =>
    jira(context)<{ transitions: Transition[] }>(`get transitions of ${key}`, path, options),
  )
  const chosen =
    transitions.find(({ id }) => id === to) ??
    transitions.find(({ name }) => same(name)) ??
    transitions.find(each => same(each.to.name) || each.to.id === to)
  if (!chosen) {
    const there = transitions.map(({ name, to: status }) => `${name} (to ${status.name})`).join(', ') || 'none'
    const message = `[${context.place}] ${key} has no transition ${JSON.stringify(to)} from ${issue.fields.status?.name}`
    throw new AgentError(message, { code: 'invalid_request', hint: `available transitions: ${there}`, sent: 'no' })
  }
  const historyMetadata = { type: MARK, description: `run ${context.run.id}`, extraData: { [MARK]: context.key } }
  const body = { transition: { id: chosen.id }, historyMetadata }
  await jira(context)(`move ${key} by ${chosen.name}`, path, {
    method: 'POST',
    body,
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

/** The issues of a file that this entry has already created: their keys by index in the file. */
export async function created(issues: readonly IssueDraft[], context: AtlassianContext) {
  const wanted = issues.filter(({ key }) => key === undefined).length
  if (wanted === 0) return new Map<number, string>()
  const found = await lookForCreated(issues, context)
  if (found.size === wanted) return found
  await pause(INDEXED, undefined, { signal: context.signal })
  return lookForCreated(issues, context)
}

async function lookForCreated(issues: readonly IssueDraft[], context: AtlassianContext) {
  const found = new Map<number, string>()
  const projects = [...new Set(issues.flatMap(({ project }) => (project === undefined ? [] : [project])))]
  const days = Math.ceil((Date.now() - startOf(context)) / DAY) + 1
  const list = projects.map(project => `"${project.replace(/["\\]/g, '')}"`).join(', ')
  const jql = `project in (${list}) AND created >= -${days}d AND creator = currentUser() ORDER BY created DESC`
  const page = (cursor?: string) =>
    searchPage(jql, { cursor, wanted: 100, fields: ['id'], properties: [MARK] }, context)
  for await (const { items } of pagesOf(page)) {
    for (const issue of items) {
      const mark = (issue.properties as Record<string, { key?: string; index?: number }> | undefined)?.[MARK]
      if (mark?.key === context.key && mark.index !== undefined) found.set(mark.index, issue.key)
    }
  }
  return found
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
    scope: 'Create Issues (write:jira-work)',
    hints: { 400: 'check project and type, and that `fields` contains every field that this type requires' },
  }
  const made = await jira(context)<{ key: string }>(`create "${issue.summary}"`, '/rest/api/3/issue', options)
  return made.key
}

/** Writes these fields of an issue and returns the issue as it is afterwards. */
export async function edit(key: string, fields: JsonObject, context: AtlassianContext): Promise<Issue> {
  const options = { method: 'PUT', query: { returnIssue: true }, body: { fields }, scope: EDIT }
  return (await jira(context)<Issue | null>(`edit ${key}`, issuePath(key), options)) ?? (await getIssue(key, context))
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
  return await jira(context)<JiraField[]>('get fields', '/rest/api/3/field', { scope: BROWSE })
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
