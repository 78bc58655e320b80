// Writes the tokens of a YAML file again, each as it is and in its order, with other white space between them. So no comment is
// lost, and no value is written anew: only where a token stands is decided here.

import { type CST, Parser } from 'yaml'
import { namesFirst } from './names-first.ts'
import { type Item, isBetween, isBlock, isFull, leavesOf, type Token } from './tokens.ts'

/** Flow collections that are longer are written over several lines. */
const WIDTH = 120

/** Where a token is written. */
interface Place {
  /** What stands before it in its line, or that it begins a line. */
  join: '' | ' ' | 'line'
  /** Of its line, if it begins one. */
  indent: number
  /** That of the comments before it, where it is another. */
  around?: number
  /** It begins an item of a block, which comments may stand after or before. */
  isItem?: boolean
}

/** The column of a block collection in the file, and that in which it is written. */
interface Level {
  column: number
  indent: number
}

interface Comment {
  text: string
  column: number
  /** It stands behind something in its line. */
  isBehind: boolean
  isApart: boolean
}

/** `text` has lines that end with a line feed, and `readYaml` takes it. */
export function layOut(text: string): string {
  const layout = new Layout(text)
  for (const token of new Parser().parse(text)) {
    namesFirst(token, text)
    layout.write(token)
  }
  return layout.end()
}

class Layout {
  readonly #text: string
  #out = ''
  #comments: Comment[] = []
  /** Line breaks since the last token or comment. */
  #breaks = 0
  /** The block collections around the next token, and those around the last one. */
  #levels: readonly Level[] = []
  #left: readonly Level[] = []

  constructor(text: string) {
    this.#text = text
  }

  write(token: Token): void {
    if (token.type === 'document') {
      let place: Place = { join: 'line', indent: 0, isItem: true }
      for (const each of token.start) {
        if (isBetween(each)) this.#skip(each)
        else this.#put(sourceOf(each), each.type === 'doc-start' ? { join: 'line', indent: 0 } : place)
        if (each.type === 'anchor' || each.type === 'tag') place = { join: ' ', indent: 0 }
      }
      if (token.value) this.#value(token.value, isBlock(token.value) ? { ...place, join: 'line' } : place)
      for (const each of token.end ?? []) this.#skip(each)
    } else if (isBetween(token)) this.#skip(token)
    else {
      this.#put(trimmed(sourceOf(token)), { join: 'line', indent: 0, isItem: true })
      if ('end' in token) for (const each of token.end ?? []) this.#skip(each)
    }
  }

  end(): string {
    this.#flush({ join: 'line', indent: 0, isItem: true })
    return `${this.#out}\n`
  }

