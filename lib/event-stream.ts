// Reads server-sent events as hub and daemon write them: one `event` and one `data` line each.

import { chunksIn } from './stream.ts'

export interface SentEvent {
  name: string
  data: unknown
}

/** `heard` is called with each part that arrives, comments included, which only say that the stream is alive. */
export async function* sentEvents(body: ReadableStream<Uint8Array>, onChunk?: () => void): AsyncGenerator<SentEvent> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const chunk of chunksIn(body)) {
    onChunk?.()
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const name = fieldOf(block, 'event: ')
      const data = fieldOf(block, 'data: ')
      if (name && data) yield { name, data: JSON.parse(data) }
    }
  }
}

/** Lines end at a line feed alone: in a text of JSON, U+2028 and U+2029 stand as they are. */
const fieldOf = (block: string, name: string): string | undefined =>
  block
    .split('\n')
    .find(line => line.startsWith(name))
    ?.slice(name.length)
