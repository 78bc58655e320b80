// The chunks of a stream, for `for await`: Bun's streams can be iterated, but their types do not say so.

/** The chunks of `stream`. The stream is cancelled when the loop stops early. */
export async function* chunksIn<T>(stream: ReadableStream<T>): AsyncGenerator<T, void> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    // This has no effect on a stream that has ended.
    await reader.cancel().catch(() => {})
  }
}
