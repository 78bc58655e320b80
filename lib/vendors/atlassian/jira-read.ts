// Reads from Jira: issues, searches, comments and trees. Paths and fields are those of REST API v3.
// https://developer.atlassian.com/cloud/jira/platform/rest/v3/intro/

import type { Diagnosis } from '../../agent/define.ts'
import { pathSegment } from '../../agent/json-api.ts'
import { type Page, pagesOf } from '../../agent/listing.ts'
import type { JsonObject } from '../../json.ts'
import type { AdfNode } from './adf-write.ts'
import { Reply } from './jira-replies.ts'
import { isGateway } from './settings.ts'
import { type AtlassianContext, atlassian, siteOf } from './site.ts'

export const BROWSE = 'Browse Projects (read:jira-work)'
/** The maximum number of issues that Jira sends with their fields in one page. */
const PAGE = 100
/** Maximum number of parent keys in one query for children. */
const PARENTS = 50

export interface Issue extends JsonObject {
  id: string
  key: string
  fields: JsonObject & {
    summary?: string
    status?: { id: string; name: string }
    issuetype?: { name: string }
    description?: AdfNode | null
    issuelinks?: IssueLink[]
    attachment?: JiraAttachment[]
  }
}

type IssueLink = {
  type: { inward: string; outward: string }
  inwardIssue?: Issue
  outwardIssue?: Issue
}

/** A type instead of an interface, because an interface is not assignable to Json. */
export type JiraAttachment = {
  id: string | number
  filename: string
  size: number
  mimeType?: string
  created?: string
  author?: { displayName?: string } | null
}

/** A type instead of an interface, because an interface is not assignable to Json. */
export type JiraComment = {
  id: string
  created: string
  author?: { displayName: string; accountId: string }
  body: AdfNode
  /** False for an internal comment of Jira Service Management. */
  jsdPublic?: boolean
}

const BRIEF_FIELDS = ['summary', 'status', 'issuetype', 'priority', 'assignee', 'labels', 'parent', 'updated']

export function jira(context: AtlassianContext) {
  return atlassian('jira', context)
}

/** The address of the site for people. The gateway's own address is not one, so that Jira is asked for the site's. */
export async function webAddress(context: AtlassianContext): Promise<string> {
  if (!isGateway(context.settings)) return siteOf(context)
  const options = { scope: BROWSE, reply: Reply.server }
  const { baseUrl } = await jira(context)<{ baseUrl: string }>(
    'get the address of the site',
    '/rest/api/3/serverInfo',
    options,
  )
  return baseUrl.replace(/\/+$/, '')
}

export function issuePath(key: string, rest = ''): string {
  return `/rest/api/3/issue/${pathSegment(key)}${rest}`
}

/** The permissions that the agent's actions need in at least one project, under Jira's names. Writes read before and after. */
const PERMISSIONS = [
  'BROWSE_PROJECTS',
  'CREATE_ISSUES',
  'EDIT_ISSUES',
  'TRANSITION_ISSUES',
  'ADD_COMMENTS',
  'CREATE_ATTACHMENTS',
] as const

/** What an action needs that writes in these ways; without any, it reads. */
export const needing = (...writes: (typeof PERMISSIONS)[number][]) => ['BROWSE_PROJECTS', ...writes]

export async function examine(context: AtlassianContext): Promise<Diagnosis> {
  const call = jira(context)
  const scope = 'read:jira-user, read:jira-work'
  const who = { scope, reply: Reply.account }
  const { displayName } = await call<{ displayName: string }>('get the account', '/rest/api/3/myself', who)
  const query = { permissions: PERMISSIONS.join(',') }
  const options = { query, scope, reply: Reply.permissions }
  const { permissions } = await call<{ permissions: Record<string, { havePermission: boolean }> }>(
    'get permissions',
    '/rest/api/3/mypermissions',
    options,
  )
  const missing = PERMISSIONS.filter(name => !permissions[name]?.havePermission)
  return { who: displayName, missing, text: await webAddress(context) }
}

export async function getIssue(
  key: string,
  context: AtlassianContext,
  query: { fields?: string; expand?: string } = {},
): Promise<Issue> {
  return await jira(context)<Issue>(`get issue ${key}`, issuePath(key), { query, scope: BROWSE, reply: Reply.issue })
}

