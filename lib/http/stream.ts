// Replies that are written in pieces: large JSON that does not delay other calls, and server-sent events.

import { streamOf } from '../stream.ts'
import { endTurn } from '../turns.ts'

/** The number of characters that are collected before a piece is sent. */
const PIECE = 64 * 1024
/** What waits for a reader of events, in bytes, before the next event is asked for. */
const AHEAD = 256 * 1024
/** A comment is sent this often, so that neither a proxy nor the server's idle limit closes a quiet stream. */
const COMMENT_MS = 15_000

/**
 * A JSON reply of any size: `head`, the items separated by commas, `tail`. The items are serialized in pieces as the
 * reader takes them, and other requests run between the pieces.
 */
export function jsonStream(head: string, items: Items, tail: string): Response {
  return answer('application/json;charset=utf-8', pieces(head, items, { between: ',', tail }))
}

/** Items of any number as lines of JSON, written as the reader takes them. */
export function lineStream(items: Items): Response {
  return answer('application/x-ndjson', pieces('', items, { between: '\n', tail: '\n' }))
}

type Items = AsyncIterable<unknown> | Iterable<unknown>

async function* pieces(head: string, items: Items, { between, tail }: { between: string; tail: string }) {
  let piece = head
  let first = true
  for await (const item of items) {
    piece += (first ? '' : between) + JSON.stringify(item)
    first = false
    if (piece.length < PIECE) continue
    yield piece
    piece = ''
    await new Promise(setImmediate)
  }
  yield piece + tail
}

const answer = (type: string, text: AsyncGenerator<string, void>): Response =>
  new Response(streamOf(text), { headers: { 'content-type': type } })

export interface ServerEvent {
  id?: string | number
  event?: string
  data: unknown
}

/**
 * Sends events until `events` ends, the reader disconnects, or `signal` fires. `events` gets a signal that fires in the
 * last two cases, on which it must end. The caller removes the server's idle limit: `server.timeout(request, 0)`.
 */
export function eventStream(
  events: (signal: AbortSignal) => AsyncIterable<ServerEvent>,
  signal: AbortSignal,
): Response {
  const gone = new AbortController()
  const encoder = new TextEncoder()
  const until = AbortSignal.any([signal, gone.signal])
  let taken = () => {}
  gone.signal.addEventListener('abort', () => taken())
  const pump = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const send = (text: string) => {
      if (!gone.signal.aborted) controller.enqueue(encoder.encode(text))
    }
    send(': open\n\n')
    const comments = setInterval(() => controller.desiredSize! > 0 && send(': \n\n'), COMMENT_MS)
    try {
      for await (const event of events(until)) {
        send(format(event))
        await endTurn()
        while (controller.desiredSize! <= 0 && !gone.signal.aborted) {
          await new Promise<void>(resolve => {
            taken = resolve
          })
        }
      }
      if (!gone.signal.aborted) controller.close()
    } catch (error) {
      if (!gone.signal.aborted) controller.error(error)
    } finally {
      clearInterval(comments)
    }
  }
  const body = new ReadableStream<Uint8Array>(
    {
      start: controller => void pump(controller),
      pull: () => taken(),
      cancel: () => gone.abort(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: AHEAD }),
  )
  return new Response(body, { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store' } })
}

function format({ id, event, data }: ServerEvent): string {
  const head = (id === undefined ? '' : `id: ${id}\n`) + (event === undefined ? '' : `event: ${event}\n`)
  return `${head}data: ${JSON.stringify(data)}\n\n`
}
