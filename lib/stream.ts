// The chunks of a stream, for `for await`: Bun's streams can be iterated, but their types do not say so.

/** Whoever stops early cancels the stream. */
export async function* chunksIn<T>(stream: ReadableStream<T>): AsyncGenerator<T, void> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    // It does nothing to a stream that has ended.
    await reader.cancel().catch(() => {})
  }
}
