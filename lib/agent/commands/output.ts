// What processes print, read under one budget of all readers, so that no amount of it holds the event loop: a pipe that
// is not read is full, and a full pipe makes its writer wait. Lines are cut and masked as they come. When the log that
// they are for stores no more, they are only counted, and the last of them kept.

import { Limit } from '../../lived-time.ts'
import type { RedactedStream } from '../../secrets/redact.ts'
import { TurnBudget } from '../../turns.ts'

/** The work of a line, in bytes: recording one takes about as long as masking this many. */
const LINE_WORK = 256
/** What is masked and cut into lines at once. */
const PIECE_BYTES = 16 * 1024
const PIECE_LINES = 256
/** A longer line is cut, in characters. */
const LINE_MOST = 64 * 1024
/** How much faster a byte is counted than masked. */
const COUNTING = 2

/** About 2 ms of work, and then a pause, in which the writers wait: nobody reads faster than about 200 MB/s. */
const budget = new TurnBudget(128 * 1024, 1)

/** What is kept of lines that were only counted, and what is remembered before it. No secret is longer than that. */
const KEPT_BYTES = 256 * 1024
const LEAD_BYTES = 256 * 1024
/** The least that a line takes in a log. */
const LEAST_LINE_BYTES = 80

/** How long a reader waits for more when no process is left that should write. A process that left may keep the pipe. */
const DRAIN_MS = 500
/** More than a pipe holds. */
const PIPE_BYTES = 1_048_576

const NEW_LINE = 10

/** The limit of the log that lines are for. */
export interface LogLimit {
  /** Whether the log is full, and lines are only counted. */
  readonly isFull: boolean
  /** Counts lines that were not kept. */
  skip(lines: number, bytes: number): void
}

/**
 * The same stream under the budget of all. It must be made when the process starts: Bun reads the output of a process
 * without bound until somebody asks for it, and the process waits only from then on.
 */
export function paced(source: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }))
      if (done || !value) return controller.close()
      await budget.take(value.byteLength / COUNTING)
      controller.enqueue(value)
    },
    cancel: reason => reader.cancel(reason).catch(() => {}),
  })
}

export interface LineReader {
  mask(): RedactedStream
  /** Whether lines may be only counted by now. */
  isFull(): boolean
  line(text: string): void
  /** Told of what was only counted, before the last lines. */
  missed(lines: number, bytes: number): void
  /** Gets at least the first `head` characters of the masked text. */
  text(masked: string): void
  head: number
}

export interface LineReading {
  /** Resolves when the last line was passed on. */
  done: Promise<void>
  /** The processes that should write have ended: what is still in the pipe is read. */
  drain(): void
  /** Nothing more is read, and what was not cut yet is only counted. */
  stop(): void
}

/** Reads the lines of a stream that `paced` made. */
export function readLines(stream: ReadableStream<Uint8Array>, to: LineReader): LineReading {
  const lines = new Lines(to)
  const reader = stream.getReader()
  let left = Number.POSITIVE_INFINITY
  let isReading = true
  let isOver = false
  let idle: Limit | undefined
  const cancel = () => void reader.cancel().catch(() => {})
  const watch = () => {
    if (left === Number.POSITIVE_INFINITY || isOver) return
    idle?.end()
    idle = new Limit(DRAIN_MS, () => isReading && cancel())
  }
  const read = async () => {
    while (left > 0) {
      isReading = true
      watch()
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }))
      isReading = false
      if (done || !value) break
      await lines.push(value)
      left -= value.byteLength
      letGo(value)
    }
    isOver = true
    idle?.end()
    cancel()
    await lines.end()
  }
  const done = read()
  // Nobody waits for it before the process has ended.
  done.catch(() => {})
  return {
    done,
    drain() {
      left = Math.min(left, PIPE_BYTES)
      watch()
    },
    stop() {
      lines.stop()
      cancel()
    },
  }
}

