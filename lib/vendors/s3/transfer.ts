// The bytes of objects. A download that breaks off goes on where it stopped; a large file is uploaded in parts, each of
// which is read once and kept until the store has it.

import { type FileHandle, open } from 'node:fs/promises'
import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { withRetries } from '../../agent/retries.ts'
import { explain, type ObjectAddress, type StoreContext, storeRequest, urlOf } from './request.ts'
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

function infoOf({ headers }: Response): ObjectInfo {
  const modified = new Date(headers.get('last-modified') ?? '')
  return {
    etag: headers.get('etag'),
    size: Number(headers.get('content-length') ?? 0),
    last_modified: Number.isNaN(modified.getTime()) ? null : modified.toISOString(),
  }
}

/** An object: what is known of it, and its bytes. */
export async function download(context: StoreContext, object: ObjectAddress) {
  const permission = 's3:GetObject'
  const first = await storeRequest(context, object, { permission })
  const info = infoOf(first)
  const encoding = first.headers.get('content-encoding')
  // What is unpacked on the way cannot be continued by a position in the stored bytes.
  const isPlain = info.etag !== null && (encoding === null || encoding === 'identity')
  const goOn = async (at: number): Promise<Response> => {
    const headers = { 'if-match': info.etag ?? '', ...(at > 0 && { range: `bytes=${at}-` }) }
    const reply = await storeRequest(context, object, { permission, headers })
    if (reply.status === (at > 0 ? 206 : 200)) return reply
    throw new AgentError(`[${context.callName}] ${urlOf(object)}: the store cannot continue a download`, {
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

/** In the metadata of an object: by which entry it was written, with which content. */
const MARK = 'x-amz-meta-cadre'
/** How often an object that others write at the same time is written. */
const MOST_CHANGES = 4
/** The endpoints that do not know conditions of a write. */
const unconditional = new Set<string>()

/** What the store has under a key: null if there is nothing, undefined if the store does not say. */
type There = { info: ObjectInfo; mark: string | null } | null | undefined

async function look(context: StoreContext, object: ObjectAddress): Promise<There> {
  try {
    const reply = await storeRequest(context, object, { method: 'HEAD', permission: 's3:GetObject' })
    return { info: infoOf(reply), mark: reply.headers.get(MARK) }
  } catch (error) {
    if (!(error instanceof AgentError) || error.retryable || error.code === 'aborted') throw error
    // The reply to a HEAD does not say what is wrong; that to the write does.
    return error.code === 'not_found' ? null : undefined
  }
}

/**
 * Uploads a file, if the object is still what it was before. A repetition is refused by the store, or finds its own mark,
 * and so neither writes a second version nor writes over what somebody else has written meanwhile.
 */
export async function upload(context: StoreContext, object: ObjectAddress, file: Bun.BunFile): Promise<ObjectInfo> {
  const mark = await markOf(context, file)
  let isFree = false
  for (let changes = 0; ; changes++) {
    const there = await look(context, object)
    if (there?.mark === mark) return there.info
    const condition = isFree ? {} : conditionOf(context, there)
    try {
      await send(context, object, file, { 'content-type': file.type, [MARK]: mark }, condition)
      const now = await storeRequest(context, object, { method: 'HEAD', permission: 's3:GetObject' })
      return infoOf(now)
    } catch (error) {
      if (!(error instanceof AgentError) || changes === MOST_CHANGES) throw error
      if (error.code === 'unsupported' && Object.keys(condition).length > 0) {
        unconditional.add(context.settings.endpoint ?? '')
      } else if (error.code === 'conflict' || error.code === 'not_found') {
        // Of the same upload whose reply was lost, or of another one. What was removed meanwhile is not found.
        const now = await look(context, object)
        if (now?.mark === mark) return now.info
        if (error.code === 'not_found' && !(there && now === null)) throw error
        // A store that refuses the condition although nothing has changed understands it in another way.
        isFree = error.code === 'conflict' && there?.info.etag === now?.info.etag
      } else {
        throw error
      }
    }
  }
}

async function markOf({ key }: StoreContext, file: Bun.BunFile): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256').update(key)
  for await (const chunk of file.stream()) hasher.update(chunk)
  return hasher.digest('hex')
}

/** That the object is what it was. */
function conditionOf({ settings }: StoreContext, there: There): Record<string, string> {
  if (there === undefined || unconditional.has(settings.endpoint ?? '')) return {}
  if (there === null) return { 'if-none-match': '*' }
  return there.info.etag === null ? {} : { 'if-match': there.info.etag }
}

/** Sends up to 8 MiB in one request, larger files in parts. Nothing of a failed upload is left. */
async function send(
  context: StoreContext,
  object: ObjectAddress,
  file: Bun.BunFile,
  headers: Record<string, string>,
  condition: Record<string, string>,
): Promise<void> {
  const permission = 's3:PutObject'
  if (file.size <= PART) {
    const body = await file.bytes()
    const put = { method: 'PUT', headers: { ...headers, ...condition }, body, timeout: PART_TIMEOUT, permission }
    await storeRequest(context, object, put)
    return
  }
  const begun = await post(context, object, { uploads: '' }, undefined, headers)
  const uploadId = textOf(begun, 'UploadId')
  if (!uploadId) throw foreign(context, object)
  try {
    const tags = await sendParts(context, object, uploadId, file)
    const parts = tags.map((tag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${escapeXml(tag)}</ETag></Part>`)
    const body = `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`
    const done = await post(context, object, { uploadId }, body, condition)
    if (done?.name !== 'CompleteMultipartUploadResult') throw foreign(context, object)
  } catch (error) {
    const abort = { method: 'DELETE', query: { uploadId }, cleanup: true, permission: 's3:AbortMultipartUpload' }
    await storeRequest(context, object, abort).catch(cause => {
      context.log(
        `the parts of ${urlOf(object)} may be left in the store: ${cause instanceof Error ? cause.message : cause}`,
      )
    })
    throw error
  }
}

/** A POST, which may be repeated here: a second beginning or completion of an upload does no harm. */
async function post(
  context: StoreContext,
  object: ObjectAddress,
  query: Record<string, string>,
  body?: string,
  headers: Record<string, string> = {},
) {
  const permission = 's3:PutObject'
  return withRetries(context, async () => {
    const request = { method: 'POST', query, headers, permission, timeout: PART_TIMEOUT }
    const reply = await storeRequest(context, object, { ...request, ...(body !== undefined && { body }) })
    const text = await reply.text()
    const xml = parseXml(text)
    if (xml?.name !== 'Error') return xml
    // A completion that fails late is an error with status 200.
    throw await explain(context, object, { permission }, { reply: new Response(null, { status: 500 }), text, xml })
  })
}

/** Sends all parts and returns their tags. */
async function sendParts(
  context: StoreContext,
  object: ObjectAddress,
  uploadId: string,
  file: Bun.BunFile,
): Promise<string[]> {
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
        const tag = (await storeRequest(context, object, request)).headers.get('etag')
        if (tag === null) throw foreign(context, object)
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

async function fill(bytes: Uint8Array, handle: FileHandle, from: number, { callName }: StoreContext): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await handle.read(bytes, at, bytes.length - at, from + at)
    if (bytesRead === 0) {
      throw new AgentError(`[${callName}] the file became shorter while it was sent`, { code: 'conflict', sent: 'no' })
    }
    at += bytesRead
  }
}

function foreign({ agent, callName: at }: StoreContext, object: ObjectAddress): AgentError {
  const hint = `check that agents.${agent}.endpoint belongs to an S3-compatible store`
  return new AgentError(`[${at}] ${urlOf(object)}: the reply is not that of S3`, { code: 'unexpected_reply', hint })
}
