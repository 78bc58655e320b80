// What a log does not store: how much of it there was, by phase, and the last lines.

import { sizeText } from '../../size.ts'
import type { LogLine } from '../core/core.ts'

export type SaidLine = Omit<LogLine, 'seq'>

/** Of the last lines, in bytes of their texts and in lines. */
const KEPT_BYTES = 256 * 1024
const KEPT_LINES = 4_096

interface Count {
  lines: number
  bytes: number
}

/** Lines that are not stored, by phase. */
export class Missing {
  readonly #counts = new Map<string | null, Count>()

  has(phase: string | null): boolean {
    return this.#counts.has(phase)
  }

  add(phase: string | null, lines: number, bytes: number): void {
    const count = this.#counts.get(phase) ?? { lines: 0, bytes: 0 }
    this.#counts.set(phase, { lines: count.lines + lines, bytes: count.bytes + bytes })
  }

  /** A line for each phase that lacks some. `why` ends the sentence. */
  *told(at: number, why: string): Generator<SaidLine> {
    for (const [phase, { lines, bytes }] of this.#counts) {
      if (lines === 0 && bytes === 0) continue
      const text = `${lines} ${lines === 1 ? 'line' : 'lines'} (${sizeText(bytes)}) missing here, ${why}`
      yield { phase, at, stream: 'log', text, fields: { missing_lines: lines, missing_bytes: bytes } }
    }
  }
}

/** The lines of a log that is full. */
export class Overflow {
  readonly missing = new Missing()
  #last: SaidLine[] = []
  /** Where the lines begin in `#last` that are kept, and their size. */
  #from = 0
  #bytes = 0

  add(line: SaidLine): void {
    this.#last.push(line)
    this.#bytes += sizeOf(line)
    while (this.#bytes > KEPT_BYTES || this.#last.length - this.#from > KEPT_LINES) {
      const first = this.#last[this.#from]!
      this.#bytes -= sizeOf(first)
      this.missing.add(first.phase, 1, sizeOf(first))
      this.#from++
    }
    if (this.#from < KEPT_LINES) return
    this.#last = this.#last.slice(this.#from)
    this.#from = 0
  }

  /** The last lines. */
  get last(): readonly SaidLine[] {
    return this.#last.slice(this.#from)
  }
}

const sizeOf = ({ text }: SaidLine): number => Buffer.byteLength(text) + 1
