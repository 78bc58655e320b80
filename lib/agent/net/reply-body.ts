// Limits on the body of a reply: how long it may be silent, and how much of it may be kept in memory. Sizes are counted
// after decompression, chunk by chunk, so that a decompression bomb is stopped while it grows.

import { Limit } from '../../lived-time.ts'
import { chunksIn } from '../../stream.ts'
import { AgentError } from '../core/agent-error.ts'

export interface BodyBounds {
  /** Maximum number of bytes that `text`, `json`, `bytes`, `arrayBuffer` and `blob` accept. */
  maxBytes: number
  /** Milliseconds that may pass without a byte. */
  idle: number
  /** Closes the connection. */
  abort(): void
  /** Called when nothing more will be read, also when the caller stops early. May be called more than once. */
  done(): void
  /** Turns a failure while reading into the error to throw. */
  explain(error: unknown): unknown
  /** The method and origin of the request, for messages. */
  endpoint: string
}

/** The same `reply`, with limits on all of its ways to read the body. */
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
        const hint = `its content type is ${type || 'missing'}: check that the address is correct and not that of a login page`
        throw new AgentError(`the reply of ${bounds.endpoint} must be JSON`, { code: 'no_json', hint, cause })
      }
    },
  }
  for (const [name, value] of Object.entries(readers)) Object.defineProperty(reply, name, { value })
  return Object.defineProperty(reply, 'body', { value: body })
}

function watched(source: ReadableStream<Uint8Array>, { idle, abort, done, explain, endpoint }: BodyBounds) {
  const reader = source.getReader()
  let silent = false
  let limit: Limit | undefined
  const expect = () => {
    limit?.end()
    limit = new Limit(idle, () => {
      silent = true
      abort()
      done()
    }).unref()
  }
  const end = () => {
    limit?.end()
    done()
  }
  expect()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        expect()
        try {
          const { done: over, value } = await reader.read()
          limit?.end()
          if (!over) return controller.enqueue(value)
          end()
          controller.close()
        } catch (error) {
          end()
          const message = `${endpoint} sent nothing for ${idle} ms in the middle of its reply`
          controller.error(silent ? new AgentError(message, { code: 'timeout', retryable: true }) : explain(error))
        }
      },
      async cancel(reason) {
        end()
        await reader.cancel(reason).catch(() => {})
      },
    },
    // A high-water mark of 0 keeps the stream from reading ahead of its consumer.
    { highWaterMark: 0 },
  )
}

async function collect(
  body: ReadableStream<Uint8Array>,
  { maxBytes, endpoint }: BodyBounds,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunksIn(body)) {
    size += chunk.byteLength
    if (size > maxBytes) {
      const hint = 'stream the reply to a file, or request less data'
      throw new AgentError(`the reply of ${endpoint} has more than ${maxBytes} bytes`, { code: 'too_large', hint })
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks) as Uint8Array<ArrayBuffer>
}
