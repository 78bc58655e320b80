// The text of a file with its positions, and the list of the mistakes in it.

import type { Problem } from '../model/model.ts'
import type { Place, Scalar } from './node.ts'

/** Maximum number of listed mistakes. A file with more is probably the wrong file. */
const MAX_PROBLEMS = 200
const MAX_QUOTE = 10_000

/** Of these a team has two and more, and hardly another file does. */
const OF_TEAMS = /^(name|version|description|inputs|outputs|phases)$/
const WRITTEN = /^(name|version|description|inputs|outputs|phases)[ \t]*:/gm

export class Source {
  readonly file: string
  readonly text: string
  readonly problems: Problem[] = []
  #lines: number[] | undefined

  constructor(file: string, text: string) {
    this.file = file
    this.text = text
  }

  report(place: Place, message: string, more: Pick<Problem, 'isUnread'> = {}): void {
    if (this.problems.length >= MAX_PROBLEMS) return
    const { line, column } = this.position(place.offset)
    const start = this.#starts[line - 1]!
    const end = this.text.indexOf('\n', start)
    const quote = this.text
      .slice(start, Math.min(end === -1 ? this.text.length : end, start + MAX_QUOTE))
      .replace(/\r$/, '')
    this.problems.push({ file: this.file, line, column, path: place.path, message, quote, ...more })
  }

  /**
   * Says of a file that is no team only that, and nothing of what is in it: whoever may name a file is shown no other one by
   * that. `fields`: those of its root, if it could be read. Returns whether it is one.
   */
  isTeam(fields: Iterable<string>): boolean {
    const written = [...this.text.matchAll(WRITTEN)].map(([, field]) => field!)
    const found = new Set([...fields, ...written].filter(field => OF_TEAMS.test(field)))
    if (found.size >= 2) return true
    const message = 'this is no team: a team.yml has a `name`, a `version` and `phases`'
    this.problems.splice(0, Infinity, { file: this.file, line: 1, column: 1, path: '', message, quote: '' })
    return false
  }

  /** Both from 1. */
  position(offset: number): { line: number; column: number } {
    const starts = this.#starts
    let low = 0
    let high = starts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (starts[middle]! <= offset) low = middle
      else high = middle - 1
    }
    return { line: low + 1, column: offset - starts[low]! + 1 }
  }

  /** Of a position that `position` gave for this text. */
  offset(line: number, column: number): number {
    return Math.min((this.#starts[line - 1] ?? this.text.length) + column - 1, this.text.length)
  }

  /** `<file>:<line>:<column>`. */
  place(offset: number): string {
    const { line, column } = this.position(offset)
    return `${this.file}:${line}:${column}`
  }

  /**
   * The offset in the text of character `index` of a scalar's value. YAML folds, indents and escapes, but it neither
   * adds nor drops characters that are not blank: the n-th such character of the value is the n-th of the source.
   */
  within(scalar: Scalar, index: number): number {
    const value = String(scalar.value)
    let wanted = 0
    for (let at = 0; at < index && at < value.length; at++) if (!isBlank(value[at]!)) wanted++
    const start = contentStart(scalar, this.text)
    let at = start
    for (const unit of units(scalar, this.text, start)) {
      at = unit.at
      if (!unit.blank && wanted-- === 0) break
    }
    return at
  }

  get #starts(): number[] {
    if (this.#lines) return this.#lines
    const starts = [0]
    for (let at = this.text.indexOf('\n'); at !== -1; at = this.text.indexOf('\n', at + 1)) starts.push(at + 1)
    this.#lines = starts
    return starts
  }
}

function isBlank(character: string): boolean {
  return character === ' ' || character === '\n' || character === '\t' || character === '\r'
}

function contentStart(scalar: Scalar, text: string): number {
  if (scalar.style === 'plain') return scalar.offset
  if (scalar.style !== 'block') return scalar.offset + 1
  const header = text.indexOf('\n', scalar.offset)
  return header === -1 ? scalar.end : header + 1
}

const ESCAPE = /\\(?:x(..)|u(....)|U(.{8})|([\s\S]))/y

/** Where each UTF-16 unit of a scalar's value is written, in order. */
function* units(scalar: Scalar, text: string, start: number): Generator<{ at: number; blank: boolean }> {
  for (let at = start; at < scalar.end; at++) {
    const character = text[at]!
    if (scalar.style === 'double' && character === '\\') {
      ESCAPE.lastIndex = at
      const match = ESCAPE.exec(text)
      if (!match) return
      const hex = match[1] ?? match[2] ?? match[3]
      const code = hex === undefined ? 0 : Number.parseInt(hex, 16)
      const blank = hex === undefined ? ' \t\r\nntr'.includes(match[4]!) : isBlank(String.fromCharCode(code))
      yield { at, blank }
      if (code > 0xffff) yield { at, blank }
      at += match[0].length - 1
    } else {
      yield { at, blank: isBlank(character) }
      if (scalar.style === 'single' && character === "'") at++
    }
  }
}
