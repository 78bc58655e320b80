// Prints a tree as GitHub Flavored Markdown that is read back as the same tree. Each character is looked at a constant
// number of times and each line is written once, whatever the text is and however it is nested. What Markdown cannot
// say is left out: a mark inside of the same mark, a link inside of a link.

import type { ListItem, Table } from 'mdast'
import type { Block, Inline } from './markdown-tree.ts'

type List = Extract<Block, { type: 'list' }>

/** Prints a tree. The text ends with a newline unless it is empty. */
export function printMarkdown(blocks: readonly Block[]): string {
  const text = printBlocks(blocks, '', '')
  return text && `${text}\n`
}

/**
 * Prints blocks. `prefix` begins each line but the first, which the caller has begun. `around`: the bullet of the list
 * whose item begins with these blocks.
 */
function printBlocks(blocks: readonly Block[], prefix: string, around: string, isItem = false): string {
  let written = ''
  let before: Block | undefined
  let bullet = ''
  for (const block of blocks) {
    const isFirst = before === undefined
    // Two lists with the same bullet would be one, and a bullet inside of the same bullet might be a rule.
    if (block.type === 'list') bullet = bulletFor(block, before?.type === 'list' ? bullet : isFirst ? around : '')
    const text = printBlock(block, prefix, bullet, isFirst && isItem)
    if (!text && block.type !== 'list') continue
    if (before) written += isItem && staysBeside(before, block) ? `\n${prefix}` : `\n${prefix.trimEnd()}\n${prefix}`
    written += text
    before = block
  }
  return written
}

/** Whether a block of an item may begin in the line below a paragraph without being taken for a part of it. */
function staysBeside(before: Block, block: Block): boolean {
  if (before.type !== 'paragraph') return false
  if (block.type !== 'list') return ['blockquote', 'code', 'heading'].includes(block.type)
  const first = block.children[0]?.children[0]
  return (!block.ordered || startOf(block) === 1) && first?.type === 'paragraph' && first.children.length > 0
}

function printBlock(block: Block, prefix: string, bullet: string, beginsItem: boolean): string {
  switch (block.type) {
    case 'paragraph':
      return printInline(block.children, { prefix, place: 'paragraph' })
    case 'heading': {
      const text = printInline(block.children, { prefix, place: 'heading' }).replace(/#$/, '\\#')
      return `${'#'.repeat(block.depth)}${text && ' '}${text}`
    }
    case 'code':
      return printCode(block.value, block.lang ?? '', prefix)
    case 'blockquote': {
      const inside = printBlocks(block.children, `${prefix}> `, '')
      return `>${inside && ' '}${inside}`
    }
    case 'list':
      return block.children
        .map((item, at) => printItem(item, markerOf(block, bullet, at), bullet, prefix))
        .join(`\n${prefix}`)
    case 'table':
      return printTable(block, prefix)
    case 'thematicBreak':
      return beginsItem ? '___' : '---'
    default:
      return ''
  }
}

function printCode(value: string, lang: string, prefix: string): string {
  const fence = '`'.repeat(Math.max(3, longestRun(value) + 1))
  const word = /^[^\s`]*/.exec(lang.trim())![0].replace(/[\\&]/g, '\\$&')
  const lines = value.replace(/\r\n?/g, '\n').split('\n')
  const body = value ? lines.map(line => `\n${line ? prefix : prefix.trimEnd()}${line}`).join('') : ''
  return `${fence}${word}${body}\n${prefix}${fence}`
}

/** The number of backticks in the longest run of them. */
function longestRun(text: string): number {
  let most = 0
  for (const [run] of text.matchAll(/`+/g)) most = Math.max(most, run.length)
  return most
}

const startOf = ({ start }: List): number => Math.min(Math.max(Math.trunc(start ?? 1) || 0, 0), 999_999_999)

function bulletFor({ ordered }: List, taken: string): string {
  const [usual, other] = ordered ? ['.', ')'] : ['-', '*']
  return (taken === usual ? other : usual)!
}

const markerOf = (list: List, bullet: string, at: number): string =>
  list.ordered ? `${Math.min(startOf(list) + at, 999_999_999)}${bullet}` : bullet

function printItem({ children, checked }: ListItem, marker: string, bullet: string, prefix: string): string {
  const inside = `${prefix}${' '.repeat(marker.length + 1)}`
  const box = typeof checked === 'boolean' ? (checked ? '[x]' : '[ ]') : ''
  const text = printBlocks(children, inside, box ? '' : bullet, true)
  if (!box) return `${marker}${text && ' '}${text}`
  const isLine = children[0]?.type === 'paragraph' && children[0].children.length > 0
  return `${marker} ${box}${text && (isLine ? ' ' : `\n\n${inside}`)}${text}`
}

