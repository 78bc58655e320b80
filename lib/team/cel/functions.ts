// The functions that expressions may call: CEL's own, those of cel-go's extensions (strings, lists, math, optional
// values), and toJson, fromJson and file. Each is named here with what a call costs; what is not named does not exist.
// https://github.com/google/cel-go/tree/master/ext. The README lists them all, and a test compares.

import type { Environment } from '@marcbachmann/cel-js'
import type { Json } from '../../json.ts'
import { didYouMean } from '../../spelling.ts'
import { currentEvaluation } from './evaluation.ts'
import { format } from './format.ts'
import { registerMacros } from './macros.ts'
import { kindOf, sortedBy } from './order.ts'
import { equals, fromCel, type Optional } from './values.ts'
import type { Work } from './work.ts'

/** Pays for a call before it. `values` begin with the receiver or the namespace. */
type Cost = (values: readonly unknown[], work: Work) => void

const free: Cost = () => {}

/** One pass over each value. */
const passes: Cost = (values, work) => {
  for (const value of values) work.pass(value)
}

/** The values themselves are compared. */
const each: Cost = (values, work) => {
  work.spend(values.length)
  passes(values, work)
}

/** Characters are told apart one by one. */
const characters: Cost = ([text], work) => {
  if (typeof text === 'string') work.passText(text, 4)
}

/** Looking for a text in another: at worst it is compared in part at every place. */
const search: Cost = (values, work) => {
  passes(values, work)
  const [text, wanted] = values
  if (typeof text === 'string' && typeof wanted === 'string') work.passText(text, 1 + wanted.length / 16)
}

/** A text taken apart: each part is a value of its own. */
const parts: Cost = (values, work) => {
  search(values, work)
  characters(values, work)
}

/** A part of a text shares its memory. */
const cut: Cost = (_, work) => work.spend(4)

const replacement: Cost = (values, work) => {
  search(values, work)
  const [text, wanted, put] = values
  if (typeof text !== 'string' || typeof wanted !== 'string' || typeof put !== 'string') return
  work.passText(text, 4)
  work.spend(countOf(text, wanted) * (2 + put.length / 32))
}

function countOf(text: string, wanted: string): number {
  if (wanted === '') return text.length + 1
  let count = 0
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length)) count++
  return count
}

const joined: Cost = ([list, separator], work) => {
  if (!Array.isArray(list)) return
  work.pass(list)
  for (const item of list) work.pass(item)
  if (typeof separator === 'string') work.spend(Math.ceil((list.length * separator.length) / 32))
}

const range: Cost = ([, count], work) => work.spend(Math.max(0, Number(count)))

/** A date in words of a time zone is made and read again. */
const dates: Cost = ([, zone], work) => work.spend(zone === undefined ? 1 : 1_000)

/** cel-js cuts its text once for each unit. */
const durations: Cost = ([text], work) => {
  if (typeof text === 'string') work.spend(text.length ** 2 / 16)
}

/** What a value costs as JSON is paid for while it is walked; reading it, before. */
const json: Cost = ([text], work) => {
  if (typeof text === 'string') work.passText(text, 8)
}

