// Where the cursor stands in a text that is being typed. The word at the cursor is replaced by a mark and the text is read
// again, because `age` on a line of its own belongs to the value above it, and `age:` is a field.

import { type Node, readBroken } from '../yaml/yaml.ts'
import { placesIn, type Range } from './place.ts'
import type { Path } from './schema-fields.ts'

/** Private use: no file has it. */
const MARK = '\uE000'

/** How far before the cursor a template may begin. */
const LONGEST_TEMPLATE = 2_000

/** The word at the cursor, which is what a suggestion replaces. */
export interface Cursor extends Range {
  /** The file with a mark in place of the word. */
  root: Node
  /** Of a key the path of its mapping, of a value its own. */
  path: Path
  part: 'key' | 'value'
  /** The word up to the cursor. */
  typed: string
  /** Whether a colon stands after the word already. */
  hasColon: boolean
  /** What of an expression stands before the cursor; null outside of expressions. */
  expression: string | null
}

/** Null where nothing can be suggested, such as in a comment, or in a text that cannot be read at all. */
export function cursorAt(text: string, offset: number): Cursor | null {
  const begin = text.lastIndexOf('\n', offset - 1) + 1
  const end = text.indexOf('\n', offset) === -1 ? text.length : text.indexOf('\n', offset)
  const before = text.slice(begin, offset)
  const after = text.slice(offset, end)
  const open = templateBefore(text, offset)
  const typed = /[^\s,[\]{}"'#:]*$/.exec(before)![0]
  const word = { from: offset - typed.length, to: offset + /^[^\s,[\]{}"'#:]*/.exec(after)![0].length }
  const isKeyLine = open === null && /^\s*(?:- +)*$/.test(text.slice(begin, word.from))
  const hasColon = /^\s*:(?:\s|$)/.test(text.slice(word.to, end))
  const replaced = open === null ? word : { from: open, to: offset + closeAfter(after) }
  const place = markedPlace(patches(text, replaced, end, isKeyLine && !hasColon ? ':' : ''), { from: begin, to: end })
  if (!place || (open === null && isComment(before))) return null
  const expression = open === null ? bareExpression(text, place, offset) : text.slice(open + 2, offset)
  const { root, path, part } = place
  return { ...word, root, path, part, typed, hasColon, expression }
}

/** Texts with the mark in place of the word: as it stands, with its line completed, and without what follows. */
function* patches(text: string, { from, to }: Range, lineEnd: number, colon: string): Generator<string> {
  const line = text.slice(text.lastIndexOf('\n', from - 1) + 1, from)
  const head = text.slice(0, from) + MARK
  const asItStands = head + colon + text.slice(to)
  const closed = head + (colon || closersOf(line))
  const completed = closed + text.slice(lineEnd)
  // Unless it goes on in the next line, a line with an open bracket or quote would take what follows into it.
  const isOpen = closersOf(line + text.slice(to, lineEnd)) !== '' && indentOf(text.slice(lineEnd + 1)) <= indentOf(line)
  yield* isOpen ? [completed, asItStands] : [asItStands, completed]
  yield closed
}

const indentOf = (text: string): number => /^ */.exec(text)![0].length

interface Marked {
  root: Node
  path: Path
  part: 'key' | 'value'
  /** Where the marked value begins. */
  offset: number
}

/** Where the mark stands in the first text in which it does not swallow what follows its line. */
function markedPlace(texts: Iterable<string>, line: Range): Marked | null {
  let swallowed: Marked | null = null
  for (const text of texts) {
    const root = readBroken(text)
    if (!root) continue
    for (const found of placesIn(text, root)) {
      const name = String(found.path.at(-1) ?? '')
      if (found.part === 'key' && name === MARK) {
        return { root, path: found.path.slice(0, -1), part: 'key', offset: found.from }
      }
      if (found.part === 'key' || !String(found.scalar.value).includes(MARK)) continue
      const marked: Marked = { root, path: found.path, part: 'value', offset: found.from }
      if (found.scalar.style === 'block' || text.lastIndexOf('\n', found.to - 1) < line.from) return marked
      swallowed ??= marked
    }
  }
  return swallowed
}

/** The offset of `{{` before the cursor that is not closed before it; null when there is none in the same value. */
function templateBefore(text: string, offset: number): number | null {
  const open = text.lastIndexOf('{{', offset - 2)
  if (open === -1 || offset - open > LONGEST_TEMPLATE) return null
  const between = text.slice(open + 2, offset)
  return between.includes('}}') || /\n\s*(?:- +)*[\w-]+:(?:\s|$)/.test(between) ? null : open
}

/** How much of the line after the cursor belongs to its template. */
function closeAfter(after: string): number {
  const close = after.indexOf('}}')
  const next = after.indexOf('{{')
  return close === -1 || (next !== -1 && next < close) ? /^[\w.]*/.exec(after)![0].length : close + 2
}

/** The quote and the brackets that are open at the end of a line. */
function closersOf(line: string): string {
  const open: string[] = []
  let quote = ''
  for (let at = 0; at < line.length; at++) {
    const character = line[at]!
    if (quote) {
      if (character === '\\' && quote === '"') at++
      else if (character === quote) quote = ''
    } else if ((character === '"' || character === "'") && /(?:^|[\s,[{])$/.test(line.slice(0, at))) quote = character
    else if (character === '{') open.unshift('}')
    else if (character === '[') open.unshift(']')
    else if (character === '}' || character === ']') open.shift()
  }
  return quote + open.join('')
}

function isComment(before: string): boolean {
  const plain = before.replaceAll(/"(?:[^"\\]|\\.)*"?|'[^']*'?/g, quoted => 'x'.repeat(quoted.length))
  return /(?:^|\s)#/.test(plain)
}

/** Conditions are expressions without `{{ }}`. */
export const isCondition = (path: Path): boolean => path.at(-1) === 'when' || path.at(-1) === 'until'

function bareExpression(text: string, { path, part, offset: begin }: Marked, offset: number): string | null {
  if (part === 'key' || !isCondition(path)) return null
  return text.slice(begin, offset).replace(/^["']/, '')
}
