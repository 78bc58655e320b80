// Reads the log of a run page by page. A page is bounded in lines and in bytes, and reading a long log does not block the
// event loop.

import { join } from 'node:path'
import { Recent } from '../../recent.ts'
import { chunksIn } from '../../stream.ts'
import { endTurn } from '../../turns.ts'
import { SAID, sayMore } from '../../wire/records/failed-line.ts'
import type { LogLine } from '../core/core.ts'

/** The bytes that the lines of one page may have in the file. One line always fits. */
const PAGE_BYTES = 4 * 1_048_576
/** What is read of a log first when its last lines are asked for. */
const LAST_BYTES = 65_536
const NEW_LINE = 10

export interface LogQuery {
  /** Only the lines of this phase. */
  phase?: string
  afterSeq?: number
  limit: number
  /** The last lines instead of the first. */
  last?: boolean | undefined
  maxBytes?: number
}

export interface LogPage {
  lines: LogLine[]
  /** The `afterSeq` of the next page. */
  next: number
  /** Whether the log has no further lines now. */
  isLast: boolean
}

/** By file: where the last reader stopped, so that the next page is not searched for from the beginning. */
const stops = new Recent<string, { seq: number; offset: number }>(200)

/** Lines after `afterSeq`, of one phase or all, at most `limit` of them. */
export async function readLines(stateDir: string, query: LogQuery): Promise<LogPage> {
  const { phase, afterSeq = 0, limit, maxBytes = PAGE_BYTES } = query
  const path = join(stateDir, 'log.jsonl')
  const file = Bun.file(path)
  const lines: LogLine[] = []
  if (!(await file.exists())) return { lines, next: afterSeq, isLast: true }
  if (query.last) {
    const found = await lastLines(file, query)
    return { lines: found, next: found.at(-1)?.seq ?? 0, isLast: true }
  }
  const stop = stops.get(path)
  let { seq, offset } = stop && stop.seq <= afterSeq ? stop : { seq: 0, offset: 0 }
  const page = (isLast: boolean): LogPage => {
    stops.set(path, { seq, offset })
    return { lines, next: Math.max(seq, afterSeq), isLast }
  }
  let size = 0
  let rest: Uint8Array[] = []
  for await (const chunk of chunksIn(file.slice(offset).stream())) {
    let from = 0
    for (let end = chunk.indexOf(NEW_LINE); end !== -1; end = chunk.indexOf(NEW_LINE, from)) {
      const wait = endTurn()
      if (wait) await wait
      const part = chunk.subarray(from, end)
      const bytes = rest.length === 0 ? part : Buffer.concat([...rest, part])
      rest = []
      from = end + 1
      if (seqOf(bytes) > afterSeq) {
        if (lines.length === limit || (lines.length > 0 && size + bytes.byteLength > maxBytes)) return page(false)
        const line: LogLine = JSON.parse(decoder.decode(bytes))
        if (phase === undefined || line.phase === phase) {
          lines.push(line)
          size += bytes.byteLength
        }
      }
      seq = seqOf(bytes)
      offset += bytes.byteLength + 1
    }
    if (from < chunk.byteLength) rest.push(chunk.slice(from))
  }
  return page(true)
}

/** The last lines, of one phase or all: those that fit into a page, from the last `PAGE_BYTES` of the log. */
async function lastLines(file: Bun.BunFile, { phase, limit }: LogQuery): Promise<LogLine[]> {
  const { size } = file
  for (let bytes = Math.min(size, LAST_BYTES); ; bytes = Math.min(size, PAGE_BYTES, bytes * 8)) {
    const read = await file.slice(size - bytes, size).bytes()
    // The first piece may be a part of a line, and the last one may not be written whole.
    const from = bytes === size ? 0 : read.indexOf(NEW_LINE) + 1
    const texts = decoder.decode(read.subarray(from, read.lastIndexOf(NEW_LINE) + 1)).split('\n')
    const lines: LogLine[] = []
    for (let at = texts.length - 2; at >= 0 && lines.length < limit; at--) {
      const line: LogLine = JSON.parse(texts[at]!)
      if (phase === undefined || line.phase === phase) lines.push(line)
    }
    if (lines.length === limit || bytes === Math.min(size, PAGE_BYTES)) return lines.reverse()
  }
}

const decoder = new TextDecoder()

/** The number with which each line begins. */
function seqOf(line: Uint8Array): number {
  let seq = 0
  for (let at = '{"seq":'.length; line[at]! >= 48 && line[at]! <= 57; at++) seq = seq * 10 + line[at]! - 48
  return seq
}

/** Whether a phase has written to the log of its run, which its error alone is not. */
export async function hasLines(stateDir: string, phase: string): Promise<boolean> {
  return sayMore((await readLines(stateDir, { phase, limit: SAID })).lines)
}