const COSTS: Record<string, Cost> = {
  // CEL's own: https://github.com/google/cel-spec/blob/master/doc/langdef.md#list-of-standard-definitions
  all: free,
  bool: passes,
  bytes: passes,
  contains: search,
  double: passes,
  duration: durations,
  dyn: free,
  endsWith: passes,
  exists: free,
  exists_one: free,
  filter: free,
  getDate: dates,
  getDayOfMonth: dates,
  getDayOfWeek: dates,
  getDayOfYear: dates,
  getFullYear: dates,
  getHours: dates,
  getMilliseconds: dates,
  getMinutes: dates,
  getMonth: dates,
  getSeconds: dates,
  has: free,
  int: passes,
  map: free,
  matches: passes,
  size: characters,
  startsWith: passes,
  string: passes,
  timestamp: passes,
  type: free,
  uint: passes,
  // cel-go: optional values, cel.bind
  bind: free,
  first: free,
  hasValue: free,
  last: free,
  none: free,
  of: free,
  ofNonZeroValue: free,
  optFlatMap: free,
  optMap: free,
  or: free,
  orValue: free,
  value: free,
  // cel-go: strings
  charAt: free,
  format: passes,
  indexOf: search,
  join: joined,
  lastIndexOf: search,
  lowerAscii: passes,
  quote: ([, text], work) => characters([text], work),
  replace: replacement,
  reverse: parts,
  split: parts,
  substring: cut,
  trim: passes,
  upperAscii: passes,
  // cel-go: lists
  distinct: passes,
  flatten: passes,
  range,
  slice: passes,
  sort: passes,
  sortBy: passes,
  // cel-go: math
  abs: free,
  bitAnd: free,
  bitNot: free,
  bitOr: free,
  bitShiftLeft: free,
  bitShiftRight: free,
  bitXor: free,
  ceil: free,
  floor: free,
  greatest: each,
  isFinite: free,
  isInf: free,
  isNaN: free,
  least: each,
  round: free,
  sign: free,
  sqrt: free,
  trunc: free,
  // cadre
  file: passes,
  fromJson: json,
  toJson: free,
}

export const FUNCTION_NAMES: readonly string[] = Object.keys(COSTS)

/** What other languages call them. */
const FOREIGN: Record<string, string> = {
  len: 'size',
  length: 'size',
  count: 'size',
  lower: 'lowerAscii',
  toLowerCase: 'lowerAscii',
  upper: 'upperAscii',
  toUpperCase: 'upperAscii',
  includes: 'contains',
  strip: 'trim',
  tojson: 'toJson',
  toJSON: 'toJson',
  fromJSON: 'fromJson',
  float: 'double',
  str: 'string',
  toString: 'string',
  max: 'math.greatest',
  min: 'math.least',
  default: 'orValue',
  unique: 'distinct',
}

export function costOf(name: string): Cost {
  return (Object.hasOwn(COSTS, name) && COSTS[name]) || passes
}

/** Says that there is no function of that name, and what may be meant; null when there is one. */
export function unknownFunction(name: string): string | null {
  if (Object.hasOwn(COSTS, name)) return null
  const foreign = Object.hasOwn(FOREIGN, name) ? ` (did you mean \`${FOREIGN[name]}\`?)` : ''
  return `there is no function \`${name}\`${foreign || didYouMean(name, FUNCTION_NAMES)}: the README lists all`
}

/** Names that stand before functions: `math.round(x)`. */
export const NAMESPACES = ['math', 'strings', 'lists', 'optional', 'cel']

const SYNC = { async: false }
const MAX_INT = 2n ** 63n - 1n
const MIN_INT = -(2n ** 63n)

export function registerFunctions(cel: Environment): void {
  for (const name of ['math', 'strings', 'lists']) {
    const Namespace = class {}
    cel.registerType(`${name}Namespace`, Namespace)
    cel.registerConstant(name, `${name}Namespace`, new Namespace() as never)
  }
  registerTexts(cel)
  registerLists(cel)
  registerMath(cel)
  registerOwn(cel)
  registerMacros(cel)
}

function registerTexts(cel: Environment): void {
  cel
    .registerFunction('string.charAt(int): string', (text: string, at: bigint) => charAt(text, Number(at)), SYNC)
    .registerFunction('string.reverse(): string', (text: string) => [...text].reverse().join(''), SYNC)
    .registerFunction('string.format(list): string', (text: string, values: unknown[]) => format(text, values), SYNC)
    .registerFunction('stringsNamespace.quote(string): string', (_: object, text: string) => JSON.stringify(text), SYNC)
    .registerFunction(
      'string.replace(string, string): string',
      (text: string, wanted: string, put: string) => replace(text, wanted, put, -1),
      SYNC,
    )
    .registerFunction(
      'string.replace(string, string, int): string',
      (text: string, wanted: string, put: string, most: bigint) => replace(text, wanted, put, Number(most)),
      SYNC,
    )
}

function charAt(text: string, at: number): string {
  if (at < 0 || at > text.length) throw new Error(`charAt(${at}): the text has ${text.length} characters`)
  return text.charAt(at)
}

