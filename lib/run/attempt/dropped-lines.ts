// The lines that a log does not store: how many there were, by phase, and the last of them.

import { sizeText } from '../../size.ts'
import type { LogLine } from '../core/core.ts'

export type UnnumberedLine = Omit<LogLine, 'seq'>

/** At most so many bytes of text and lines are kept as the last ones. */
const KEPT_BYTES = 256 * 1024
const KEPT_LINES = 4_096

interface Count {
  lines: number
  bytes: number
}

/** Counts lines that are not stored, by phase. */
export class LineCounts {
  readonly #counts = new Map<string | null, Count>()

  has(phase: string | null): boolean {
    return this.#counts.has(phase)
  }

  add(phase: string | null, lines: number, bytes: number): void {
    const count = this.#counts.get(phase) ?? { lines: 0, bytes: 0 }
    this.#counts.set(phase, { lines: count.lines + lines, bytes: count.bytes + bytes })
  }

  /** One line for each phase of which lines are missing. `why` ends its sentence. */
  *report(at: number, why: string): Generator<UnnumberedLine> {
    for (const [phase, { lines, bytes }] of this.#counts) {
      if (lines === 0 && bytes === 0) continue
      const text = `${lines} ${lines === 1 ? 'line' : 'lines'} (${sizeText(bytes)}) missing here, ${why}`
      yield { phase, at, stream: 'log', text, fields: { missing_lines: lines, missing_bytes: bytes } }
    }
  }
}

/** The lines that come after a log is full. */
export class DroppedLines {
  readonly counts = new LineCounts()
  #last: UnnumberedLine[] = []
  /** The index in `#last` of the first line that is kept, and the size of all lines from there. */
  #from = 0
  #bytes = 0

  add(line: UnnumberedLine): void {
    this.#last.push(line)
    this.#bytes += sizeOf(line)
    while (this.#bytes > KEPT_BYTES || this.#last.length - this.#from > KEPT_LINES) {
      const first = this.#last[this.#from]!
      this.#bytes -= sizeOf(first)
      this.counts.add(first.phase, 1, sizeOf(first))
      this.#from++
    }
    if (this.#from < KEPT_LINES) return
    this.#last = this.#last.slice(this.#from)
    this.#from = 0
  }

  /** The last lines. */
  get last(): readonly UnnumberedLine[] {
    return this.#last.slice(this.#from)
  }
}

const sizeOf = ({ text }: UnnumberedLine): number => Buffer.byteLength(text) + 1
