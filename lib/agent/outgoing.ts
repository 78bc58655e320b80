// The body of a request as it is sent. Bun reads a file whole into memory before it goes through TLS or a proxy, so what
// is large is streamed; then it is also seen to move, and a slow line is told from a dead one.

import { AgentError, type FetchOptions } from './define.ts'

type Body = NonNullable<FetchOptions['body']> | null

/** Bytes from which a file is streamed. */
const LARGE = 1024 * 1024

/** For one try: a large `body` becomes a stream, with its length and type in `headers`. `onTaken`: some of it has gone. */
export function outgoing(body: Body, headers: Headers, onTaken: () => void): Body {
  if (!(body instanceof Blob) || body.size < LARGE) return body
  headers.set('content-length', `${body.size}`)
  if (body.type && !headers.has('content-type')) headers.set('content-type', body.type)
  return exactly(body.size, body.stream(), onTaken)
}

/** The same bytes; fails when they are not as many as were announced. */
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
