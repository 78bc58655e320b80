// The results of the issues agent's writes: a comment, a transition, or the issues of a file. `web` is the address of the
// site for people.

import type { AgentResult } from '../../agent/agent-context.ts'
import { briefOf, type Issue } from './jira-read.ts'

export function commentResult(issue: Issue, id: string, web: string): AgentResult {
  const brief = briefOf(issue, web)
  const url = `${brief.url}?focusedCommentId=${id}`
  return { text: `commented on ${brief.key}`, data: { ...brief, comment_id: id }, external: { id, url } }
}

export function moveResult(issue: Issue, web: string): AgentResult {
  const brief = briefOf(issue, web)
  return { text: `${brief.key} is ${brief.status}`, data: brief, external: { id: brief.key, url: brief.url } }
}

/** A result for a single issue also repeats that issue's fields at the top level of `data`. */
export function issuesResult(done: string, issues: readonly Issue[], web: string): AgentResult {
  const items = issues.map(issue => briefOf(issue, web))
  const [first, ...rest] = items
  const keys = items.map(({ key }) => key).join(', ')
  return {
    text: `${done} ${keys}`,
    data: { ...(rest.length === 0 && first), items, total: items.length },
    external: { id: keys, url: first!.url },
  }
}
