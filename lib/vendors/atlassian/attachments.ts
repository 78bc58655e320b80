// Attachments of issues and pages: they are streamed to disk and from it, and a file is recognised by its content.

import type { FileRecord } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { safeName } from '../../agent/files.ts'
import { explain } from '../../agent/json-api.ts'
import { DATA_BYTES, LIMIT } from '../../agent/listing.ts'
import type { JsonObject } from '../../json.ts'
import { nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { chunksIn } from '../../stream.ts'
import type { Product } from './settings.ts'
import { type AtlassianContext, refusedToken, signed, siteOf } from './site.ts'

export interface Attachment {
  id: string
  filename: string
  size: number
  /** The path of its content below the address of the API. */
  path: string
  /** Further fields for `data`. */
  about: JsonObject
}

/** The fields of an attachment in `data`, for both products. */
export const attachmentFields = {
  id: Type.String({ description: 'The id of the attachment.' }),
  filename: Type.String({ description: 'Its name.' }),
  size: Type.Integer({ description: 'How many bytes it has.' }),
  mime_type: nullable(Type.String(), { description: 'What it contains, such as `image/png`.' }),
  created: nullable(Type.String(), { description: 'When it was attached.' }),
  file: Type.String({ description: 'The name of the file in the folder of the phase.' }),
}

interface Download {
  product: Product
  scope: string
  context: AtlassianContext
}

/**
 * Writes attachments to `files/<phase>/<name>/<file name>`, at most `limit` of them (default 100), and returns the
 * `data` of the result. `more` says that the vendor has others.
 */
export async function downloadAll(
  name: string,
  attachments: AsyncIterable<Attachment>,
  limit: number | undefined = LIMIT,
  download: Download,
) {
  const items: JsonObject[] = []
  const taken = new Set<string>()
  let total = 0
  let bytes = 0
  let truncated = false
  for await (const each of attachments) {
    if (total === limit) {
      truncated = true
      break
    }
    total++
    const file = `${name}/${uniqueName(each, taken)}`
    await save(file, each, download)
    const item = { id: each.id, filename: each.filename, size: each.size, ...each.about, file }
    bytes += Buffer.byteLength(JSON.stringify(item))
    if (bytes <= DATA_BYTES) items.push(item)
    else truncated = true
  }
  return { items, total, truncated }
}

/** A file name that no earlier attachment has. An issue can have several attachments of one name. */
function uniqueName({ id, filename }: Attachment, taken: Set<string>): string {
  const name = safeName(filename)
  // Some file systems do not distinguish upper and lower case.
  const chosen = taken.has(name.toLowerCase()) ? `${id}-${name}` : name
  taken.add(chosen.toLowerCase())
  return chosen
}

async function save(file: string, attachment: Attachment, download: Download): Promise<FileRecord> {
  return download.context.write(file, await contentOf(attachment, download))
}

/** Whether the content of an attachment is `sha256`. It is read as a stream. */
export async function hasContent(attachment: Attachment, sha256: string, download: Download): Promise<boolean> {
  return (await digestOf(await contentOf(attachment, download))) === sha256
}

/** The SHA-256 of a stream, in hexadecimal. */
export async function digestOf(content: ReadableStream<Uint8Array>): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256')
  for await (const chunk of chunksIn(content)) hasher.update(chunk)
  return hasher.digest('hex')
}

/** The content of an attachment. Atlassian redirects to its media service, which gets no credential. */
async function contentOf(
  { filename, path, size }: Attachment,
  { product, scope, context }: Download,
): Promise<ReadableStream<Uint8Array>> {
  const doing = `download ${filename}`
  const headers = { ...signed(context), accept: '*/*' }
  const reply = await context.fetch(siteOf(context) + path, { headers })
  if (!reply.ok) {
    const hints = { 401: refusedToken(product, context) }
    throw await explain(context, reply, doing, { setting: 'api_token', scope }, hints)
  }
  return whole(reply.body ?? new Blob([]).stream(), size, `[${context.callName}] ${doing}`)
}

/** The same stream. It fails when it does not have the announced size, as a login page would not. */
function whole(source: ReadableStream<Uint8Array>, size: number, doing: string): ReadableStream<Uint8Array> {
  let received = 0
  const check = (isEnd: boolean) => {
    if (received > size || (isEnd && received < size)) {
      const message = `${doing}: the reply has ${isEnd ? received : 'more than'} ${isEnd ? 'of ' : ''}${size} bytes`
      throw new AgentError(message, { code: 'unexpected_reply', hint: 'run it again; check base_url if it persists' })
    }
  }
  return source.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        received += chunk.byteLength
        check(false)
        controller.enqueue(chunk)
      },
      flush: () => check(true),
    }),
  )
}
