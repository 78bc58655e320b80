// Accepts and reads JSON bodies: limited in size however they are sent, in UTF-8, valid JSON, and limited in depth.

import { formatDuration } from '../duration.ts'
import { CadreError } from '../error.ts'
import { parseJson } from '../json-text.ts'
import { chunksIn } from '../stream.ts'
import { unlessAborted } from '../wait.ts'
import { MIB } from '../wire/call.ts'

/** Headers as Elysia passes them: by their name in lower case. */
export type Headers = Record<string, string | undefined>

const JSON_TYPE = 'application/json'

/** The checks that need no byte of the body: the announced size, then the type. */
export function checkHead(headers: Headers, limit: number): void {
  const length = headers['content-length']
  if (length !== undefined && Number(length) > limit) throw tooLarge(limit)
  if (length === '0' || (length === undefined && headers['transfer-encoding'] === undefined)) return
  const type = headers['content-type']
  if (type !== JSON_TYPE && bareType(type) !== JSON_TYPE) {
    throw new CadreError('unsupported_media_type', `expected content-type application/json, got ${type ?? 'none'}`)
  }
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    throw new CadreError('unsupported_media_type', `expected a body without content-encoding, got ${encoding}`)
  }
}

/** The type without its parameters. */
const bareType = (type = ''): string => type.split(';', 1)[0]!.trim().toLowerCase()

/**
 * The JSON value of the body; an empty one counts as `{}`. A caller that disconnects early is not a fault of ours: it is
 * logged as a refusal, and nobody reads the reply.
 */
export async function readJson(request: Request, headers: Headers, limit: number): Promise<unknown> {
  const bytes = await arriving(
    // If there is a length, the server delivers no more than was announced, and the announced length has been checked.
    headers['content-length'] === undefined ? takeChunks(request, limit) : request.bytes(),
  )
  return bytes.length === 0 ? {} : parseJson(bytes, 'the body')
}

/** The bytes of a body of any type, if they are no more than `limit` and have arrived after `ms`. */
export async function readBytes(request: Request, limit: number, ms: number): Promise<Uint8Array> {
  const length = request.headers.get('content-length')
  if (length !== null && Number(length) > limit) throw tooLarge(limit)
  const stop = new AbortController()
  const late = new CadreError('invalid_request', `the body took longer than ${formatDuration(ms)}`)
  const timer = setTimeout(() => stop.abort(late), ms)
  try {
    const bytes = length === null ? takeChunks(request, limit, stop.signal) : request.bytes()
    return await arriving(unlessAborted(bytes, stop.signal))
  } finally {
    clearTimeout(timer)
  }
}

async function arriving(bytes: Promise<Uint8Array>): Promise<Uint8Array> {
  try {
    return await bytes
  } catch (cause) {
    if (cause instanceof CadreError) throw cause
    throw new CadreError('invalid_request', 'the connection ended before the whole body had arrived', { cause })
  }
}

async function takeChunks(request: Request, limit: number, until?: AbortSignal): Promise<Uint8Array> {
  if (!request.body) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunksIn(request.body, until)) {
    size += chunk.length
    if (size > limit) throw tooLarge(limit)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function tooLarge(limit: number): CadreError {
  return new CadreError('too_large', `the body is larger than ${limit / MIB} MiB`)
}
