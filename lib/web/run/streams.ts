// What a run sends as it is, and not as the data of a call: its files, its log, and its events.

import { GetArtifact } from '../../wire/calls/artifacts.ts'
import { ReadLog, StreamRun } from '../../wire/calls/runs.ts'
import type { RunEvent, TreeLines } from '../../wire/records/run-records.ts'
import { ask, failureOf } from '../kit/api.ts'

/** The bytes of a file that a run wrote. */
export async function fileOf(runId: string, path: string): Promise<Blob> {
  const query = new URLSearchParams({ run_id: runId, path })
  const reply = await ask(`${GetArtifact.path}?${query}`)
  if (!reply.ok) throw await failureOf(reply)
  return reply.blob()
}

/** The lines that a run has logged so far, and with `below` those of all runs below it. Each piece is of one run. */
export async function* logPieces(runId: string, below: boolean, signal: AbortSignal): AsyncGenerator<TreeLines> {
  const query = new URLSearchParams({ run_id: runId, below: below ? 'yes' : 'no' })
  const reply = await ask(`${ReadLog.path}?${query}`, { signal })
  if (!reply.ok || !reply.body) throw await failureOf(reply)
  for await (const line of blocksOf(reply.body, '\n')) if (line !== '') yield JSON.parse(line)
}

/** How long reading may keep the browser from drawing. */
const SLICE_MS = 8

/** The parts of a text between separators, as they arrive, with pauses in which the browser can draw. */
async function* blocksOf(body: NonNullable<Response['body']>, separator: string): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let since = performance.now()
  for (let rest = ''; ; ) {
    const { done, value } = await reader.read()
    if (done) return
    const blocks = (rest + value).split(separator)
    rest = blocks.pop()!
    for (const block of blocks) {
      yield block
      if (performance.now() - since < SLICE_MS) continue
      await new Promise(resolve => setTimeout(resolve))
      since = performance.now()
    }
  }
}

/**
 * An event as `eventStream` of the server writes it. Only a line feed ends a line: a text of JSON may contain U+2028 and
 * U+2029.
 */
const EVENT = /^(?:id: ([^\n]*)\n)?event: ([^\n]*)\ndata: ([^\n]*)$/m

/** The events of a run until it ends. Throws when the connection is lost. */
export async function* events(runId: string, last: string | null, signal: AbortSignal) {
  const headers: Record<string, string> = last === null ? {} : { 'last-event-id': last }
  const reply = await ask(`${StreamRun.path}?${new URLSearchParams({ run_id: runId })}`, { headers, signal })
  if (!reply.ok || !reply.body) throw await failureOf(reply)
  for await (const block of blocksOf(reply.body, '\n\n')) {
    const [, id = null, event, data] = EVENT.exec(block) ?? []
    if (event) yield { id, event: { event, data: JSON.parse(data!) } as RunEvent }
  }
}
