// Colours of terminals: splits a text with SGR sequences into pieces with class names, and leaves out all other sequences.

interface Piece {
  text: string
  class: string
}

// An SGR sequence is captured; other control sequences and control characters are only matched.
const SEQUENCE =
  /\x1b\[([\d;]*)m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|[\x00-\x08\x0b-\x1f\x7f]/g
const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']

export function pieces(text: string): Piece[] {
  if (!/[\x00-\x08\x0b-\x1f\x7f]/.test(text)) return [{ text, class: '' }]
  const found: Piece[] = []
  let style: { colour?: string; bold?: boolean; dim?: boolean; line?: boolean } = {}
  let from = 0
  const add = (until: number) => {
    if (until === from) return
    const { colour, bold, dim, line } = style
    const names = [colour && `ansi-${colour}`, bold && 'ansi-bold', dim && 'ansi-dim', line && 'ansi-line']
    found.push({ text: text.slice(from, until), class: names.filter(Boolean).join(' ') })
  }
  for (const match of text.matchAll(SEQUENCE)) {
    add(match.index)
    from = match.index + match[0].length
    if (match[1] !== undefined) style = styled(style, match[1].split(';').map(Number))
  }
  add(text.length)
  return found
}

function styled<S extends { colour?: string; bold?: boolean; dim?: boolean; line?: boolean }>(
  before: S,
  codes: number[],
) {
  let style: { colour?: string; bold?: boolean; dim?: boolean; line?: boolean } = { ...before }
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