/** The part of an issue that results show. Linked issues have few fields. `web` is the address of the site. */
export function briefOf({ id, key, fields = {} }: Pick<Issue, 'id' | 'key'> & Partial<Issue>, web: string) {
  const { issuetype, status, summary, priority, assignee, labels, parent, updated } = fields
  return {
    key,
    id: id || null,
    url: `${web}/browse/${key}`,
    type: issuetype?.name ?? null,
    status: status?.name ?? null,
    summary: summary ?? null,
    priority: (priority as { name?: string } | null | undefined)?.name ?? null,
    assignee: (assignee as { displayName?: string } | null | undefined)?.displayName ?? null,
    labels: labels ?? [],
    parent: (parent as { key?: string } | null | undefined)?.key ?? null,
    // Jira's own examples have a number here.
    updated: updated === undefined || updated === null ? null : String(updated),
  }
}

/** The next issues of a query, with these fields. Jira does not report a total. */
export async function searchPage(
  jql: string,
  { cursor, wanted, fields }: { cursor: string | undefined; wanted: number; fields: string[] },
  context: AtlassianContext,
): Promise<Page<Issue, string>> {
  const body = {
    jql,
    fields,
    maxResults: Math.min(wanted, PAGE),
    ...(cursor !== undefined && { nextPageToken: cursor }),
  }
  const { issues, nextPageToken } = await jira(context)<{ issues: Issue[]; nextPageToken?: string | null }>(
    'search',
    '/rest/api/3/search/jql',
    { method: 'POST', body, scope: BROWSE, reply: Reply.issues },
  )
  return { items: issues, next: nextPageToken }
}

/** A page of comments, oldest first or newest first. */
export async function commentsPage(
  key: string,
  start: number,
  order: 'created' | '-created',
  context: AtlassianContext,
): Promise<Page<JiraComment, number>> {
  const query = { startAt: start, maxResults: PAGE, orderBy: order }
  const options = { query, scope: BROWSE, reply: Reply.comments }
  const path = issuePath(key, '/comment')
  const reply = await jira(context)<{ comments: JiraComment[]; total: number }>(`get comments of ${key}`, path, options)
  const next = start + reply.comments.length
  return { items: reply.comments, total: reply.total, next: next < reply.total ? next : null }
}

/** An issue of a tree, with its parent in the tree and its relation to that parent. */
export type TreeNode = { issue: Issue; parent: string | null; relation: string; depth: number }

/**
 * The issue, its children down to `depth`, and after each issue the issues that it links to. Links of linked issues are
 * not followed.
 */
export async function* treeOf(key: string, depth: number, context: AtlassianContext): AsyncGenerator<TreeNode[]> {
  const fields = [...BRIEF_FIELDS, 'issuelinks']
  const root = await getIssue(key, context, { fields: fields.join(',') })
  const seen = new Set([root.key])
  yield withLinks({ issue: root, parent: null, relation: 'root', depth: 0 })
  let level = [root.key]
  for (let down = 1; down <= depth && level.length > 0; down++) {
    const parents = level
    level = []
    for (let at = 0; at < parents.length; at += PARENTS) {
      const jql = `parent in (${parents
        .slice(at, at + PARENTS)
        .map(parent => `"${parent}"`)
        .join(', ')}) ORDER BY key`
      const pages = pagesOf((cursor?: string) => searchPage(jql, { cursor, wanted: PAGE, fields }, context))
      for await (const { items } of pages) {
        const fresh = items.filter(issue => !seen.has(issue.key))
        for (const issue of fresh) {
          seen.add(issue.key)
          level.push(issue.key)
        }
        const nodes = fresh.map(issue => ({
          issue,
          parent: (issue.fields.parent as { key: string } | undefined)?.key ?? null,
          relation: 'child',
          depth: down,
        }))
        if (nodes.length > 0) yield nodes.flatMap(withLinks)
      }
    }
  }
}

function withLinks(node: TreeNode): TreeNode[] {
  const links = (node.issue.fields.issuelinks ?? []).flatMap(({ type, inwardIssue, outwardIssue }) => {
    const issue = outwardIssue ?? inwardIssue
    const relation = outwardIssue ? type.outward : type.inward
    return issue ? [{ issue, parent: node.issue.key, relation, depth: node.depth + 1 }] : []
  })
  return [node, ...links]
}

/** Plain text, not Markdown, as an ADF document. */
export function plainDocument(text: string): AdfNode {
  return { type: 'doc', version: 1, content: [{ type: 'paragraph', content: text ? [{ type: 'text', text }] : [] }] }
}
