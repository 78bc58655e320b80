// Where a list may be the value of a statement, read from the tokens around its placeholder. A list never becomes a text
// that is compared with something: a comparison with such a text matches nothing, and NOT IN everything.

import type { Json } from '../../json.ts'
import type { Dialect, Token } from './tokens.ts'

/** A column as the statement calls it; by number where it names none. */
export interface Column {
  /** The table, after its schema if the statement says one. */
  table: string[]
  column: string | number
}

/** What a list becomes. */
export type Use =
  /** As many values, in place of everything from the token `from` to the token `to`. */
  | { kind: 'in'; isNot: boolean; from: number; to: number }
  /** One value, if the database says that it is an array or JSON. */
  | { kind: 'typed'; isAll: boolean }
  /** JSON, because a function of JSON reads it. */
  | { kind: 'json' }
  /** JSON, if the column has it. */
  | { kind: 'column'; of: Column }
  | { kind: 'any'; isAll: boolean }
  | { kind: 'wrong' }

/** Functions that read JSON in each of their arguments. Others store a text that they are given as a text of JSON. */
const READ_JSON =
  /^jsonb?(_(each|tree|extract|table|contains|overlaps|length|array_length|type|valid|patch|merge_patch|merge_preserve|compact|equals))?$/
const EVERY = /^(any|some|all)$/i

/** What a list becomes whose placeholder is the token at `at`. `tokens` has no comments. */
export function useOf(tokens: readonly Token[], at: number, dialect: Dialect, isNamed: boolean): Use {
  const word = (place: number) => {
    const token = tokens[place]
    return token?.kind === 'word' ? token.text.toLowerCase() : ''
  }
  const sign = (place: number) => (tokens[place]?.kind === 'other' ? tokens[place].text : '')
  const isAlone = sign(at - 1) === '(' && sign(at + 1) === ')'
  if (isNamed && isAlone && word(at - 2) === 'in') {
    const isNot = word(at - 3) === 'not'
    return { kind: 'in', isNot, from: at - (isNot ? 3 : 2), to: at + 1 }
  }
  const isEvery = sign(at - 1) === '(' && EVERY.test(word(at - 2))
  const isAll = isEvery && word(at - 2) === 'all'
  if (dialect === 'postgres') return { kind: 'typed', isAll }
  if (isEvery) return { kind: 'any', isAll }
  const open = openAt(tokens, at)
  if (open !== -1 && READ_JSON.test(word(open - 1)) && isBetween(tokens, at)) return { kind: 'json' }
  if (
    isAlone === false &&
    sign(at - 1) === '(' &&
    word(at - 2) === 'cast' &&
    word(at + 1) === 'as' &&
    word(at + 2) === 'json'
  ) {
    return { kind: 'json' }
  }
  const of = isBetween(tokens, at, '=') ? (assigned(tokens, at) ?? inserted(tokens, at, open)) : null
  return of ? { kind: 'column', of } : { kind: 'wrong' }
}

/** Whether a value stands alone between commas and parentheses, or is all that follows `before`. */
function isBetween(tokens: readonly Token[], at: number, before = ''): boolean {
  const [previous = '', next = ''] = [tokens[at - 1]?.text, tokens[at + 1]?.text]
  return ['(', ',', before].includes(previous) && (/^([,);]|)$/.test(next) || (before !== '' && /^\w+$/.test(next)))
}

/** The parenthesis that is open at a token; -1 if none is. */
function openAt(tokens: readonly Token[], at: number): number {
  for (let depth = 0, place = at - 1; place >= 0; place--) {
    if (tokens[place]!.text === ')') depth++
    else if (tokens[place]!.text === '(' && depth-- === 0) return place
  }
  return -1
}

/** The column of `SET column = …`. */
function assigned(tokens: readonly Token[], at: number): Column | null {
  if (tokens[at - 1]?.text !== '=') return null
  const column = nameOf(tokens[at - 2])
  const [first = '', verb] = [wordAt(tokens, 0), tableAfter(tokens, ['update', 'into'])]
  if (column === null || !verb || !/^(update|insert|replace|with)$/.test(first)) return null
  let before = at - 3
  if (tokens[before]?.text === '.') {
    // The name has its table in front of it, which may be another one in a join.
    if (nameOf(tokens[before - 1]) !== verb.table.at(-1)) return null
    before -= 2
  }
  const isSet = isSetAt(tokens, before) || (tokens[before]?.text === ',' && isInSet(tokens, before))
  return isSet ? { table: verb.table, column } : null
}

