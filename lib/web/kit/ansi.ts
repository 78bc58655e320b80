// Texts of terminals: splits a line with SGR sequences into pieces with class names, lets `\r` and its like move the cursor
// as a terminal does, and leaves out all other sequences.

interface Piece {
  text: string
  class: string
}

// The parameters and the letter of a control sequence are captured, and characters that move the cursor. Other sequences and
// control characters are only matched.
const SEQUENCE =
  /\x1b\[([\d;]*)([mKGCD])|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|([\b\r])|[\x00-\x07\x0b-\x1f\x7f]/g
const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']
/** What lets a line overwrite itself. */
const MOVES = /[\b\r]|\x1b\[\d*[KGD]/
/** The cursor is moved no further to the right than this, or than the end of the text. */
const WIDEST = 500
const TAB = 8

export function pieces(text: string): Piece[] {
  if (!/[\x00-\x08\x0b-\x1f\x7f]/.test(text)) return [{ text, class: '' }]
  return MOVES.test(text) ? overwritten(text) : coloured(text)
}

function coloured(text: string): Piece[] {
  const found: Piece[] = []
  let style: Style = {}
  let from = 0
  const add = (until: number) => {
    if (until > from) found.push({ text: text.slice(from, until), class: classOf(style) })
  }
  for (const match of text.matchAll(SEQUENCE)) {
    const [all, parameters, letter] = match
    add(match.index)
    from = match.index + all.length
    if (letter === 'm') style = styled(style, parameters!)
  }
  add(text.length)
  return found
}

/** What a terminal shows of a text that goes back and writes over itself. */
function overwritten(text: string): Piece[] {
  const screen = new Screen()
  let style: Style = {}
  let name = ''
  let from = 0
  for (const match of text.matchAll(SEQUENCE)) {
    screen.write(text.slice(from, match.index), name)
    from = match.index + match[0].length
    const [, parameters = '', letter, character] = match
    if (letter === 'm') {
      style = styled(style, parameters)
      name = classOf(style)
    } else if (letter) screen.control(letter, parameters === '' ? null : Number.parseInt(parameters, 10))
    else if (character) screen.control(character, null)
  }
  screen.write(text.slice(from), name)
  return screen.pieces()
}

/** The cells of a line, and the cursor in it. */
class Screen {
  readonly #done: Piece[] = []
  #cells: Piece[] = []
  #column = 0

  write(text: string, name: string): void {
    for (const character of text) {
      if (character === '\n') this.#end()
      else if (character === '\t') this.#move(this.#column + TAB - (this.#column % TAB))
      else if (/^[\p{M}\u200d]$/u.test(character) && this.#column > 0) this.#join(character)
      else {
        this.#fill()
        this.#cells[this.#column++] = { text: character, class: name }
      }
    }
  }

  control(letter: string, given: number | null): void {
    if (letter === '\r') this.#column = 0
    else if (letter === '\b') this.#move(this.#column - 1)
    else if (letter === 'G') this.#move((given ?? 1) - 1)
    else if (letter === 'C') this.#move(this.#column + (given ?? 1))
    else if (letter === 'D') this.#move(this.#column - (given ?? 1))
    else if (given === 2) {
      this.#cells = []
      this.#move(this.#column)
    } else if (given !== 1) this.#cells.length = Math.min(this.#cells.length, this.#column)
  }

  #move(column: number): void {
    this.#column = Math.max(0, Math.min(column, Math.max(WIDEST, this.#cells.length)))
  }

  /** A cursor that went to the right leaves blanks behind. */
  #fill(): void {
    while (this.#cells.length < this.#column) this.#cells.push(BLANK)
  }

  /** A mark stands in the cell of the character that it belongs to. */
  #join(mark: string): void {
    const cell = this.#cells[this.#column - 1]
    if (cell) this.#cells[this.#column - 1] = { ...cell, text: cell.text + mark }
  }

  #end(): void {
    this.#cells.push({ text: '\n', class: '' })
    this.#done.push(...this.#cells)
    this.#cells = []
    this.#column = 0
  }

  /** Cells of one class side by side are one piece. */
  pieces(): Piece[] {
    const found: Piece[] = []
    for (const cell of [...this.#done, ...this.#cells]) {
      const last = found.at(-1)
      if (last && last.class === cell.class) last.text += cell.text
      else found.push({ ...cell })
    }
    return found
  }
}

const BLANK: Piece = { text: ' ', class: '' }

interface Style {
  colour?: string
  bold?: boolean
  dim?: boolean
  line?: boolean
}

const classOf = ({ colour, bold, dim, line }: Style): string =>
  [colour && `ansi-${colour}`, bold && 'ansi-bold', dim && 'ansi-dim', line && 'ansi-line'].filter(Boolean).join(' ')

function styled(before: Style, parameters: string): Style {
  const codes = parameters.split(';').map(Number)
  let style: Style = { ...before }
  for (let index = 0; index < codes.length; index++) {
    const code = codes[index]!
    if (code === 0) style = {}
    else if (code === 1) style.bold = true
    else if (code === 2) style.dim = true
    else if (code === 4) style.line = true
    else if (code === 22) style = { ...style, bold: false, dim: false }
    else if (code === 24) style.line = false
    else if (code === 39) delete style.colour
    // 256 and true colours are not shown; their parameters are not codes.
    else if (code === 38 || code === 48) index += codes[index + 1] === 5 ? 2 : 4
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) style.colour = COLOURS[code % 10]!
  }
  return style
}
