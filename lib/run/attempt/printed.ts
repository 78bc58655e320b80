// The end of what the commands of a gate print, which is shown to whoever answers its review, and told in messages.

import type { LogLine } from '../core/core.ts'
import type { Printed } from '../steps/steps.ts'

/** Bytes of what is shown. */
const MOST_BYTES = 16 * 1024

export class PrintedEnd {
  #lines: string[] = []
  #bytes = 0
  #omitted = 0

  /** Takes a line of the log. What cadre itself says there is not printed by a command. */
  add({ stream, text }: Pick<LogLine, 'stream' | 'text'>): void {
    if (stream === 'log') return
    this.#lines.push(text)
    this.#bytes += sizeOf(text)
    // What is far too much is dropped from time to time, so that a flood costs little.
    if (this.#bytes > 4 * MOST_BYTES) this.#cut()
  }

  take(): Printed {
    this.#cut()
    return { output: this.#lines.join('\n'), omitted_bytes: this.#omitted }
  }

  /** Keeps the last lines that fit, and of a last line that does not its end. */
  #cut(): void {
    let first = 0
    while (this.#bytes > MOST_BYTES && first < this.#lines.length - 1) this.#drop(sizeOf(this.#lines[first++]!))
    this.#lines = this.#lines.slice(first)
    const [only] = this.#lines
    if (this.#bytes <= MOST_BYTES || only === undefined) return
    const end = endOf(only, MOST_BYTES)
    this.#drop(this.#bytes - sizeOf(end))
    this.#lines = [end]
  }

  #drop(bytes: number): void {
    this.#bytes -= bytes
    this.#omitted += bytes
  }
}

/** The last lines of what commands printed as a message has them: without what only terminals understand. */
export function tailOf(output: string, lines: number, bytes: number): string {
  const text = Bun.stripANSI(output).replace(/(?![\n\t])\p{Cc}/gu, '')
  const last = text.trimEnd().split('\n').slice(-lines)
  while (last.length > 1 && Buffer.byteLength(last.join('\n')) > bytes) last.shift()
  return endOf(last.join('\n'), bytes)
}

/** The end of a text that fits. A character that does not fit as a whole is left out. */
const endOf = (text: string, bytes: number): string =>
  Buffer.from(text)
    .subarray(-bytes)
    .toString()
    .replace(/^\ufffd+/, '')

const sizeOf = (line: string): number => Buffer.byteLength(line) + 1
