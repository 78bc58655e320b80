// Reads streams without holding the event loop. Reads of a stream that always has data resolve in the same turn of the
// event loop, so that a plain loop of them lets no timer, socket or signal have its turn: every such loop of ours is here.

import { TurnBudget } from './turns.ts'

/** Bytes that all readers of streams together take in one turn of the event loop. */
const TURN_BYTES = 4 * 1_048_576
const budget = new TurnBudget(TURN_BYTES)

/** The chunks of `stream`, until it ends or `until` fires. The stream is cancelled when the loop stops early. */
export async function* chunksIn<T>(stream: ReadableStream<T>, until?: AbortSignal): AsyncGenerator<T, void> {
  const reader = stream.getReader()
  const cancel = () => reader.cancel().catch(() => {})
  until?.addEventListener('abort', cancel)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
      await budget.take(value instanceof Uint8Array ? value.byteLength : 1)
    }
  } finally {
    until?.removeEventListener('abort', cancel)
    // This has no effect on a stream that has ended.
    await cancel()
  }
}

/** The stream of what a generator yields. A text becomes UTF-8. When the stream is cancelled, the generator returns. */
export function streamOf(chunks: AsyncGenerator<string | Uint8Array, void>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next()
      if (done) controller.close()
      else controller.enqueue(typeof value === 'string' ? Buffer.from(value) : value)
    },
    cancel() {
      // Not awaited: a generator that waits for its own source returns when that ends.
      chunks.return().catch(() => {})
    },
  })
}

export interface TextOptions {
  /** In bytes. */
  most: number
  /** Called once, if there is more. */
  onMore?: () => void
  until?: AbortSignal
}

/** The text of a stream, of which no more than `most` bytes are kept. */
export async function textIn(
  stream: ReadableStream<Uint8Array>,
  { most, onMore = () => {}, until }: TextOptions,
): Promise<string> {
  const kept: Uint8Array[] = []
  let left = most
  let isMore = false
  for await (const chunk of chunksIn(stream, until)) {
    if (left > 0) kept.push(chunk.subarray(0, left))
    if (chunk.byteLength > left && !isMore) {
      isMore = true
      onMore()
    }
    left = Math.max(0, left - chunk.byteLength)
  }
  return Buffer.concat(kept).toString()
}

/** The same items, of which the first is asked for at once. */
export function readAhead<T>(items: AsyncGenerator<T>): AsyncGenerator<T> {
  const first = items.next()
  // Whoever reads them hears of it.
  first.catch(() => {})
  return (async function* () {
    const { done, value } = await first
    if (done) return
    yield value
    yield* items
  })()
}
