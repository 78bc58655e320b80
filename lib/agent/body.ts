// Bounds on the body of a reply: a silence that ends it, and a size that what is kept in memory must not pass.
// Sizes are counted after decompression, chunk by chunk, so that a small bomb is stopped where it grows.

import { chunksIn } from '../stream.ts'
import { AgentError } from './define.ts'

export interface BodyBounds {
  /** Most bytes for `text`, `json`, `bytes`, `arrayBuffer` and `blob`. */
  maxBytes: number
  /** Milliseconds without a byte. */
  idle: number
  /** Ends the connection. */
  abort(): void
  /** Called when nothing more will be read, be it that nobody does; perhaps more than once. */
  done(): void
  /** Says what a failure while reading means. */
  explain(error: unknown): unknown
  /** For messages: the method and origin. */
  place: string
}

/** `reply` itself, with its ways to read the body bounded. */
export function bound(reply: Response, bounds: BodyBounds): Response {
  const original = reply.body
  if (original === null) {
    bounds.done()
    return reply
  }
  const body = watched(original, bounds)
  const bytes = () => collect(body, bounds)
  const text = async () => new TextDecoder().decode(await bytes())
  const type = reply.headers.get('content-type') ?? ''
  const readers = {
    bytes,
    text,
    arrayBuffer: async () => (await bytes()).buffer,
    blob: async () => new Blob([await bytes()], { type }),
    async json() {
      const read = await text()
      try {
        return JSON.parse(read)
      } catch (cause) {
        const hint = `it has content type ${type || 'none'}: is the address right, and not a login page?`
        throw new AgentError(`${bounds.place} answered no JSON`, { code: 'no_json', hint, cause })
      }
    },
  }
  for (const [name, value] of Object.entries(readers)) Object.defineProperty(reply, name, { value })
  return Object.defineProperty(reply, 'body', { value: body })
}

function watched(source: ReadableStream<Uint8Array>, { idle, abort, done, explain, place }: BodyBounds) {
  const reader = source.getReader()
  let silent = false
  let timer: Timer
  const expect = () => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      silent = true
      abort()
      done()
    }, idle)
    timer.unref()
  }
  const end = () => {
    clearTimeout(timer)
    done()
  }
  expect()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        expect()
        try {
          const { done: over, value } = await reader.read()
          clearTimeout(timer)
          if (!over) return controller.enqueue(value)
          end()
          controller.close()
        } catch (error) {
          end()
          const message = `${place} sent nothing for ${idle} ms in the middle of its reply`
          controller.error(silent ? new AgentError(message, { code: 'timeout', retryable: true }) : explain(error))
        }
      },
      async cancel(reason) {
        end()
        await reader.cancel(reason).catch(() => {})
      },
    },
    // Nothing is read ahead of the one who reads.
    { highWaterMark: 0 },
  )
}

async function collect(
  body: ReadableStream<Uint8Array>,
  { maxBytes, place }: BodyBounds,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunksIn(body)) {
    size += chunk.byteLength
    if (size > maxBytes) {
      const hint = 'stream it to a file, or ask for less'
      throw new AgentError(`${place} answered more than ${maxBytes} bytes`, { code: 'too_large', hint })
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks) as Uint8Array<ArrayBuffer>
}
