// Reads server-sent events as hub and daemon write them: one `event` and one `data` line each.

export interface SentEvent {
  name: string
  data: unknown
}

/** `heard` is called with each part that arrives, comments included, which only say that the stream is alive. */
export async function* sentEvents(body: AsyncIterable<Uint8Array>, heard?: () => void): AsyncGenerator<SentEvent> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    heard?.()
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const name = /^event: (.*)$/m.exec(block)?.[1]
      const data = /^data: (.*)$/m.exec(block)?.[1]
      if (name && data) yield { name, data: JSON.parse(data) }
    }
  }
}
