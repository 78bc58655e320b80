// The body of a request as it is sent. Bun reads a file completely into memory before it sends it through TLS or a
// proxy, so large bodies are streamed. Streaming also shows progress, so that a slow connection can be distinguished from a dead
// one.

import { AgentError } from '../core/agent-error.ts'
import { FileForm } from '../core/file-form.ts'
import type { FetchOptions } from './requests.ts'

type Body = NonNullable<FetchOptions['body']> | null

/** A file of at least this many bytes is streamed. */
const LARGE = 1024 * 1024

/**
 * The body for one attempt. A large `body` becomes a stream, with its length and type in `headers`. `onTaken` is called
 * whenever some of it has been sent.
 */
export function outgoing(body: Body, headers: Headers, onTaken: () => void): Exclude<Body, FileForm> {
  if (!(body instanceof FileForm || (body instanceof Blob && body.size >= LARGE))) return body
  headers.set('content-length', `${body.size}`)
  if (body.type && !headers.has('content-type')) headers.set('content-type', body.type)
  return exactly(body.size, body.stream(), onTaken)
}

/** The same stream. It fails when the number of bytes differs from `size`, which was announced to the server. */
function exactly(size: number, source: ReadableStream<Uint8Array>, onTaken: () => void): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  let left = size
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        left -= value?.byteLength ?? 0
        if (left < 0 || (done && left > 0)) {
          void reader.cancel().catch(() => {})
          throw new AgentError('the file changed its size while it was sent', { code: 'conflict', sent: 'unknown' })
        }
        onTaken()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: reason => reader.cancel(reason).catch(() => {}),
    },
    { highWaterMark: 0 },
  )
}