/** `put` is a text, not a pattern with `$1` in it. */
function replace(text: string, wanted: string, put: string, most: number): string {
  if (most < 0) return text.replaceAll(wanted, put.replaceAll('$', '$$$$'))
  let replaced = ''
  let from = 0
  for (let count = 0; count < most; count++) {
    const at = text.indexOf(wanted, wanted === '' ? count : from)
    if (at === -1 || (wanted === '' && count > text.length)) break
    replaced += text.slice(from, at) + put
    from = at + wanted.length
  }
  return replaced + text.slice(from)
}

function registerLists(cel: Environment): void {
  const none = cel.evaluate('optional.none()') as { constructor: { of(value: unknown): Optional } }
  const optionalOf = (value: unknown): Optional => none.constructor.of(value)
  cel
    .registerFunction(
      'listsNamespace.range(int): list<int>',
      (_: object, count: bigint) => rangeOf(Number(count)),
      SYNC,
    )
    .registerFunction('list<T>.slice(int, int): list<T>', sliceOf, SYNC)
    .registerFunction('list.flatten(): list', (list: unknown[]) => flattened(list, 1), SYNC)
    .registerFunction(
      'list.flatten(int): list',
      (list: unknown[], depth: bigint) => flattened(list, Number(depth)),
      SYNC,
    )
    .registerFunction('list<T>.reverse(): list<T>', (list: unknown[]) => list.toReversed(), SYNC)
    .registerFunction('list<T>.distinct(): list<T>', distinct, SYNC)
    .registerFunction('list<T>.sort(): list<T>', (list: unknown[]) => sortedBy(list, list), SYNC)
    .registerFunction('list<T>.first(): optional<T>', (list: unknown[]) => optionalOf(list[0]), SYNC)
    .registerFunction('list<T>.last(): optional<T>', (list: unknown[]) => optionalOf(list.at(-1)), SYNC)
    .registerFunction(
      'OptionalNamespace.ofNonZeroValue(dyn): optional<dyn>',
      (_: object, value: unknown) => {
        return isZero(value) ? none : optionalOf(value)
      },
      SYNC,
    )
}

function isZero(value: unknown): boolean {
  if (typeof value !== 'object') return !value
  if (value === null) return true
  return Array.isArray(value) ? value.length === 0 : value instanceof Map ? value.size === 0 : false
}

function rangeOf(count: number): bigint[] {
  return Array.from({ length: Math.max(0, count) }, (_, at) => BigInt(at))
}

function sliceOf(list: unknown[], from: bigint, to: bigint): unknown[] {
  if (from < 0n || to < from || to > BigInt(list.length)) {
    throw new Error(`slice(${from}, ${to}): the list has ${list.length} items`)
  }
  return list.slice(Number(from), Number(to))
}

function flattened(list: unknown[], depth: number): unknown[] {
  if (depth < 0) throw new Error(`flatten(${depth}): the depth must not be negative`)
  const { work } = currentEvaluation()
  const flat: unknown[] = []
  const add = (items: unknown[], left: number): void => {
    for (const item of items) {
      work.spend(1)
      if (Array.isArray(item) && left > 0) add(item, left - 1)
      else flat.push(item)
    }
  }
  add(list, Math.min(depth, 500))
  return flat
}

/** Texts, numbers and bools are looked up; what is larger is compared with all that were kept. */
function distinct(list: unknown[]): unknown[] {
  const { work } = currentEvaluation()
  const known = new Set<unknown>()
  const large: unknown[] = []
  return list.filter(item => {
    work.pass(item)
    if (typeof item === 'object' && item !== null) {
      if (large.some(each => equals(each, item, work))) return false
      large.push(item)
      return true
    }
    const key = typeof item === 'number' && Number.isInteger(item) ? BigInt(item) : item
    return !known.has(key) && known.add(key)
  })
}