/** Whether a word begins assignments: SET, or UPDATE of ON DUPLICATE KEY UPDATE. */
function isSetAt(tokens: readonly Token[], at: number): boolean {
  return wordAt(tokens, at) === 'set' || (wordAt(tokens, at) === 'update' && wordAt(tokens, at - 1) === 'key')
}

/** Whether the clause that a comma stands in is SET. */
function isInSet(tokens: readonly Token[], at: number): boolean {
  for (let depth = 0, place = at; place >= 0; place--) {
    const { text, kind } = tokens[place]!
    if (text === ')') depth++
    else if (text === '(' && depth-- === 0) return false
    else if (depth === 0 && kind === 'word') {
      if (isSetAt(tokens, place)) return true
      if (/^(where|from|select|values|having|by|on)$/i.test(text)) return false
    }
  }
  return false
}

/** The column of a value in `INSERT INTO table (…) VALUES (…), (…)`. */
function inserted(tokens: readonly Token[], at: number, open: number): Column | null {
  const target = tableAfter(tokens, ['into'])
  if (!target || open === -1 || !/^(insert|replace|with)$/.test(wordAt(tokens, 0))) return null
  // The row is one of those after VALUES.
  let before = open - 1
  while (tokens[before]?.text === ',') {
    const row = openAt(tokens, before - 1)
    if (row === -1 || tokens[before - 1]?.text !== ')') return null
    before = row - 1
  }
  if (!/^values?$/.test(wordAt(tokens, before))) return null
  let number = 0
  for (let depth = 0, place = open + 1; place < at; place++) {
    const { text } = tokens[place]!
    if (text === '(') depth++
    else if (text === ')') depth--
    else if (text === ',' && depth === 0) number++
  }
  if (tokens[target.end]?.text !== '(') return { table: target.table, column: number }
  const name = nameOf(tokens[target.end + 1 + 2 * number])
  return name === null ? null : { table: target.table, column: name }
}

/** The table that is named after one of some words, and the token after it. */
function tableAfter(tokens: readonly Token[], words: readonly string[]): { table: string[]; end: number } | null {
  const verb = tokens.findIndex((token, at) => token.kind === 'word' && words.includes(wordAt(tokens, at)))
  if (verb === -1) return null
  const table: string[] = []
  for (let at = verb + 1; ; at += 2) {
    // UPDATE OR IGNORE, UPDATE LOW_PRIORITY and the like name no table that is known.
    const name = nameOf(tokens[at])
    if (name === null) return null
    table.push(name)
    if (tokens[at + 1]?.text !== '.') return { table, end: at + 1 }
  }
}

const wordAt = (tokens: readonly Token[], at: number): string =>
  tokens[at]?.kind === 'word' ? tokens[at].text.toLowerCase() : ''

/** The name that a token is, without its quotes. */
function nameOf(token: Token | undefined): string | null {
  if (token?.kind === 'word') return token.text
  if (token?.kind !== 'quoted' || token.isOpen || token.text[0] === "'") return null
  const close = token.text.at(-1)!
  return token.text.slice(1, -1).replaceAll(close + close, close)
}

/** Why a list cannot be the values of IN, in words that continue its name; null if it can. */
export function whyNoValues(list: readonly Json[], isNot: boolean): { problem: string; hint: string } | null {
  if (list.some(value => typeof value === 'object' && value !== null)) {
    return { problem: 'has a list or an object in it', hint: 'IN takes single values: texts, numbers, true or false' }
  }
  if (isNot && list.includes(null)) {
    const hint =
      'leave the null out of the list, and write `AND column IS NOT NULL` if rows without a value do not count'
    return { problem: 'has a null in it: nothing at all is NOT IN such a list', hint }
  }
  return null
}
