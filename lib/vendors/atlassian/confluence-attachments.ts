// The attachments of a page. Their names are unique on the page: a file with the name of an existing one becomes its new
// version. The comment of a version contains the idempotency key and the hash of the content.
// https://developer.atlassian.com/cloud/confluence/rest/v2/api-group-attachment/
// https://developer.atlassian.com/cloud/confluence/rest/v1/api-group-content---attachments/

import { FileForm } from '../../agent/core/file-form.ts'
import { pagesOf } from '../../agent/listing.ts'
import { type Attachment, digestOf, downloadAll } from './attachments.ts'
import { confluence, type Links, versionMark } from './confluence-pages.ts'
import { Reply } from './confluence-replies.ts'
import type { AtlassianContext } from './site.ts'

const PAGE = 100
const READ = 'see attachments of the page (read:attachment:confluence)'
const WRITE = 'add attachments to the page (write:attachment:confluence)'

interface Listed {
  id: string
  title: string
  fileSize: number
  mediaType?: string
  createdAt?: string
  version: { number: number; message?: string | null }
}

/** Downloads the attachments of a page; only the one named `filename` if that is given. */
export function download(
  page: string,
  { name, filename, limit }: { name: string; filename?: string | undefined; limit?: number | undefined },
  context: AtlassianContext,
) {
  async function* each(): AsyncGenerator<Attachment> {
    for await (const { items } of pagesOf((cursor?: string) => attachmentsPage(page, filename, cursor, context))) {
      for (const { id, title, fileSize, mediaType, createdAt, version } of items) {
        const about = { mime_type: mediaType ?? null, created: createdAt ?? null, version: version.number }
        yield { id, filename: title, size: fileSize, path: `${pathOf(page)}/${encodeURIComponent(id)}/download`, about }
      }
    }
  }
  return downloadAll(name, each(), limit, { product: 'confluence', scope: READ, context })
}

const pathOf = (page: string) => `/wiki/rest/api/content/${page}/child/attachment`

async function attachmentsPage(
  page: string,
  filename: string | undefined,
  cursor: string | undefined,
  context: AtlassianContext,
) {
  const query = { limit: PAGE, filename, cursor }
  const options = { query, scope: READ, reply: Reply.attachments }
  const { results, _links } = await confluence(context)<{ results: Listed[]; _links?: Links }>(
    `get attachments of page ${page}`,
    `/wiki/api/v2/pages/${page}/attachments`,
    options,
  )
  const next = _links?.next && URL.parse(_links.next, 'https://site.invalid')?.searchParams.get('cursor')
  return { items: results, next: next || null }
}

/** Attaches a file, or its new version, unless this entry has already done so. */
export async function attach(page: string, file: Bun.BunFile, filename: string, context: AtlassianContext) {
  const mark = versionMark(context, await digestOf(file.stream()))
  const { items } = await attachmentsPage(page, filename, undefined, context)
  const there = items.find(({ title }) => title === filename)
  if (there?.version.message?.includes(mark)) return { id: there.id, isNew: false }
  const { results } = await confluence(context)<{ results: [{ id: string }] }>(
    `attach ${filename} to page ${page}`,
    pathOf(page),
    {
      method: 'PUT',
      body: new FileForm('file', file, filename, { comment: mark, minorEdit: 'true' }),
      // Confluence refuses a form without this header, which browsers of other sites cannot send.
      headers: { 'x-atlassian-token': 'nocheck' },
      scope: WRITE,
      reply: Reply.uploaded,
      hints: { 413: 'the site limits the size of attachments' },
    },
  )
  return { id: results[0].id, isNew: true }
}
