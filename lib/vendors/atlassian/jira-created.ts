// Finds issues that were created although no reply said so. Each created issue has a property with the idempotency key
// of its entry. Jira's search shows a new issue only after a while, so the newest numbers of the project are looked up
// as well, which needs no index. The engine asks again until what was sent can no longer be on its way.
// https://developer.atlassian.com/cloud/jira/platform/search-and-reconcile/

import { AgentError } from '../../agent/core/agent-error.ts'
import { pagesOf } from '../../agent/listing.ts'
import type { IssueDraft } from './issues-file.ts'
import { BROWSE, jira } from './jira-read.ts'
import { Reply } from './jira-replies.ts'
import type { AtlassianContext } from './site.ts'

/** The name of the property. */
export const MARK = 'cadre'
export const DAY = 24 * 3_600_000
const PAGE = 100
/** How many numbers before and after the newest known issue of a project are looked up; Jira takes 100 at once. */
const AROUND = 50

interface Marked {
  key: string
  properties?: Record<string, { key?: string; index?: number } | undefined>
}

interface Fetched {
  issues: Marked[]
  issueErrors?: unknown[]
}

/** The issues of a file that this entry has already created: their keys by index in the file, the oldest first. */
export async function created(
  issues: readonly IssueDraft[],
  context: AtlassianContext,
): Promise<Map<number, [string, ...string[]]>> {
  const wanted = issues.filter(({ key }) => key === undefined)
  const projects = [...new Set(wanted.flatMap(({ project }) => (project === undefined ? [] : [project])))]
  const found = new Map<number, [string, ...string[]]>()
  const take = (looked: readonly Marked[]) => {
    for (const { key, properties } of looked) {
      const mark = properties?.[MARK]
      if (mark?.key !== context.key || mark.index === undefined) continue
      const known = found.get(mark.index)
      if (!known) found.set(mark.index, [key])
      else if (!known.includes(key)) known.push(key)
    }
    for (const keys of found.values()) keys.sort((a, b) => numberOf(a) - numberOf(b))
    return found.size === wanted.length
  }
  if (wanted.length === 0) return found
  for await (const { items } of pagesOf((cursor?: string) => createdPage(projects, cursor, context))) take(items)
  if (found.size === wanted.length) return found
  for (const project of projects) if (take(await newest(project, context))) return found
  return found
}

/** The number of an issue: `12` of WEB-12. */
const numberOf = (key: string): number => Number(key.slice(key.lastIndexOf('-') + 1))

/** Quotes a text of JQL. Ids of projects are numbers without quotes. */
function quoted(text: string): string {
  return /^\d+$/.test(text) ? text : `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** Issues of the projects that the account has created since the day before the run. */
async function createdPage(projects: readonly string[], cursor: string | undefined, context: AtlassianContext) {
  // The clock may have been ahead when the run began, and may be behind now.
  const days = Math.ceil(Math.abs(Date.now() - context.run.created_at) / DAY) + 1
  const list = projects.map(quoted).join(', ')
  const jql = `project in (${list}) AND created >= -${days}d AND creator = currentUser() ORDER BY created DESC`
  const { issues, nextPageToken } = await searchMarked(jql, PAGE, cursor, context)
  return { items: issues, next: nextPageToken }
}

/** The issues of a project whose numbers are next to the highest one that the search knows. */
async function newest(project: string, context: AtlassianContext): Promise<Marked[]> {
  const { issues } = await searchMarked(`project = ${quoted(project)} ORDER BY key DESC`, 1, undefined, context)
  const [, prefix = project.toUpperCase(), number = '0'] = /^(.+)-(\d+)$/.exec(issues[0]?.key ?? '') ?? []
  if (/^\d+$/.test(prefix)) return []
  const first = Math.max(1, Number(number) - AROUND + 1)
  const keys = Array.from({ length: 2 * AROUND }, (_, at) => `${prefix}-${first + at}`)
  const body = { issueIdsOrKeys: keys, fields: ['key'], properties: [MARK] }
  const options = { method: 'POST', body, scope: BROWSE, reply: Reply.fetchedIssues }
  const doing = `look for new issues of ${project}`
  const path = '/rest/api/3/issue/bulkfetch'
  const { issues: looked, issueErrors = [] } = await jira(context)<Fetched>(doing, path, options)
  if (issueErrors.length === 0) return looked
  const message = `[${context.callName}] ${doing}: Jira could not look up ${issueErrors.length} of them`
  throw new AgentError(message, { code: 'vendor_error', retryable: true })
}

async function searchMarked(jql: string, most: number, cursor: string | undefined, context: AtlassianContext) {
  const page = cursor === undefined ? {} : { nextPageToken: cursor }
  // Jira sends the key of an issue only when a field is asked for; without any it sends ids.
  const body = { jql, fields: ['key'], properties: [MARK], maxResults: most, ...page }
  const options = { method: 'POST', body, scope: BROWSE, reply: Reply.markedIssues }
  return jira(context)<{ issues: Marked[]; nextPageToken?: string | null }>(
    'look for created issues',
    '/rest/api/3/search/jql',
    options,
  )
}
