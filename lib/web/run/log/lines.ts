// The lines of a log, of one run or of a whole tree, each once and in the order of arrival. They are stored in columns,
// because a million objects would take several times the memory.

import { signal } from '@preact/signals'
import { isError } from '../../../wire/records/failed-line.ts'
import type { LogLine, TreeLines } from '../../../wire/records/run-records.ts'

export type LoggedLine = LogLine & { run_id: string }

/** The list is drawn at most this often. */
const PUBLISH_MS = 32
/** Lines of a block. */
const SIZE = 1_024

/** The run, phase and stream of a line, and the command that printed it, where it is known. */
export type Origin = Pick<LoggedLine, 'run_id' | 'phase' | 'stream'> & { command: string | null }

/** The command is the only field of almost all lines, which would take most of the memory. */
function commandOf(fields: LogLine['fields']): string | null {
  if (!fields || typeof fields.command !== 'string') return null
  return Object.keys(fields).length === 1 ? fields.command : null
}

/** What is searched. The times are epoch milliseconds; `until` itself is no longer of them. */
export interface Wanted {
  phase: string | null
  text: RegExp | null
  from: number
  until: number
}

/** Consecutive lines. A full block joins its texts into one, so that the browser has few objects. */
class Block {
  #open: string[] | null = []
  #text = ''
  readonly #ends = new Uint32Array(SIZE)
  readonly seq = new Uint32Array(SIZE)
  readonly at = new Float64Array(SIZE)
  readonly origin = new Uint32Array(SIZE)
  count = 0

  add({ text, at, seq }: Pick<LogLine, 'text' | 'at' | 'seq'>, origin: number): void {
    const index = this.count++
    this.#open!.push(text)
    this.#ends[index] = (index === 0 ? 0 : this.#ends[index - 1]!) + text.length
    this.seq[index] = seq
    this.at[index] = at
    this.origin[index] = origin
    if (this.count < SIZE) return
    this.#text = this.#open!.join('')
    this.#open = null
  }

  text(index: number): string {
    return this.#open
      ? this.#open[index]!
      : this.#text.slice(index === 0 ? 0 : this.#ends[index - 1], this.#ends[index])
  }
}

export class Lines {
  /** How many lines there are. The count changes soon after lines were added, not with each of them. */
  readonly count = signal(0)
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly #blocks: Block[] = []
  #length = 0
  readonly #origins: Origin[] = []
  readonly #originIndex = new Map<string, number>()
  readonly #fields = new Map<number, NonNullable<LogLine['fields']>>()
  /** The number of the last line, by run. */
  readonly #last = new Map<string, number>()

  last(runId: string): number {
    return this.#last.get(runId) ?? 0
  }

  /** Adds new lines of one run, which are in order. Lines that are here already are ignored. */
  add({ run_id, lines }: TreeLines): void {
    let last = this.last(run_id)
    for (const line of lines) {
      const { seq, phase, stream, fields } = line
      if (seq <= last) continue
      last = seq
      const command = commandOf(fields)
      if (fields && command === null) this.#fields.set(this.#length, fields)
      if (this.#length % SIZE === 0) this.#blocks.push(new Block())
      this.#blocks.at(-1)!.add(line, this.#indexOfOrigin({ run_id, phase, stream, command }))
      this.#length++
    }
    this.#last.set(run_id, last)
    this.#timer ??= setTimeout(() => this.publishCount(), PUBLISH_MS)
  }

  publishCount(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.count.value = this.#length
  }

  #indexOfOrigin(origin: Origin): number {
    const key = `${origin.run_id} ${origin.stream} ${origin.phase} ${origin.command}`
    const known = this.#originIndex.get(key) ?? this.#origins.push(origin) - 1
    this.#originIndex.set(key, known)
    return known
  }

  at(index: number): LoggedLine | undefined {
    if (index >= this.#length) return undefined
    const block = this.#blocks[Math.floor(index / SIZE)]!
    const position = index % SIZE
    const { command, ...origin } = this.#origins[block.origin[position]!]!
    const fields = this.#fields.get(index) ?? (command === null ? undefined : { command })
    const [seq, text, at] = [block.seq[position]!, block.text(position), block.at[position]!]
    return { ...origin, seq, text, at, ...(fields && { fields }) }
  }

  originOf(index: number): Origin {
    return this.#origins[this.#blocks[Math.floor(index / SIZE)]!.origin[index % SIZE]!]!
  }

  textOf(index: number): string {
    return this.#blocks[Math.floor(index / SIZE)]!.text(index % SIZE)
  }

  /** The run of a line, and its number there. */
  placeOf(index: number): { run_id: string; seq: number } {
    const block = this.#blocks[Math.floor(index / SIZE)]!
    const position = index % SIZE
    return { run_id: this.#origins[block.origin[position]!]!.run_id, seq: block.seq[position]! }
  }

  /** Whether it is the line of a run with this number. */
  isNumber(index: number, runId: string, seq: number): boolean {
    const block = this.#blocks[Math.floor(index / SIZE)]!
    const position = index % SIZE
    return block.seq[position] === seq && this.#origins[block.origin[position]!]!.run_id === runId
  }

  /** The lines of a run with these numbers, as far as they are here. */
  ofRun(runId: string, { from, to }: { from: number; to: number }): LoggedLine[] {
    const found: LoggedLine[] = []
    for (let index = 0; index < this.#length && found.length <= to - from; index++) {
      const { run_id, seq } = this.placeOf(index)
      if (run_id === runId && seq >= from && seq <= to) found.push(this.at(index)!)
    }
    return found
  }

  /** Whether the line has the error of a phase: of this one, if it is given. */
  isError(index: number, of?: { run_id?: string | undefined; phase?: string | undefined }): boolean {
    const block = this.#blocks[Math.floor(index / SIZE)]!
    const position = index % SIZE
    const { run_id, phase, stream } = this.#origins[block.origin[position]!]!
    if (stream !== 'log' || (of && (of.run_id !== run_id || of.phase !== phase))) return false
    return isError({ stream, text: block.text(position) })
  }

  /** Whether a line is of this phase and time, and has a text that fits. Null means any phase or any text. */
  fits(index: number, { phase, text, from, until }: Wanted): boolean {
    const block = this.#blocks[Math.floor(index / SIZE)]!
    const position = index % SIZE
    const at = block.at[position]!
    const isOf = phase === null || this.#origins[block.origin[position]!]!.phase === phase
    return isOf && at >= from && at < until && (text === null || text.test(block.text(position)))
  }
}
