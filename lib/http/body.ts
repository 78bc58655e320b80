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
    headers['content-length'] === undefined ? takeChunks(request, limit, () => {}) : request.bytes(),
  )
  return bytes.length === 0 ? {} : parseJson(bytes, 'the body')
}

/** A body that announces no more than this costs no more than its connection. */
const SMALL_BYTES = 64 * 1024
/** In each such time at least so much of a body has to arrive. */
const LEAST = { bytes: 32 * 1024, ms: 5_000 }

interface Reading {
  /** Most bytes. */
  limit: number
  /** How long the whole body may take. */
  ms: number
  /** Is told how many bytes have arrived, and may throw. */
  took?(bytes: number): void
}

/** The bytes of a body of any type, if they are no more than `limit` and arrive in time. */
export async function readBytes(request: Request, { limit, ms, took = () => {} }: Reading): Promise<Uint8Array> {
  const length = request.headers.get('content-length')
  if (length !== null && Number(length) > limit) throw tooLarge(limit)
  const stop = new AbortController()
  const late = () => stop.abort(new CadreError('invalid_request', `the body took longer than ${formatDuration(ms)}`))
  const slow = () => stop.abort(new CadreError('invalid_request', 'the body arrives too slowly'))
  let recent = 0
  const timer = setTimeout(late, ms)
  const rate = setInterval(() => {
    if (recent < LEAST.bytes) slow()
    recent = 0
  }, LEAST.ms)
  const count = (bytes: number) => {
    recent += bytes
    took(bytes)
  }
  const isSmall = length !== null && Number(length) <= SMALL_BYTES
  try {
    const bytes = isSmall ? request.bytes() : takeChunks(request, limit, count, stop.signal)
    return await arriving(unlessAborted(bytes, stop.signal))
  } finally {
    clearTimeout(timer)
    clearInterval(rate)
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

async function takeChunks(
  request: Request,
  limit: number,
  took: (bytes: number) => void,
  until?: AbortSignal,
): Promise<Uint8Array> {
  if (!request.body) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunksIn(request.body, until)) {
    size += chunk.length
    if (size > limit) throw tooLarge(limit)
    took(chunk.length)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function tooLarge(limit: number): CadreError {
  return new CadreError('too_large', `the body is larger than ${limit / MIB} MiB`)
}
