// The attachments of a Jira issue. Jira keeps no mark of ours on an attachment, so a file that the issue already has,
// with the same name and content, is not attached again. What an entry has attached itself is newer than what the issue
// had before.
// https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issue-attachments/

import { FileForm } from '../../agent/core/file-form.ts'
import { beforehand } from '../../agent/entry.ts'
import { type Attachment, digestOf, downloadAll, hasContent } from './attachments.ts'
import { BROWSE, getIssue, type Issue, issuePath, type JiraAttachment, jira } from './jira-read.ts'
import { Reply } from './jira-replies.ts'
import type { AtlassianContext } from './site.ts'

const FIELDS = 'summary,status,issuetype,priority,assignee,labels,parent,updated,attachment'

const downloading = (context: AtlassianContext) => ({ product: 'jira' as const, scope: BROWSE, context })

/** The issue with the fields that results show, and its attachments. */
export function withAttachments(key: string, context: AtlassianContext): Promise<Issue> {
  return getIssue(key, context, { fields: FIELDS })
}

/** Downloads the attachments of an issue, oldest first; only those named `filename` if that is given. */
export function download(
  issue: Issue,
  { name, filename, limit }: { name: string; filename?: string | undefined; limit?: number | undefined },
  context: AtlassianContext,
) {
  const wanted = attachmentsOf(issue).filter(each => filename === undefined || each.filename === filename)
  async function* each() {
    yield* wanted
  }
  return downloadAll(name, each(), limit, downloading(context))
}

function attachmentsOf({ fields: { attachment = [] } }: Issue): Attachment[] {
  return attachment
    .toSorted((a, b) => Number(a.id) - Number(b.id))
    .map(({ id, filename, size, mimeType, created, author }) => ({
      ...{ id: `${id}`, filename, size, path: `/rest/api/3/attachment/content/${id}` },
      about: { mime_type: mimeType ?? null, created: created ?? null, author: author?.displayName ?? null },
    }))
}

interface Given {
  file: Bun.BunFile
  filename: string
}

/** The attachments of the issue that have the name and content of a file, oldest first. */
async function* same(issue: Issue, { file, filename }: Given, context: AtlassianContext): AsyncGenerator<Attachment> {
  const likely = attachmentsOf(issue).filter(each => each.filename === filename && each.size === file.size)
  const sha256 = likely.length > 0 ? await digestOf(file.stream()) : ''
  for (const each of likely) if (await hasContent(each, sha256, downloading(context))) yield each
}

/** What this entry has attached, oldest first. */
export async function attached(issue: Issue, given: Given, context: AtlassianContext): Promise<string[]> {
  const before = await context.identity()
  if (before === null) return []
  const made = await Array.fromAsync(same(issue, given, context), ({ id }) => id)
  return made.filter(id => Number(id) > Number(before))
}

/** Attaches a file under this name unless the issue has it already. Returns the id of the attachment. */
export async function attach(
  issue: Issue,
  { file, filename }: Given,
  context: AtlassianContext,
): Promise<{ id: string; isNew: boolean }> {
  const there = await beforehand(async () => {
    for await (const each of same(issue, { file, filename }, context)) return each
    await context.identity(() => attachmentsOf(issue).at(-1)?.id ?? '0')
    return null
  })
  if (there) return { id: there.id, isNew: false }
  const [attached] = await jira(context)<JiraAttachment[]>(
    `attach ${filename} to ${issue.key}`,
    issuePath(issue.key, '/attachments'),
    {
      method: 'POST',
      body: new FileForm('file', file, filename),
      // Jira refuses a form without this header, which browsers of other sites cannot send.
      headers: { 'x-atlassian-token': 'no-check' },
      scope: 'Create Attachments (write:jira-work)',
      reply: Reply.attached,
      hints: { 413: 'the site limits the size of attachments' },
    },
  )
  return { id: `${attached!.id}`, isNew: true }
}
