// Text that may be shown on a terminal. Only this file makes it, and cleans the text of others: the result is one line
// without controls, marks of direction and unseen characters, and its only escape sequences are our own colours. The
// functions that write to a terminal (lib/text/terminal.ts) take nothing else, so that a name from outside cannot
// command the terminal.

import { oneLine, splitLines } from './one-line.ts'
import { seen } from './unseen.ts'

/** A value that is cleaned when it is shown, unless it is printable already. */
export type Shown = string | number | Printable

let printable: (text: string) => Printable

/** One line of text for a terminal, perhaps with colours. */
export class Printable {
  readonly #text: string

  private constructor(text: string) {
    this.#text = text
  }

  static {
    printable = text => new Printable(text)
  }

  /** With the escape sequences of its colours. */
  get text(): string {
    return this.#text
  }

  /** The width in columns. */
  get width(): number {
    return Bun.stringWidth(this.#text)
  }

  get isEmpty(): boolean {
    return this.#text === ''
  }

  /** Without colours, which the tag would take for those of somebody else. */
  toString(): string {
    return Bun.stripANSI(this.#text)
  }
}

/** The values between our own words are cleaned: line`run ${name} ended`. */
export function line(words: TemplateStringsArray, ...values: readonly Shown[]): Printable {
  return printable(words.reduce((text, word, at) => text + textOf(values[at - 1]!) + word))
}

export const nothing = printable('')

function textOf(value: Shown): string {
  if (value instanceof Printable) return value.text
  const text = String(value)
  return seen((BREAK.test(text) ? oneLine(text) : text).replaceAll('\t', '  '))
}

const BREAK = /[\n\v\f\r\u0085\u2028\u2029]/

/** A text of several lines, each for itself. An empty line stays. */
export function lines(text: string): Printable[] {
  return splitLines(text).map(each => printable(seen(each.replaceAll('\t', '  '))))
}

/** The same with further lines indented, so that none of them looks like a line of ours. */
export function paragraph(text: string): Printable[] {
  return lines(text).map((each, at) => (at === 0 ? each : line`  ${each}`))
}

export function joined(parts: readonly Shown[], between = ''): Printable {
  return printable(parts.map(textOf).join(seen(between)))
}

/** At least `width` columns wide. */
export function pad(cell: Shown, width: number): Printable {
  const text = textOf(cell)
  return printable(text + ' '.repeat(Math.max(0, width - Bun.stringWidth(text))))
}

/** At most `width` columns wide. */
export function clip(cell: Printable, width: number): Printable {
  if (cell.width <= width) return cell
  const cut = Bun.sliceAnsi(cell.text, 0, width - 1)
  // A character of two columns is not cut in the middle.
  return printable(`${Bun.stringWidth(cut) < width ? cut : Bun.sliceAnsi(cell.text, 0, width - 2)}…`)
}

/** As many lines of at most `width` columns as it takes. */
export function wrap(cell: Printable, width: number, { trim = true } = {}): Printable[] {
  return Bun.wrapAnsi(cell.text, width, { hard: true, trim }).split('\n').map(printable)
}

export function trimmed(cell: Printable, side: 'start' | 'end'): Printable {
  return printable(side === 'start' ? cell.text.trimStart() : cell.text.trimEnd())
}

const COLOURS = ['bold', 'dim', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan'] as const
type Colour = (typeof COLOURS)[number]
export type Paint = Readonly<Record<Colour, (text: Shown) => Printable>>

/** Colours for what is written to `stream`; none where it is no terminal or does not want them (https://no-color.org). */
export function createPaint(
  stream: { isTTY?: boolean },
  isColoured: boolean = stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb',
): Paint {
  // Loaded for colours alone, because it brings the inspector of Node with it.
  const { styleText } = isColoured ? process.getBuiltinModule('node:util') : {}
  const of = (colour: Colour) => (text: Shown) =>
    printable(styleText ? styleText(colour, textOf(text), { validateStream: false }) : textOf(text))
  return Object.fromEntries(COLOURS.map(colour => [colour, of(colour)])) as Record<Colour, ReturnType<typeof of>>
}
