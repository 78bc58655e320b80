// The logs of runs: numbered lines in `<state_dir>/log.jsonl`, one file a run, all masked. A line that somebody has read
// keeps its number. The lines of one turn of the event loop are written together. A log that has reached its limit only
// counts lines; when it is closed, it says how many are missing and ends with the last ones.

import { appendFileSync, closeSync, existsSync, mkdirSync, openSync, readSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import type { RunId } from '../../files/run-id.ts'
import type { Masked } from '../../secrets/masked.ts'
import { sizeText } from '../../size.ts'
import type { LogLine } from '../core/core.ts'
import { DroppedLines, LineCounts, type UnnumberedLine } from './dropped-lines.ts'

/** The size of a run's log in bytes, unless the daemon sets another limit. */
export const LOG_LIMIT = 64 * 1_048_576
/** Longer texts are cut, in characters. */
const MOST_TEXT = 65_536
/** The field of the line after which lines are only counted. */
const FULL = 'log_full'

interface OpenLog {
  file: string
  last: number
  /** Length of all complete lines, on disk and buffered. */
  bytes: number
  /** The lines beyond the limit; null while the log is not full. */
  dropped: DroppedLines | null
  /** The lines that the disk refused. */
  refused: LineCounts
  /** The line after which lines were being counted when the daemon was killed. */
  uncounted: LogLine | null
  buffer: string[]
}

export class RunLogs {
  readonly #stateDir: (runId: RunId) => string
  readonly #open = new Map<RunId, OpenLog>()
  readonly #dirty = new Set<RunId>()
  readonly #onLines: (runId: RunId, lines: LogLine[]) => void
  readonly #limit: number
  #unwritten = new Map<RunId, LogLine[]>()

  /** `onLines` is called with the lines that have been written to the file. `limit` is the size of a log in bytes. */
  constructor(
    stateDir: (runId: RunId) => string,
    onLines: (runId: RunId, lines: LogLine[]) => void = () => {},
    limit = LOG_LIMIT,
  ) {
    this.#stateDir = stateDir
    this.#onLines = onLines
    this.#limit = limit
  }

  append(runId: RunId, given: UnnumberedLine & Masked<Pick<UnnumberedLine, 'text' | 'fields'>>): void {
    const open = this.#of(runId)
    const line = cut(given)
    if (open.dropped === null && this.#write(runId, open, line, this.#limit)) return
    this.#droppedOf(runId, open, line).add(line)
  }

  /** Whether the log is full, so that further lines are only counted. */
  isFull(runId: RunId): boolean {
    return this.#of(runId).dropped !== null
  }

  /** Counts lines of a phase that its reader has only counted. */
  skip(runId: RunId, phase: string | null, lines: number, bytes: number): void {
    const open = this.#of(runId)
    this.#droppedOf(runId, open, { phase, at: Date.now() }).counts.add(phase, lines, bytes)
  }

  /** The log says once for each phase that it is full. */
  #droppedOf(runId: RunId, open: OpenLog, { phase, at }: Pick<UnnumberedLine, 'phase' | 'at'>): DroppedLines {
    open.dropped ??= new DroppedLines()
    if (open.dropped.counts.has(phase)) return open.dropped
    open.dropped.counts.add(phase, 0, 0)
    const text = `the log of this run is full (${sizeText(this.#limit)}): further lines are counted, and the last of them follow when the run ends`
    this.#write(runId, open, { phase, at, stream: 'log', text, fields: { [FULL]: true } })
    return open.dropped
  }

  /** Returns false if the line does not fit into `limit`. */
  #write(runId: RunId, open: OpenLog, line: UnnumberedLine, limit = Number.POSITIVE_INFINITY): boolean {
    const numbered: LogLine = { seq: open.last + 1, ...line }
    const written = `${JSON.stringify(numbered)}\n`
    const size = Buffer.byteLength(written)
    if (open.bytes + size > limit) return false
    open.bytes += size
    open.last++
    open.buffer.push(written)
    const unwritten = this.#unwritten.get(runId)
    if (unwritten) unwritten.push(numbered)
    else this.#unwritten.set(runId, [numbered])
    if (this.#dirty.size === 0) setImmediate(() => this.flush())
    this.#dirty.add(runId)
    return true
  }

  /** Writes what is buffered. When the disk refuses, log lines are lost, never the run. */
  flush(): void {
    for (const runId of this.#dirty) {
      const open = this.#open.get(runId)!
      const lines = this.#unwritten.get(runId) ?? []
      try {
        mkdirSync(this.#stateDir(runId), { recursive: true, mode: 0o700 })
        appendFileSync(open.file, open.buffer.join(''), { mode: 0o600 })
        this.#onLines(runId, lines)
      } catch {
        open.last -= lines.length
        open.bytes -= Buffer.byteLength(open.buffer.join(''))
        for (const { phase, text } of lines) open.refused.add(phase, 1, Buffer.byteLength(text) + 1)
        cutBack(open)
      }
      open.buffer = []
    }
    this.#dirty.clear()
    this.#unwritten = new Map()
  }

  /** The number of the last line of a run, 0 when it has none. */
  last(runId: RunId): number {
    return this.#of(runId).last
  }

  /** Closes the log of a run that writes no more lines for now, and adds the lines of `endingOf`. */
  close(runId: RunId): void {
    const open = this.#open.get(runId)
    if (!open) return
    for (const line of endingOf(open)) this.#write(runId, open, line)
    this.flush()
    this.#open.delete(runId)
  }

  /** Closes all logs, because the daemon stops. */
  closeAll(): void {
    for (const runId of [...this.#open.keys()]) this.close(runId)
  }

  /** Closes the log, and returns the number of its last line. */
  end(runId: RunId): number {
    this.last(runId)
    const open = this.#open.get(runId)!
    this.close(runId)
    return open.last
  }

  #of(runId: RunId): OpenLog {
    const known = this.#open.get(runId)
    if (known) return known
    const file = join(this.#stateDir(runId), 'log.jsonl')
    const { line, bytes } = existsSync(file) ? endOf(file) : { line: null, bytes: 0 }
    const uncounted = line?.fields?.[FULL] === true ? line : null
    const open = { file, last: line?.seq ?? 0, bytes, dropped: null, refused: new LineCounts(), uncounted, buffer: [] }
    this.#open.set(runId, open)
    return open
  }
}

/** The lines with which a log ends: how many are missing, and the last ones. */
function* endingOf({ dropped, refused, uncounted }: OpenLog): Generator<UnnumberedLine> {
  const last = dropped?.last ?? []
  const at = last[0]?.at ?? Date.now()
  if (uncounted) {
    const text = 'lines missing here, and nobody knows how many: the daemon was stopped while it counted them'
    yield { phase: uncounted.phase, at, stream: 'log', text }
  }
  yield* refused.report(at, 'because the disk refused them')
  if (dropped) yield* dropped.counts.report(at, 'because the log is full')
  yield* last
}

function cut(line: UnnumberedLine): UnnumberedLine {
  const { length } = line.text
  return length > MOST_TEXT ? { ...line, text: `${line.text.slice(0, MOST_TEXT)}… (${length} characters)` } : line
}

/** Removes a partial line that a full disk may have left, so that the next line does not continue it. */
function cutBack({ file, bytes }: OpenLog): void {
  try {
    if (statSync(file).size > bytes) truncateSync(file, bytes)
  } catch {
    // There is no file, so nothing was written.
  }
}

/** The last complete line of a log and its end. A partial line that a kill left was never shown, and is cut off. */
function endOf(file: string): { line: LogLine | null; bytes: number } {
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
    return { line: end === 0 ? null : JSON.parse(tail.toString('utf8', start + 1, end)), bytes }
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
