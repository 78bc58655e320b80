// Uploads to Google Drive. An interrupted upload continues where it stopped.
// https://developers.google.com/workspace/drive/api/guides/manage-uploads

import { type FileHandle, open } from 'node:fs/promises'
import { AgentError, withSent } from '../../agent/core/agent-error.ts'
import { beforehand } from '../../agent/entry.ts'
import { waitToRetry } from '../../agent/retries.ts'
import type { JsonObject } from '../../json.ts'
import { type DriveContext, driveRequest } from './drive.ts'

/** A file of at most this many bytes is uploaded in one request. */
const SIMPLE_MOST = 5 * 1024 * 1024
/**
 * The size of the chunks of a resumable upload, one of which is in memory at a time. Drive requires a multiple of 256
 * KiB.
 */
const CHUNK = 8 * 1024 * 1024
const CHUNK_TIMEOUT = 5 * 60_000
/** Maximum number of consecutive failures without progress. */
const TRIES = 5

export interface DriveUpload {
  /** The beginning of error messages: `upload report.md`. */
  doing: string
  file: Bun.BunFile
  /** POST creates a file, PATCH replaces the content of an existing one. */
  method: 'POST' | 'PATCH'
  /** The path with its query. The type of the upload is added to the query. */
  path: string
  metadata: JsonObject
}

/** Uploads a file: up to 5 MiB in one request, larger files in a resumable upload. The reply describes the file. */
export async function driveUpload(
  { doing, file, method, path, metadata }: DriveUpload,
  context: DriveContext,
): Promise<Response> {
  const at = (type: string) => `${path}&uploadType=${type}`
  const json = 'application/json; charset=UTF-8'
  if (file.size <= SIMPLE_MOST) {
    const boundary = crypto.randomUUID()
    const head = `--${boundary}\r\ncontent-type: ${json}\r\n\r\n${JSON.stringify(metadata)}\r\n`
    const part = `--${boundary}\r\ncontent-type: ${file.type}\r\n\r\n`
    const body = new Blob([head, part, await file.bytes(), `\r\n--${boundary}--\r\n`])
    const headers = { 'content-type': `multipart/related; boundary=${boundary}` }
    return driveRequest(doing, at('multipart'), context, { method, headers, body })
  }
  const headers = {
    'content-type': json,
    'x-upload-content-type': file.type,
    'x-upload-content-length': `${file.size}`,
  }
  // A failure to begin a session left no file behind, so nothing was sent.
  const begun = await beforehand(() =>
    driveRequest(doing, at('resumable'), context, { method, headers, body: JSON.stringify(metadata) }),
  )
  const session = URL.parse(begun.headers.get('location') ?? '')
  if (!session)
    throw new AgentError(`[${context.callName}] ${doing}: the reply of Drive has no upload session`, {
      code: 'vendor_error',
      sent: 'no',
    })
  // Anyone who knows the session id can write to the session.
  context.conceal(session.searchParams.get('upload_id') ?? session.search)
  // Only the path and query of the session's address are used, so that the token cannot be sent to another host.
  return sendChunks(file, doing, session.pathname + session.search, context)
}

/** Sends one chunk after the other from the same buffer. After a failure Drive is asked how much it has received. */
async function sendChunks(file: Bun.BunFile, doing: string, session: string, context: DriveContext): Promise<Response> {
  const { size, type } = file
  const handle = await open(file.name!, 'r')
  try {
    const chunk = new Uint8Array(CHUNK)
    let received = 0
    let asking = false
    for (let failures = 0; ; ) {
      const body = asking ? '' : await fill(handle, chunk.subarray(0, size - received), received, context)
      const range = asking ? `bytes */${size}` : `bytes ${received}-${received + body.length - 1}/${size}`
      const headers = { 'content-range': range, 'content-type': type }
      const put = { method: 'PUT', headers, body, timeout: CHUNK_TIMEOUT, attempts: 1 }
      const reply = await settled(driveRequest(doing, session, context, put))
      if (reply instanceof Response && reply.ok) return reply
      if (reply instanceof AgentError) {
        if (++failures >= TRIES || !reply.retryable) throw reply
        asking = true
      } else {
        const has = Number(/-(\d+)$/.exec(reply.headers.get('range') ?? '')?.[1] ?? -1) + 1
        if (has > received) failures = 0
        else if (!asking && ++failures >= TRIES) {
          throw new AgentError(`[${context.callName}] ${doing}: Drive does not store any of the data`, {
            code: 'vendor_error',
          })
        }
        received = has
        asking = false
      }
      if (failures > 0) await waitToRetry(context, `${doing} was interrupted`, failures)
    }
  } finally {
    await handle.close()
  }
}

async function fill(
  handle: FileHandle,
  bytes: Uint8Array<ArrayBuffer>,
  from: number,
  context: DriveContext,
): Promise<Uint8Array<ArrayBuffer>> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await handle.read(bytes, at, bytes.length - at, from + at)
    if (bytesRead === 0) {
      throw new AgentError(`[${context.callName}] the file became shorter while it was sent`, {
        code: 'conflict',
        sent: 'no',
      })
    }
    at += bytesRead
  }
  return bytes
}

/** A refusal may follow a last chunk whose reply was lost, so it does not prove that nothing was written. */
async function settled(work: Promise<Response>): Promise<Response | AgentError> {
  try {
    return await work
  } catch (error) {
    if (error instanceof AgentError) return withSent(error, 'unknown')
    throw error
  }
}
