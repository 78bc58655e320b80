// The only way to stdout and stderr for what people read (the log, lib/log/log.ts, has its own lines). It takes text that
// was cleaned, see lib/text/printable.ts, and JSON in which unseen characters are escaped.

import { lines, type Printable } from './printable.ts'
import { seenJson } from './unseen.ts'

type Lines = Printable | readonly Printable[]

/** Writes the result of a command to stdout. */
export function print(...all: readonly Lines[]): void {
  write(process.stdout, all)
}

/** Writes messages for people to stderr, such as progress, notes and errors. */
export function printMessage(...all: readonly Lines[]): void {
  write(process.stderr, all)
}

/** On one line, for programs that read lines. */
export function printJsonLine(data: unknown): void {
  process.stdout.write(`${seenJson(JSON.stringify(data))}\n`)
}

export function printJson(data: unknown): void {
  process.stdout.write(`${seenJson(JSON.stringify(data, null, 2))}\n`)
}

/** Writes a question to stderr, without a line break: the answer is typed behind it. */
export function ask(question: Printable): void {
  process.stderr.write(question.text)
}

function write(stream: NodeJS.WriteStream, all: readonly Lines[]): void {
  const texts = all.flat().map(({ text }) => text)
  if (texts.length > 0) stream.write(`${texts.join('\n')}\n`)
}

/** Where Commander writes its help, and its errors with the words that somebody typed. */
export const commanderOutput = {
  writeOut: (text: string) => print(lines(text.replace(/\n$/, ''))),
  writeErr: (text: string) => printMessage(lines(text.replace(/\n$/, ''))),
}

/** Some lines on a terminal that are drawn again in the same position. */
export class Picture {
  readonly #stream: NodeJS.WriteStream
  #drawn: readonly Printable[] = []
  readonly #showCursor = () => void this.#stream.write('\x1b[?25h')

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
    stream.write('\x1b[?25l')
    process.on('exit', this.#showCursor)
  }

  draw(lines: readonly Printable[]): void {
    const { columns = 80, rows = 24 } = this.#stream
    // A window that became narrower wraps what is in it. The cursor is then further below the first line.
    const heights = this.#drawn.map(({ width }) => Math.ceil(width / columns) || 1)
    const above = Math.min(
      rows - 1,
      heights.reduce((sum, height) => sum + height, 0),
    )
    const up = above > 0 ? `\r\x1b[${above}A` : ''
    // Each line is erased before it is written, and only what is below the last one by ESC[0J: from the top row of a
    // window, tmux would move the whole window into its history.
    const text = lines.map(line => `\x1b[2K${line.text}\n`).join('')
    // One synchronized update, so that a half-drawn picture is never visible.
    this.#stream.write(`\x1b[?2026h${up}${text}\x1b[0J\x1b[?2026l`)
    this.#drawn = lines
  }

  /** The lines that were drawn last stay. */
  close(): void {
    this.#showCursor()
    process.off('exit', this.#showCursor)
  }
}
