// The bytes of objects. A download that breaks off goes on where it stopped; a large file is uploaded in parts, each of
// which is read once and kept until the store has it.

import { type FileHandle, open } from 'node:fs/promises'
import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/agent-error.ts'
import { withRetries } from '../../agent/retries.ts'
import { explain, type Place, type StoreContext, storeRequest, urlOf } from './request.ts'
import { escapeXml, parseXml, textOf } from './xml.ts'

const PART = 8 * 1024 * 1024
const MOST_PARTS = 10_000
/** Parts that are uploaded at the same time. */
const ABREAST = 2
const PART_TIMEOUT = 5 * 60_000
/** Maximum number of consecutive failures without a further byte. */
const TRIES = 4

/** A type instead of an interface, because an interface is not assignable to Json. */
export type ObjectInfo = { etag: string | null; size: number; last_modified: string | null }

export function infoOf({ headers }: Response): ObjectInfo {
  const modified = new Date(headers.get('last-modified') ?? '')
  return {
    etag: headers.get('etag'),
    size: Number(headers.get('content-length') ?? 0),
    last_modified: Number.isNaN(modified.getTime()) ? null : modified.toISOString(),
  }
}

/** An object: what is known of it, and its bytes. */
export async function download(context: StoreContext, place: Place) {
  const permission = 's3:GetObject'
  const first = await storeRequest(context, place, { permission })
  const info = infoOf(first)
  const encoding = first.headers.get('content-encoding')
  // What is unpacked on the way cannot be continued by a position in the stored bytes.
  const isPlain = info.etag !== null && (encoding === null || encoding === 'identity')
  const goOn = async (at: number): Promise<Response> => {
    const headers = { 'if-match': info.etag ?? '', ...(at > 0 && { range: `bytes=${at}-` }) }
    const reply = await storeRequest(context, place, { permission, headers })
    if (reply.status === (at > 0 ? 206 : 200)) return reply
    throw new AgentError(`[${context.place}] ${urlOf(place)}: the store cannot continue a download`, {
      code: 'vendor_error',
      retryable: true,
    })
  }
  return { info, body: first.body ? continued(context, first.body, isPlain ? goOn : null) : null }
}

/** The same stream. When it breaks, `goOn` gives the reply with the rest of it. */
function continued(
  context: AgentContext<StoreContext['settings']>,
  first: ReadableStream<Uint8Array>,
  goOn: ((at: number) => Promise<Response>) | null,
): ReadableStream<Uint8Array> {
  let reader = first.getReader()
  let at = 0
  let failures = 0
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          try {
            const { done, value } = await reader.read()
            if (done) return controller.close()
            at += value.byteLength
            failures = 0
            return controller.enqueue(value)
          } catch (error) {
            const again = error instanceof AgentError && error.retryable && goOn !== null && ++failures < TRIES
            if (!again) throw error
            context.log(`continuing: ${error.message}`, { at })
            reader = ((await goOn(at)).body ?? new Blob([]).stream()).getReader()
          }
        }
      },
      cancel: reason => reader.cancel(reason).catch(() => {}),
    },
    { highWaterMark: 0 },
  )
}

/** Uploads a file: up to 8 MiB in one request, larger ones in parts. Nothing of a failed upload is left. */
export async function upload(context: StoreContext, place: Place, file: Bun.BunFile): Promise<void> {
  const permission = 's3:PutObject'
  const headers = { 'content-type': file.type }
  if (file.size <= PART) {
    const body = await file.bytes()
    await storeRequest(context, place, { method: 'PUT', headers, body, timeout: PART_TIMEOUT, permission })
    return
  }
  const begun = await post(context, place, { uploads: '' }, undefined, headers)
  const uploadId = textOf(begun, 'UploadId')
  if (!uploadId) throw foreign(context, place)
  try {
    const tags = await sendParts(context, place, uploadId, file)
    const parts = tags.map((tag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${escapeXml(tag)}</ETag></Part>`)
    const body = `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`
    const done = await post(context, place, { uploadId }, body)
    if (done?.name !== 'CompleteMultipartUploadResult') throw foreign(context, place)
  } catch (error) {
    const abort = { method: 'DELETE', query: { uploadId }, cleanup: true, permission: 's3:AbortMultipartUpload' }
    await storeRequest(context, place, abort).catch(cause => {
      context.log(
        `the parts of ${urlOf(place)} may be left in the store: ${cause instanceof Error ? cause.message : cause}`,
      )
    })
    throw error
  }
}

/** A POST, which may be repeated here: a second beginning or completion of an upload does no harm. */
async function post(
  context: StoreContext,
  place: Place,
  query: Record<string, string>,
  body?: string,
  headers: Record<string, string> = {},
) {
  const permission = 's3:PutObject'
  return withRetries(context, async () => {
    const request = { method: 'POST', query, headers, permission, timeout: PART_TIMEOUT }
    const reply = await storeRequest(context, place, { ...request, ...(body !== undefined && { body }) })
    const text = await reply.text()
    const xml = parseXml(text)
    if (xml?.name !== 'Error') return xml
    // A completion that fails late is an error with status 200.
    throw await explain(context, place, { permission }, { reply: new Response(null, { status: 500 }), text, xml })
  })
}

/** Sends all parts and returns their tags. */
async function sendParts(context: StoreContext, place: Place, uploadId: string, file: Bun.BunFile): Promise<string[]> {
  const { size } = file
  const part = Math.max(PART, Math.ceil(size / MOST_PARTS))
  const count = Math.ceil(size / part)
  const tags: string[] = []
  const handle = await open(file.name!, 'r')
  let next = 0
  let failed = false
  const work = async () => {
    // One buffer for all parts: the memory of many would be given back late.
    const buffer = new Uint8Array(part)
    try {
      while (next < count && !failed) {
        const at = next++
        const body = buffer.subarray(0, Math.min(part, size - at * part))
        await fill(body, handle, at * part, context)
        const query = { partNumber: `${at + 1}`, uploadId }
        const request = { method: 'PUT', query, body, timeout: PART_TIMEOUT, permission: 's3:PutObject' }
        const tag = (await storeRequest(context, place, request)).headers.get('etag')
        if (tag === null) throw foreign(context, place)
        tags[at] = tag
      }
    } catch (error) {
      failed = true
      throw error
    }
  }
  try {
    // All of them end before the upload is aborted.
    const ended = await Promise.allSettled(Array.from({ length: ABREAST }, work))
    for (const each of ended) if (each.status === 'rejected') throw each.reason
    return tags
  } finally {
    await handle.close()
  }
}

async function fill(bytes: Uint8Array, handle: FileHandle, from: number, { place }: StoreContext): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await handle.read(bytes, at, bytes.length - at, from + at)
    if (bytesRead === 0) {
      throw new AgentError(`[${place}] the file became shorter while it was sent`, { code: 'conflict', sent: 'no' })
    }
    at += bytesRead
  }
}

function foreign({ agent, place: at }: StoreContext, place: Place): AgentError {
  const hint = `check that agents.${agent}.endpoint belongs to an S3-compatible store`
  return new AgentError(`[${at}] ${urlOf(place)}: the reply is not that of S3`, { code: 'unexpected_reply', hint })
}