/** A table. A row may be shorter than the first, but what is beyond the first would be lost. */
function printTable({ children: rows, align = [] }: Table, prefix: string): string {
  const width = rows.reduce((most, row) => Math.max(most, row.children.length), 1)
  const lines = rows.map(({ children }, at) => {
    const cells = children.map(cell => {
      const text = printInline(cell.children, { prefix, place: 'cell' })
      return text && ` ${text}`
    })
    return `|${cells.map(cell => `${cell} |`).join('')}${at === 0 ? ' |'.repeat(width - cells.length) : ''}`
  })
  const sides = Array.from({ length: width }, (_, at) => SIDES[align?.[at] ?? 'none'])
  lines.splice(1, 0, `| ${sides.join(' | ')} |`)
  return lines.join(`\n${prefix}`)
}

const SIDES = { none: '-', left: ':-', center: ':-:', right: '-:' } as const

interface Where {
  prefix: string
  place: 'paragraph' | 'heading' | 'cell'
  isLink?: boolean
}

const printInline = (nodes: readonly Inline[], where: Where): string =>
  nodes.length === 0 ? '' : new Phrase(where, '\n').print(merged(nodes, NONE, []), '')

const NONE: ReadonlySet<string> = new Set()

/**
 * Nodes without marks and links inside of the same, so that they are at most four deep, and with neighbours as one where
 * Markdown has too few characters for marks to distinguish them.
 */
function merged(nodes: readonly Inline[], open: ReadonlySet<string>, into: Inline[]): Inline[] {
  for (const node of nodes) {
    const last = into.at(-1)
    switch (node.type) {
      case 'text':
      case 'inlineCode':
        if (last?.type === node.type) into[into.length - 1] = { type: node.type, value: last.value + node.value }
        else if (node.value) into.push(node)
        break
      case 'strong':
      case 'emphasis':
      case 'delete':
        if (open.has(node.type)) merged(node.children, open, into)
        else if (last?.type === node.type && (node.type === 'delete' || open.has('strong') || open.has('emphasis')))
          merged(node.children, new Set(open).add(node.type), last.children)
        else into.push({ type: node.type, children: merged(node.children, new Set(open).add(node.type), []) })
        break
      case 'link':
        if (open.has('link')) merged(node.children, open, into)
        else into.push({ ...node, children: merged(node.children, new Set(open).add('link'), []) })
        break
      default:
        into.push(node)
    }
  }
  return into
}