/** Frees what was read, which would otherwise wait for the garbage collector, by hundreds of megabytes. */
function letGo({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}

/** Masks bytes before it cuts them into lines, so that no secret is cut in two by a line break or a limit. */
class Lines {
  readonly #to: LineReader
  readonly #counted = new Counted()
  #decoder = new TextDecoder()
  #mask: RedactedStream
  /** The begin of a line whose end has not come, and its length. */
  #rest: string[] = []
  #length = 0
  /** How much of the text was passed on. */
  #passedOn = 0
  #isStopped = false

  constructor(to: LineReader) {
    this.#to = to
    this.#mask = to.mask()
  }

  /** Takes what was read. */
  async push(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.byteLength; ) {
      if (this.#isOnlyCounted) return this.#counted.push(chunk.subarray(at))
      const { end, lines } = pieceOf(chunk, at)
      const turn = budget.take(workOf(end - at, lines))
      if (turn) await turn
      this.#cut(chunk.subarray(at, end))
      at = end
    }
  }

  get #isOnlyCounted(): boolean {
    return this.#isStopped || this.#counted.bytes > 0 || (this.#to.isFull() && this.#passedOn >= this.#to.head)
  }

  stop(): void {
    this.#isStopped = true
  }

  /** Passes on what was held back. */
  async end(): Promise<void> {
    if (this.#counted.bytes > 0) {
      const { lead, kept, lines, bytes } = this.#counted.end()
      if (this.#counted.isCut) this.#beginAgain()
      // This is masked too, because a secret may begin in it, and no text of it is passed on.
      for (const { piece } of piecesOf(lead)) {
        await budget.take(piece.byteLength)
        this.#mask.push(piece)
      }
      if (bytes > 0) {
        this.#rest = []
        this.#length = 0
        this.#to.missed(lines, bytes)
      }
      for (const { piece, lines } of piecesOf(kept)) {
        await budget.take(workOf(piece.byteLength, lines))
        this.#cut(piece)
      }
    }
    this.#split(this.#decoder.decode(this.#mask.end()))
    if (this.#length > 0) this.#line()
  }

  /** What comes now does not continue what was masked. A secret that it begins in ends in what is dropped. */
  #beginAgain(): void {
    this.#mask = this.#to.mask()
    this.#decoder = new TextDecoder()
  }

  #cut(piece: Uint8Array): void {
    this.#split(this.#decoder.decode(this.#mask.push(piece), { stream: true }))
  }

  #split(text: string): void {
    if (this.#passedOn < this.#to.head) this.#to.text(text)
    this.#passedOn += text.length
    let from = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
      this.#add(text.slice(from, end))
      this.#line()
      from = end + 1
    }
    this.#add(text.slice(from))
  }

  /** Adds to the line that has begun, without copying what it has already. */
  #add(text: string): void {
    let from = 0
    while (text.length - from > LINE_MOST - this.#length) {
      const end = from + LINE_MOST - this.#length
      // The two halves of a character stay together.
      const whole = isHighHalf(text.charCodeAt(end - 1)) ? end - 1 : end
      this.#rest.push(text.slice(from, whole))
      this.#line()
      from = whole
    }
    if (from === text.length) return
    this.#rest.push(from === 0 ? text : text.slice(from))
    this.#length += text.length - from
  }

  #line(): void {
    const text = this.#rest.length === 1 ? this.#rest[0]! : this.#rest.join('')
    this.#rest = []
    this.#length = 0
    this.#to.line(text.endsWith('\r') ? text.slice(0, -1) : text)
  }
}

const isHighHalf = (code: number): boolean => code >= 0xd800 && code <= 0xdbff

/** Output that is only counted, with the end of it in a ring. */
class Counted {
  bytes = 0
  #lines = 0
  #ring: Uint8Array | undefined

  /** Whether its begin is lost. */
  get isCut(): boolean {
    return this.bytes > LEAD_BYTES + KEPT_BYTES
  }

  push(chunk: Uint8Array): void {
    this.#ring ??= new Uint8Array(LEAD_BYTES + KEPT_BYTES)
    const size = this.#ring.byteLength
    this.#lines += linesIn(chunk)
    const last = chunk.subarray(-size)
    const at = (this.bytes + chunk.byteLength - last.byteLength) % size
    const fits = Math.min(last.byteLength, size - at)
    this.#ring.set(last.subarray(0, fits), at)
    this.#ring.set(last.subarray(fits), 0)
    this.bytes += chunk.byteLength
  }

  /** The lines to keep, what is remembered before them, and how much is not kept. */
  end() {
    const ring = this.#ring!
    const at = this.bytes % ring.byteLength
    const all = this.isCut ? Buffer.concat([ring.subarray(at), ring.subarray(0, at)]) : ring.subarray(0, this.bytes)
    const start = keptFrom(all)
    const kept = all.subarray(start)
    const lines = this.#lines - linesIn(kept)
    return { lead: all.subarray(0, start), kept, lines, bytes: this.bytes - kept.byteLength }
  }
}

/** Where the last lines begin of which there is room for a copy, or the end of one that is longer than that. */
function keptFrom(all: Uint8Array): number {
  let left = KEPT_BYTES
  let begin = all.byteLength
  for (let at = all.byteLength - 1; at >= 0; at--) {
    left -= all[at] === NEW_LINE ? 1 + LEAST_LINE_BYTES : 1
    if (left < 0) return begin === all.byteLength ? at + 1 : begin
    if (at === 0) return 0
    if (all[at - 1] === NEW_LINE) begin = at
  }
  return begin
}

function linesIn(bytes: Uint8Array): number {
  let count = 0
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === NEW_LINE) count++
  return count
}

const workOf = (bytes: number, lines: number): number => bytes + lines * LINE_WORK

/** The end of what may be masked at once, from `at`, and its number of lines. */
function pieceOf(chunk: Uint8Array, at: number): { end: number; lines: number } {
  const most = Math.min(chunk.byteLength, at + PIECE_BYTES)
  let lines = 0
  for (let end = at; end < most; end++) {
    if (chunk[end] === NEW_LINE && ++lines === PIECE_LINES) return { end: end + 1, lines }
  }
  return { end: most, lines }
}

function* piecesOf(bytes: Uint8Array): Generator<{ piece: Uint8Array; lines: number }> {
  for (let at = 0; at < bytes.byteLength; ) {
    const { end, lines } = pieceOf(bytes, at)
    yield { piece: bytes.subarray(at, end), lines }
    at = end
  }
}
