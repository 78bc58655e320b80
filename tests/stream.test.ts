// The chunks of a stream: all of them in order, what fails it, and the end of it for whoever stops early.

import { expect, test } from 'bun:test'
import { chunksIn } from '../lib/stream.ts'

/** Counts up, and remembers why it was cancelled. */
function numbers(last: number) {
  const seen: { cancelled: boolean } = { cancelled: false }
  let next = 1
  const stream = new ReadableStream<number>({
    pull(controller) {
      if (next > last) controller.close()
      else controller.enqueue(next++)
    },
    cancel() {
      seen.cancelled = true
    },
  })
  return { stream, seen }
}

test('all chunks come in order', async () => {
  const { stream, seen } = numbers(3)
  expect(await Array.fromAsync(chunksIn(stream))).toEqual([1, 2, 3])
  expect(seen.cancelled).toBe(false)
})

test('who stops early cancels the stream', async () => {
  const { stream, seen } = numbers(3)
  for await (const chunk of chunksIn(stream)) if (chunk === 2) break
  expect(seen.cancelled).toBe(true)
})

test('what the stream fails with is thrown', async () => {
  const stream = new ReadableStream<number>({
    start: controller => controller.enqueue(1),
    pull: () => Promise.reject(new Error('torn')),
  })
  await expect(Array.fromAsync(chunksIn(stream))).rejects.toThrow('torn')
})