const BLANK = /^\s/
const PUNCTUATION = /^[!-/:-@[-`{-~\p{P}]/u
/** Readers differ about whether symbols are punctuation. */
const SYMBOL = /^[\p{P}\p{S}]/u
const LETTER = /[\p{L}\p{N}]/u
const reference = (character: string): string => `&#x${character.codePointAt(0)!.toString(16).toUpperCase()};`
const lastOf = (text: string): string => /(?:[\ud800-\udbff][\udc00-\udfff]|[\s\S])$/.exec(text.slice(-2))?.[0] ?? ''

/** The inline content of a block, or of a mark or link inside of it. */
class Phrase {
  readonly #where: Where
  /** What stands before the content: the end of a line, a bracket, or the character of a mark. */
  readonly #before: string
  readonly #parts: string[] = []
  /** The character of a mark that has just ended. */
  #mark = ''
  /** Whether no letter may follow, because then a mark that has just ended would be none. */
  #needsBorder = false

  constructor(where: Where, before: string) {
    this.#where = where
    this.#before = before
  }

  /** `around`: the character of the mark around the nodes. */
  print(nodes: readonly Inline[], around: string): string {
    for (const [at, node] of nodes.entries()) {
      const next = nodes[at + 1]
      const beside = this.#mark || (this.#parts.length === 0 ? around : '')
      switch (node.type) {
        case 'text':
          this.#text(node.value, next)
          break
        case 'strong':
        case 'emphasis':
        case 'delete':
          this.#marked(node, beside === '*' || (next === undefined && around === '*'))
          break
        case 'inlineCode':
          this.#code(node.value)
          break
        case 'break':
          this.#break()
          break
        case 'html':
          this.#put(node.value)
          break
        case 'link':
          this.#put(this.#link(node.url, node.children))
          break
        case 'image': {
          const alt = new Phrase({ ...this.#where, isLink: true }, '[').print([textOf(node.alt)], '')
          this.#put(`![${alt}](${this.#target(node.url)})`)
        }
      }
    }
    return this.#parts.join('')
  }

  #put(text: string): void {
    if (!text) return
    this.#parts.push(text)
    this.#mark = ''
    this.#needsBorder = false
  }

  #last(): string {
    return lastOf(this.#parts.at(-1) ?? this.#before)
  }

  #break(): void {
    const { place, prefix } = this.#where
    if (place !== 'paragraph') return this.#put(place === 'cell' ? '<br>' : ' ')
    this.#put('\\\n')
    this.#parts.push(prefix)
  }

  #isLineStart(): boolean {
    if (this.#where.place !== 'paragraph') return false
    return this.#parts.length === 0 ? this.#before === '\n' : this.#parts.at(-2) === '\\\n'
  }

  #text(value: string, next: Inline | undefined): void {
    const isLineStart = this.#isLineStart()
    let text = value.replace(/[\t\n\v\f\r ]+/g, ' ')
    if (isLineStart) text = text.trimStart()
    let border = ''
    if (text && this.#needsBorder && !BLANK.test(text) && !PUNCTUATION.test(text)) {
      const first = String.fromCodePoint(text.codePointAt(0)!)
      border = reference(first)
      text = text.slice(first.length)
    }
    const escaped = text.replace(/[\\`*~_[\]<&@.:|!]/g, (character, at: number) => {
      const before = text[at - 1] ?? (border ? ';' : this.#last())
      return this.#isPlain(character, before, text[at + 1] ?? '', next) ? character : `\\${character}`
    })
    this.#put(border + (isLineStart ? asParagraph(escaped) : escaped))
  }

  /** Whether a character is only itself there. `after` is empty at the end of the text. */
  #isPlain(character: string, before: string, after: string, next: Inline | undefined): boolean {
    const { place, isLink } = this.#where
    switch (character) {
      case '\\':
        return after !== '' && !/[!-/:-@[-`{-~]/.test(after)
      case '_':
        return LETTER.test(before) && LETTER.test(after)
      case ']':
        return !isLink
      case '<':
        return after !== '' && !/[!/?a-z]/i.test(after)
      case '&':
        return after !== '' && !/[#a-z]/i.test(after)
      case '@':
        return isLink || !/[+\-.\w]/.test(before) || !/[-.\w]/.test(after)
      case '.':
        return isLink || !/w/i.test(before) || !/[-.\w]/.test(after)
      case ':':
        return isLink || !/[ps]/i.test(before) || after !== '/'
      case '|':
        return place !== 'cell'
      case '!':
        return after !== '' || next?.type !== 'link'
      default:
        return false
    }
  }

  #marked(node: Extract<Inline, { type: 'strong' | 'emphasis' | 'delete' }>, isStarTaken: boolean): void {
    const mark = node.type === 'delete' ? '~' : isStarTaken ? '_' : '*'
    const text = new Phrase(this.#where, mark).print(node.children, mark)
    if (BLANK.test(text) || /\s$/.test(text)) return this.#put(text)
    if (!text) return
    const last = this.#last()
    const isLetter = last !== '' && !BLANK.test(last) && !PUNCTUATION.test(last)
    if (isLetter && (mark === '_' || SYMBOL.test(text))) this.#reference(last)
    const run = node.type === 'emphasis' ? mark : mark + mark
    this.#put(`${run}${text}${run}`)
    this.#mark = mark
    this.#needsBorder = mark === '_' || SYMBOL.test(lastOf(text))
  }

  /** Writes the last character, which is one of a text, so that it is taken for punctuation. */
  #reference(last: string): void {
    const text = this.#parts.pop()!.slice(0, -last.length)
    // A backslash that stood before a letter would escape the reference.
    let isEscape = false
    for (let at = text.length - 1; text[at] === '\\'; at--) isEscape = !isEscape
    this.#parts.push(text, isEscape ? '\\' : '', reference(last))
  }

  #code(value: string): void {
    const line = value.replace(/[\r\n]+/g, ' ')
    const isCell = this.#where.place === 'cell'
    // Readers differ about what this is in a table.
    if (isCell && line.includes('\\|')) return this.#text(line, undefined)
    const text = isCell ? line.replaceAll('|', '\\|') : line
    const fence = '`'.repeat(longestRun(text) + 1)
    const isStripped = text.startsWith(' ') && text.endsWith(' ') && text.trim() !== ''
    const pad = isStripped || text.startsWith('`') || text.endsWith('`') ? ' ' : ''
    if (text) this.#put(`${fence}${pad}${text}${pad}${fence}`)
  }

  #link(url: string, children: readonly Inline[]): string {
    const [only, ...rest] = children
    const isBare = only?.type === 'text' && rest.length === 0 && [url, url.replace(/^mailto:/, '')].includes(only.value)
    const isAddress = /^[a-z][a-z+.-]+:[^\0- <>\x7f]*$/i.test(url)
    if (isBare && isAddress && !(this.#where.place === 'cell' && url.includes('|'))) return `<${only.value}>`
    const text = new Phrase({ ...this.#where, isLink: true }, '[').print(children, '')
    return `[${text}](${this.#target(url)})`
  }

  #target(url: string): string {
    const clean = url.replace(/[\0-\x1f\x7f]/g, encodeURIComponent)
    const isQuoted = clean === '' || clean.includes(' ')
    const written = clean.replace(isQuoted ? /[<>\\&]/g : /[<>()\\&]/g, (character, at: number) =>
      character === '&' && !/[#a-z]/i.test(clean[at + 1] ?? '') ? character : `\\${character}`,
    )
    const safe = this.#where.place === 'cell' ? written.replaceAll('|', '\\|') : written
    return isQuoted ? `<${safe}>` : safe
  }
}

const textOf = (value: string | null | undefined): Inline => ({ type: 'text', value: value ?? '' })

/** Escapes what would begin another block, or make a heading or table of the line above. */
function asParagraph(line: string): string {
  return line
    .replace(/^(?:[#>=]|[+-](?=[\s:|-]|$)|:(?=-)|\|(?=[\t :-]))/, '\\$&')
    .replace(/^(\d+)([.)])(?=\s|$)/, '$1\\$2')
}
