// What the issues agent returns: the schemas of `data`, and the results of its writes.

import type { TProperties } from 'typebox'
import type { AgentResult } from '../../agent/agent-context.ts'
import { listingOf } from '../../agent/listing.ts'
import { nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { attachmentFields } from './attachments.ts'
import { briefOf, type Issue } from './jira-read.ts'

const text = (description: string) => Type.String({ description })
const textOrNull = (description: string) => nullable(Type.String(), { description })

const url = text('Its address in a browser.')
const type = textOrNull('Its type, such as `Story`.')
const status = textOrNull('The name of its status.')

/** What `briefOf` shows of an issue. */
const issue = {
  key: text('The key of the issue, such as WEB-12.'),
  id: textOrNull('Its number.'),
  url,
  type,
  status,
  summary: textOrNull('Its summary.'),
  priority: textOrNull('The name of its priority.'),
  assignee: textOrNull('The name of the person whom it is assigned to.'),
  labels: Type.Array(Type.String(), { description: 'Its labels.' }),
  parent: textOrNull('The key of its parent.'),
  updated: textOrNull('When it was changed.'),
}

export const IssueData = Type.Object({ ...issue, description: text('Its description as Markdown.') })
export const IssuesData = listingOf(issue)
export const TreeData = listingOf(
  {
    ...issue,
    parent: textOrNull('The key of the issue above it in the tree.'),
    relation: text('What it is to that issue: `root`, `child`, or the words of a link, such as `blocks`.'),
    depth: Type.Integer({
      description: 'How far below the first issue it is; links count as the issue that has them.',
    }),
  },
  { key: issue.key, url, type, status },
)
export const CommentsData = listingOf({
  id: text('The id of the comment.'),
  author: textOrNull('The name of its author.'),
  created: text('When it was written.'),
  text: text('Its text as Markdown.'),
  public: Type.Boolean({ description: 'Whether customers see it.' }),
})
export const AttachmentsData = listingOf(
  { ...attachmentFields, author: textOrNull('The name of the person who attached it.') },
  issue,
)
export const CommentData = Type.Object({ ...issue, comment_id: text('The id of the comment.') })
export const AttachmentData = Type.Object({
  ...issue,
  attachment_id: text('The id of the attachment.'),
  filename: text('Its name.'),
  size: Type.Integer({ description: 'How many bytes it has.' }),
})
export const MoveData = Type.Object(issue)

const optional: TProperties = Object.fromEntries(Object.entries(issue).map(([name, it]) => [name, Type.Optional(it)]))
/** The fields of an issue are at the top only when there is one issue. */
export const WrittenData = Type.Object(
  {
    ...optional,
    items: Type.Array(Type.Object(issue), { description: 'The issues.' }),
    total: Type.Integer({ description: 'How many they are.' }),
  },
  { description: 'A single issue has its fields at the top, too.' },
)

// `web` is the address of the site for people.

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
