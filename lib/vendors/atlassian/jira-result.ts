// The results of the issues agent's writes: a comment, a transition, or the issues of a file.

import type { AgentResult } from '../../agent/define.ts'
import { briefOf, type Issue } from './jira-read.ts'
import type { AtlassianContext } from './site.ts'

export function commentResult(issue: Issue, id: string, context: AtlassianContext): AgentResult {
  const brief = briefOf(issue, context)
  const url = `${brief.url}?focusedCommentId=${id}`
  return { text: `commented on ${brief.key}`, data: { ...brief, comment_id: id }, external: { id, url } }
}

export function moveResult(issue: Issue, context: AtlassianContext): AgentResult {
  const brief = briefOf(issue, context)
  return { text: `${brief.key} is ${brief.status}`, data: brief, external: { id: brief.key, url: brief.url } }
}

/** A result for a single issue also repeats that issue's fields at the top level of `data`. */
export function issuesResult(done: string, issues: readonly Issue[], context: AtlassianContext): AgentResult {
  const items = issues.map(issue => briefOf(issue, context))
  const [first, ...rest] = items
  const keys = items.map(({ key }) => key).join(', ')
  return {
    text: `${done} ${keys}`,
    data: { ...(rest.length === 0 && first), items, total: items.length },
    external: { id: keys, url: first!.url },
  }
}
