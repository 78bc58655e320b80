// The logs of runs: numbered lines in `<state_dir>/log.jsonl`, one file a run. Lines are masked before they get here. A
// line that was once read keeps its number. The lines of one turn of the event loop are written together.

import { appendFileSync, closeSync, existsSync, mkdirSync, openSync, readSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { Recent } from '../../recent.ts'
import type { LogLine } from '../core/core.ts'

/** Maximum size of the log of a run. Further lines are counted but not stored. */
const MAX_BYTES = 64 * 1_048_576

interface OpenLog {
  file: string
  last: number
  /** Length of all complete lines, on disk and buffered. */
  bytes: number
  dropped: number
  buffer: string[]
}

export class RunLogs {
  readonly #stateDir: (runId: string) => string
  readonly #open = new Map<string, OpenLog>()
  readonly #dirty = new Set<string>()
  readonly #onLines: (runId: string, lines: LogLine[]) => void
  #fresh = new Map<string, LogLine[]>()

  /** `onLines` is called with the lines that have been written to the file. */
  constructor(stateDir: (runId: string) => string, onLines: (runId: string, lines: LogLine[]) => void = () => {}) {
    this.#stateDir = stateDir
    this.#onLines = onLines
  }

  append(runId: string, line: Omit<LogLine, 'seq'>): void {
    this.#push(runId, line, MAX_BYTES)
  }

  #push(runId: string, line: Omit<LogLine, 'seq'>, most: number): void {
    const open = this.#open.get(runId) ?? this.#reopen(runId)
    const text =
      line.text.length > 65_536 ? `${line.text.slice(0, 65_536)}… (${line.text.length} characters)` : line.text
    const numbered: LogLine = { seq: open.last + 1, ...line, text }
    const written = `${JSON.stringify(numbered)}\n`
    const size = Buffer.byteLength(written)
    if (open.bytes + size > most) {
      open.dropped += size
      return
    }
    open.bytes += size
    open.last++
    open.buffer.push(written)
    const fresh = this.#fresh.get(runId)
    if (fresh) fresh.push(numbered)
    else this.#fresh.set(runId, [numbered])
    if (this.#dirty.size === 0) setImmediate(() => this.flush())
    this.#dirty.add(runId)
  }

  /** Writes what is buffered. When the disk refuses, log lines are lost, never the run. */
  flush(): void {
    for (const runId of this.#dirty) {
      const open = this.#open.get(runId)!
      const lines = this.#fresh.get(runId) ?? []
      try {
        mkdirSync(this.#stateDir(runId), { recursive: true, mode: 0o700 })
        appendFileSync(open.file, open.buffer.join(''), { mode: 0o600 })
        this.#onLines(runId, lines)
      } catch {
        const lost = Buffer.byteLength(open.buffer.join(''))
        open.last -= lines.length
        open.bytes -= lost
        open.dropped += lost
        cutBack(open)
      }
      open.buffer = []
    }
    this.#dirty.clear()
    this.#fresh = new Map()
  }

  /** The number of the last line of a run, 0 when it has none. */
  last(runId: string): number {
    return (this.#open.get(runId) ?? this.#reopen(runId)).last
  }

  /** Closes the log of a run that writes no more lines for now, and notes how many lines were dropped. */
  close(runId: string): void {
    const open = this.#open.get(runId)
    if (!open) return
    if (open.dropped > 0) {
      const text = `${open.dropped} bytes dropped`
      open.dropped = 0
      this.#push(runId, { phase: null, at: Date.now(), stream: 'log', text }, Number.POSITIVE_INFINITY)
    }
    this.flush()
    this.#open.delete(runId)
  }

  /** Closes the log, and returns the number of its last line. */
  end(runId: string): number {
    this.last(runId)
    const open = this.#open.get(runId)!
    this.close(runId)
    return open.last
  }

  #reopen(runId: string): OpenLog {
    const file = join(this.#stateDir(runId), 'log.jsonl')
    const { last, bytes } = existsSync(file) ? endOf(file) : { last: 0, bytes: 0 }
    const open: OpenLog = { file, last, bytes, dropped: 0, buffer: [] }
    this.#open.set(runId, open)
    return open
  }
}

/** Removes a partial line that a full disk may have left, so that the next line does not continue it. */
function cutBack({ file, bytes }: OpenLog): void {
  try {
    if (statSync(file).size > bytes) truncateSync(file, bytes)
  } catch {
    // There is no file, so nothing was written.
  }
}

/**
 * The number and end of the last complete line of a log. A partial line that a kill left was never shown, and is cut
 * off.
 */
function endOf(file: string): { last: number; bytes: number } {
  const { size } = statSync(file)
  // A log may be long, so only its end is read.
  for (let length = TAIL_BYTES; ; length *= 8) {
    const from = Math.max(0, size - length)
    const tail = readTail(file, from, size)
    const end = tail.lastIndexOf(NEW_LINE) + 1
    const start = end < 2 ? -1 : tail.lastIndexOf(NEW_LINE, end - 2)
    if (from > 0 && start < 0) continue
    const bytes = from + end
    if (bytes < size) truncateSync(file, bytes)
    const line = tail.toString('utf8', start + 1, end)
    return { last: end === 0 ? 0 : (JSON.parse(line) as LogLine).seq, bytes }
  }
}

const TAIL_BYTES = 64 * 1_024
const NEW_LINE = 10

function readTail(file: string, from: number, to: number): Buffer {
  const tail = Buffer.alloc(to - from)
  const handle = openSync(file, 'r')
  try {
    return tail.subarray(0, readSync(handle, tail, 0, tail.length, from))
  } finally {
    closeSync(handle)
  }
}

/**
 * By file: where the last reader stopped, so that a caller who reads page after page need not start from the beginning.
 */
const stops = new Recent<string, { seq: number; offset: number }>(200)

/** Lines after `afterSeq`, of one phase or all, at most `limit`; `next` is the `afterSeq` of the next page. */
export async function readLines(
  stateDir: string,
  query: { phase?: string; afterSeq?: number; limit: number },
): Promise<{ lines: LogLine[]; next: number }> {
  const { phase, afterSeq = 0, limit } = query
  const path = join(stateDir, 'log.jsonl')
  const file = Bun.file(path)
  const lines: LogLine[] = []
  let next = afterSeq
  if (!(await file.exists())) return { lines, next }
  const stop = stops.get(path)
  let offset = stop && stop.seq <= afterSeq ? stop.offset : 0
  let rest = ''
  const decoder = new TextDecoder()
  for await (const chunk of file.slice(offset).stream()) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = parts.pop()!
    for (const part of parts) {
      const line: LogLine = JSON.parse(part)
      if (line.seq > afterSeq && lines.length === limit) return { lines, next }
      offset += Buffer.byteLength(part) + 1
      if (line.seq <= afterSeq) continue
      next = line.seq
      stops.set(path, { seq: next, offset })
      if (phase === undefined || line.phase === phase) lines.push(line)
    }
  }
  return { lines, next }
}