  #skip(token: Token): void {
    if (token.type === 'newline') this.#breaks++
    if (token.type !== 'comment') return
    const { source, offset } = token
    const isBehind = this.#breaks === 0 && this.#comments.length === 0 && this.#out !== ''
    const column = this.#column(offset)
    this.#comments.push({ text: trimmed(source), column, isBehind, isApart: this.#breaks > 1 })
    this.#breaks = 0
  }

  #column = (offset: number): number => offset - (this.#text.lastIndexOf('\n', offset - 1) + 1)

  /** Writes the comments before a token. Returns whether it must begin a line. */
  #flush({ join, indent, around = indent, isItem }: Place): boolean {
    const comments = this.#comments
    for (const { text, column, isBehind, isApart } of comments) {
      if (isBehind) this.#out += ` ${text}`
      else this.#line(isItem ? this.#indentAt(column, indent) : around, isApart, text)
    }
    this.#comments = []
    return comments.length > 0 || join === 'line'
  }

  #line(indent: number, isApart: boolean, text: string): void {
    if (this.#out !== '') this.#out += isApart ? '\n\n' : '\n'
    this.#out += ' '.repeat(indent) + text
  }

  /** A comment after a block belongs to the one in whose column it stands; between a field and its block, to the block. */
  #indentAt(column: number, indent: number): number {
    const left = this.#left
    const from = Math.max(0, this.#levels.length - 1)
    if (this.#levels.length > left.length) return indent
    const most = Math.max(...left.slice(from).map(each => (each.column <= column ? each.column : -1)))
    return left.slice(from).find(each => each.column === most)?.indent ?? indent
  }

  #put(text: string, place: Place): void {
    if (this.#flush(place)) this.#line(place.indent, this.#breaks > 1, text)
    else this.#out += place.join + text
    this.#breaks = 0
    this.#left = this.#levels
  }

  /** A comma or a colon directly behind what is written, before its comments. */
  #follow(text: string): void {
    this.#out += text
  }

  #value(token: Token, place: Place): void {
    if (isBlock(token)) this.#block(token, place)
    else if (token.type === 'flow-collection') this.#flow(token, place)
    else if (token.type === 'block-scalar') this.#blockText(token, place)
    else {
      this.#put(reindented(sourceOf(token), place.indent || 2), place)
      for (const each of ('end' in token && token.end) || []) this.#skip(each)
    }
  }

  #block(token: CST.BlockMap | CST.BlockSequence, place: Place): void {
    const { indent } = place
    const outer = this.#levels
    this.#levels = [...outer, { column: this.#column(firstOf(token)), indent }]
    for (const [at, item] of token.items.entries()) {
      this.#item(item, at === 0 ? { ...place, isItem: true } : { join: 'line', indent, isItem: true }, indent + 2)
    }
    this.#levels = outer
  }

  /** `inside` is the indentation of what is in it. */
  #item({ start, key, sep = [], value }: Item, place: Place, inside: number): void {
    const level = this.#levels.at(-1)!
    const after: Place = { join: ' ', indent: inside }
    const isExplicit = start.some(({ type }) => type === 'explicit-key-ind')
    let next = place
    let isMarked = false
    const write = (each: Token) => {
      if (isBetween(each)) return this.#skip(each)
      if (each.type === 'map-value-ind' && !isExplicit && next === after) {
        this.#follow(key?.type === 'alias' ? ' :' : ':')
        this.#breaks = 0
      } else this.#put(sourceOf(each), each.type === 'map-value-ind' && isExplicit ? { ...place, join: 'line' } : next)
      isMarked ||= each.type === 'anchor' || each.type === 'tag'
      next = after
    }
    for (const each of start) write(each)
    if (key) {
      this.#value(key, next)
      next = after
    }
    isMarked &&= sep.length === 0
    for (const each of sep) write(each)
    if (value) {
      const isBelow = isBlock(value)
        ? sep.length > 0 || isMarked
        : value.type === 'flow-collection' && sep.length > 0 && lineOf(value) === null
      this.#value(value, isBelow ? { join: 'line', indent: inside, isItem: isBlock(value) } : next)
    }
    // What is indented after a field without a value is about that field.
    else if (next === after) this.#left = [...this.#levels, { column: level.column + 1, indent: inside }]
  }

  #blockText({ props, source, indent: parent }: CST.BlockScalar, place: Place): void {
    const [header = ''] = props.filter(({ type }) => type === 'block-scalar-header').map(sourceOf)
    const comment = props.find(({ type }) => type === 'comment')
    for (const each of props) if (isBetween(each) && each !== comment && each.type !== 'newline') this.#skip(each)
    const [given] = /\d/.exec(header) ?? []
    const lines = source.split('\n')
    const first = lines.find(line => /[^ ]/.test(line))
    const ofFirst = first === undefined ? Infinity : first.search(/[^ ]/)
    const indent = given && first !== undefined ? Math.max(parent, 0) + Number(given) : ofFirst
    const kept = lines.map(line => line.slice(Math.min(indent, line.length)))
    // What is blank at the very end, without a line break, is no line.
    if (kept.at(-1) === '' && (kept.length > 1 || source === '')) kept.pop()
    const last = kept.findLastIndex(line => line !== '')
    const isKept = header.includes('+')
    const shown = isKept ? kept : kept.slice(0, last + 1)
    const head = header.replace(/\d/, '2') + (comment ? ` ${trimmed(sourceOf(comment))}` : '')
    const pad = ' '.repeat(place.indent || 2)
    this.#put([head, ...shown.map(line => (line === '' ? '' : pad + line))].join('\n'), place)
    this.#breaks = !isKept && last < kept.length - 1 ? 2 : 1
  }

  #flow(token: CST.FlowCollection, place: Place): void {
    const line = lineOf(token)
    const { start, items, end } = token
    if (line !== null) this.#put(line, place)
    else {
      const inside = place.indent + 2
      this.#put(sourceOf(start), place)
      for (const [at, item] of items.entries()) {
        if (at > 0 && isFull(item)) this.#follow(',')
        this.#flowItem(item, inside)
      }
      this.#breaks = Math.min(this.#breaks, 1)
      this.#put(sourceOf(end[0]!), { join: 'line', indent: place.indent, around: inside })
    }
    for (const each of end.slice(1)) this.#skip(each)
  }

  #flowItem({ start, key, sep = [], value }: Item, indent: number): void {
    let next: Place = { join: 'line', indent }
    const after: Place = { join: ' ', indent }
    const write = (each: Token) => {
      if (isBetween(each)) this.#skip(each)
      else if (each.type !== 'comma') {
        if (each.type === 'map-value-ind' && next === after) this.#follow(key?.type === 'alias' ? ' :' : ':')
        else this.#put(sourceOf(each), next)
        next = after
      }
    }
    for (const each of start) write(each)
    if (key) {
      this.#value(key, next)
      next = after
    }
    for (const each of sep) write(each)
    if (value) this.#value(value, next)
  }
}

