// Reads Markdown that anybody may have written. The library needs time that grows with the square of some texts, and calls
// itself for each level of a quote or list. So this reader refuses a text that takes too long and a line or table that is
// too large, and reads deeply nested parts as text.

import { Lexer, type Token, Tokenizer, type Tokens } from 'marked'

const MOST_TEXT = 100_000
/** The time that the library takes for one line grows with the square of its length. */
const MOST_LINE = 5_000
/** Rows are filled up to the width of the table. */
const MOST_CELLS = 20_000
/** At each line of a paragraph the library looks for a table, as far as the paragraph goes. */
const MOST_LINES = 2_000
const MOST_MS = 300
const DEEPEST = 20

/** The tokens of a text, or undefined for one that is shown as it is written. */
export function tokensOf(text: string): Token[] | undefined {
  if (text.length > MOST_TEXT || text.split('\n').some(line => line.length > MOST_LINE)) return undefined
  try {
    return new Lexer({ gfm: true, tokenizer: new Bounded() }).lex(text)
  } catch {
    return undefined
  }
}

/** The lexer asks for a space before each block, and for an escape and a text within a paragraph. */
class Bounded extends Tokenizer {
  readonly #end = performance.now() + MOST_MS
  #depth = 0

  override space(src: string): Tokens.Space | undefined {
    this.#mustBeInTime()
    return super.space(src)
  }

  override escape(src: string): Tokens.Escape | undefined {
    this.#mustBeInTime()
    return super.escape(src)
  }

  override text(src: string): Tokens.Text | undefined {
    this.#mustBeInTime()
    return super.text(src)
  }

  override blockquote(src: string): Tokens.Blockquote | undefined {
    return this.#below(() => super.blockquote(src))
  }

  override list(src: string): Tokens.List | undefined {
    return this.#below(() => super.list(src))
  }

  override table(src: string): Tokens.Table | undefined {
    const rows = src.split(/\n[ \t]*\n/, 1)[0]!.split('\n')
    return rows.length * rows[0]!.split('|').length > MOST_CELLS ? undefined : super.table(src)
  }

  /** The library tries an underline after each character of a paragraph, so it is asked only where there is one. */
  override lheading(src: string): Tokens.Heading | undefined {
    const paragraph = src.split(/\n[ \t]*\n/, 1)[0]!
    return /\n {0,3}(=+|-+)[ \t]*(\n|$)/.test(paragraph) ? super.lheading(src) : undefined
  }

  override paragraph(src: string): Tokens.Paragraph | undefined {
    if (linesOf(src) > MOST_LINES) throw new Error('this paragraph has too many lines')
    return super.paragraph(src)
  }

  #below<T>(read: () => T | undefined): T | undefined {
    if (this.#depth >= DEEPEST) return undefined
    this.#depth++
    try {
      return read()
    } finally {
      this.#depth--
    }
  }

  #mustBeInTime(): void {
    if (performance.now() > this.#end) throw new Error('this text takes too long')
  }
}

/** The lines before the first empty one. */
const linesOf = (src: string): number => src.split(/\n[ \t]*\n/, 1)[0]!.split('\n').length