function registerMath(cel: Environment): void {
  const one = (
    name: string,
    ofDouble: (x: number) => unknown,
    ofInt: (x: bigint) => unknown,
    type: [string, string],
  ) => {
    cel
      .registerFunction(`mathNamespace.${name}(double): ${type[0]}`, (_: object, x: number) => ofDouble(x), SYNC)
      .registerFunction(`mathNamespace.${name}(int): ${type[1]}`, (_: object, x: bigint) => ofInt(x), SYNC)
  }
  const same = (x: bigint) => x
  one('ceil', Math.ceil, same, ['double', 'int'])
  one('floor', Math.floor, same, ['double', 'int'])
  one('trunc', Math.trunc, same, ['double', 'int'])
  // Halves are rounded away from zero.
  one('round', x => Math.sign(x) * Math.round(Math.abs(x)), same, ['double', 'int'])
  one('abs', Math.abs, x => checked(x < 0n ? -x : x), ['double', 'int'])
  one('sign', Math.sign, x => (x > 0n ? 1n : x < 0n ? -1n : 0n), ['double', 'int'])
  one('sqrt', Math.sqrt, x => Math.sqrt(Number(x)), ['double', 'double'])
  one('isNaN', Number.isNaN, () => false, ['bool', 'bool'])
  one('isFinite', Number.isFinite, () => true, ['bool', 'bool'])
  one(
    'isInf',
    x => Math.abs(x) === Number.POSITIVE_INFINITY,
    () => false,
    ['bool', 'bool'],
  )
  const two = (name: string, apply: (a: bigint, b: bigint) => bigint) => {
    cel.registerFunction(
      `mathNamespace.${name}(int, int): int`,
      (_: object, a: bigint, b: bigint) => BigInt.asIntN(64, apply(a, b)),
      SYNC,
    )
  }
  two('bitAnd', (a, b) => a & b)
  two('bitOr', (a, b) => a | b)
  two('bitXor', (a, b) => a ^ b)
  two('bitShiftLeft', (a, b) => (shift(b) > 63n ? 0n : a << b))
  two('bitShiftRight', (a, b) => (shift(b) > 63n ? 0n : BigInt.asUintN(64, a) >> b))
  cel.registerFunction('mathNamespace.bitNot(int): int', (_: object, a: bigint) => ~a, SYNC)
  for (const [name, sign] of [
    ['greatest', 1],
    ['least', -1],
  ] as const) {
    cel.registerFunction(
      `mathNamespace.${name}(dyn): dyn`,
      (_: object, given: unknown) => {
        return outermost(name, Array.isArray(given) ? given : [given], sign)
      },
      SYNC,
    )
    for (let count = 2; count <= 7; count++) {
      const types = Array.from({ length: count }, () => 'dyn').join(', ')
      const of = (_: object, ...given: unknown[]) => outermost(name, given, sign)
      cel.registerFunction(`mathNamespace.${name}(${types}): dyn`, of, SYNC)
    }
  }
}

function checked(x: bigint): bigint {
  if (x >= MIN_INT && x <= MAX_INT) return x
  throw new Error(`integer overflow: ${x}`)
}

function shift(by: bigint): bigint {
  if (by >= 0n) return by
  throw new Error('a shift must not be negative')
}

function outermost(name: string, given: readonly unknown[], sign: 1 | -1): unknown {
  if (given.length === 0) throw new Error(`math.${name}: the list is empty`)
  return given.reduce((best, each) => {
    if (kindOf(each) !== 'number') throw new Error(`math.${name} takes numbers`)
    return (each as number) > (best as number) === sign > 0 && each !== best ? each : best
  })
}

function registerOwn(cel: Environment): void {
  cel
    .registerFunction(
      'toJson(dyn): string',
      (value: unknown) => JSON.stringify(fromCel(value, currentEvaluation().work)),
      SYNC,
    )
    .registerFunction('fromJson(string): dyn', (text: string) => currentEvaluation().toCel(parsed(text)), SYNC)
    .registerFunction('file(string): string', (path: string) => fileOf(path), SYNC)
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    throw new Error('fromJson: the text is not JSON')
  }
}

function fileOf(path: string): string {
  const { scope } = currentEvaluation()
  if (!scope.file) throw new Error('file() is not available here')
  return scope.file(path)
}