const sourceOf = (token: Token): string => ('source' in token ? token.source : '')

/** Only spaces and tabs are white space to YAML. */
const trimmed = (text: string): string => text.replace(/[ \t]+$/, '')

/** Where the first item of a block begins. */
function firstOf({ items, offset }: CST.BlockMap | CST.BlockSequence): number {
  const [{ start, key, sep }] = items as [Item]
  return (start.find(each => !isBetween(each)) ?? key ?? sep?.[0])?.offset ?? offset
}

/** The text of a scalar, whose further lines are indented so far. A blank that a backslash escapes stays. */
function reindented(source: string, indent: number): string {
  const lines = source.split('\n')
  return lines
    .map((line, at) => {
      const ended = at === lines.length - 1 ? line : line.replace(/(?<!\\)[ \t]+$|(?<=\\[ \t])[ \t]+$/, '')
      const text = at === 0 ? ended : ended.replace(/^[ \t]+/, '')
      return at === 0 || text === '' ? text : ' '.repeat(indent) + text
    })
    .join('\n')
}

/** A collection in brackets in one line; null when comments or its length ask for several. */
function lineOf(token: CST.FlowCollection): string | null {
  const [last] = [...leavesOf(token)].filter(({ type }) => type === 'flow-map-end' || type === 'flow-seq-end').slice(-1)
  for (const leaf of leavesOf(token)) {
    if (leaf === last) break
    if (leaf.type === 'comment' || (leaf.type !== 'newline' && sourceOf(leaf).includes('\n'))) return null
  }
  const line = inLine(token)
  return line.length > WIDTH ? null : line
}

function inLine({ start, items, end }: CST.FlowCollection): string {
  const inside = items.filter(isFull).map(itemInLine).join(', ')
  const pad = start.type === 'flow-map-start' && inside !== '' ? ' ' : ''
  return sourceOf(start) + pad + inside + pad + sourceOf(end[0]!)
}

function itemInLine({ start, key, sep = [], value }: Item): string {
  const inline = (token: Token) => (token.type === 'flow-collection' ? inLine(token) : sourceOf(token))
  const marks = (tokens: readonly Token[]) =>
    tokens.filter(each => !isBetween(each) && each.type !== 'comma' && each.type !== 'map-value-ind').map(sourceOf)
  const colon = sep.some(({ type }) => type === 'map-value-ind') ? (key?.type === 'alias' ? ' :' : ':') : ''
  const before = [...marks(start), ...(key ? [inline(key)] : [])].join(' ') + colon
  return [before, ...marks(sep), ...(value ? [inline(value)] : [])].filter(each => each !== '').join(' ')
}
