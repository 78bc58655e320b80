// The parts of a text that are underlined: those in which a mistake begins, and those that name a secret.

import { readBroken, Source } from '../yaml/yaml.ts'
import { placesIn, type Range } from './place.ts'

/**
 * The ranges of mistakes by line and column, both from 1: that of the key or the value that begins there, inside of a value that
 * of a word, and never more than the line.
 */
export function rangesIn(text: string): (line: number, column: number) => Range {
  const source = new Source('', text)
  const root = readBroken(text)
  const ends = new Map<number, number>()
  for (const { from, to } of root ? placesIn(text, root) : []) if (to > from && !ends.has(from)) ends.set(from, to)
  return (line, column) => {
    const from = source.offset(line, column)
    const next = text.indexOf('\n', from)
    const rest = text.slice(from, next === -1 ? text.length : next).trimEnd()
    const word = /^(?:[\w@./-]+|\S)?/.exec(rest)![0].length
    const length = (ends.get(from) ?? from + word) - from
    return { from, to: from + Math.min(length, rest.length) }
  }
}

/** `<file>:<line>:<column>` of where a text first names a secret; of its beginning if it does not. */
export function placeOfSecret(file: string, text: string, name: string): string {
  const naming = `(?<=\\bsecrets\\s*(?:\\.\\??\\s*|\\[\\??\\s*['"]))${RegExp.escape(name)}(?![\\w-])`
  return new Source(file, text).place(Math.max(text.search(new RegExp(naming)), 0))
}
