// All functions of expressions and the cost of a call of each: CEL's own, those of cel-go's extensions (strings, lists,
// math, optional values), and toJson, fromJson, sum and file. A function that is not listed here does not exist. The README
// lists all of them, and a test compares the lists. https://github.com/google/cel-go/tree/master/ext

import type { Work } from '../../schema/work-budget.ts'
import { didYouMean } from '../../text/spelling.ts'

/** Charges a call before it is made. `values` begin with the receiver or the namespace. */
type Cost = (values: readonly unknown[], work: Work) => void

const free: Cost = () => {}

/** One pass over each value. */
const passes: Cost = (values, work) => {
  for (const value of values) work.pass(value)
}

/** One comparison for each value. */
const each: Cost = (values, work) => {
  work.spend(values.length)
  passes(values, work)
}

/** A pass over the characters of a text one by one. */
const characters: Cost = ([text], work) => {
  if (typeof text === 'string') work.passText(text, 4)
}

/** A search for a text in another one. In the worst case they are partly compared at every position. */
const search: Cost = (values, work) => {
  passes(values, work)
  const [text, wanted] = values
  if (typeof text === 'string' && typeof wanted === 'string') work.passText(text, 1 + wanted.length / 16)
}

/** A text is split, and each part becomes a separate value. */
const parts: Cost = (values, work) => {
  search(values, work)
  characters(values, work)
}

/** A part of a text shares the memory of the text, so this is cheap. */
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

/** A time is read field by field, which costs several nodes. */
const times: Cost = (values, work) => {
  work.spend(3)
  passes(values, work)
}

/** With a time zone, a date is formatted as text and parsed again, which is expensive. */
const dates: Cost = ([, zone], work) => work.spend(zone === undefined ? 1 : 1_000)

/** cel-js copies the rest of the text once for each unit. */
const durations: Cost = ([text], work) => {
  if (typeof text === 'string') work.spend(text.length ** 2 / 16)
}

/** Parsing JSON is charged before it is done. The resulting value is charged while it is converted. */
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
  timestamp: times,
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
  sum: each,
  toJson: free,
}

export const FUNCTION_NAMES: readonly string[] = Object.keys(COSTS)

/** Names of functions in other languages, and their names here. */
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
  default: 'or',
  coalesce: 'or',
  ifnull: 'or',
  nvl: 'or',
  unique: 'distinct',
}

export function costOf(name: string): Cost {
  return (Object.hasOwn(COSTS, name) && COSTS[name]) || passes
}

/** The message for an unknown function, with a suggestion; null when the function exists. */
export function unknownFunction(name: string): string | null {
  if (Object.hasOwn(COSTS, name)) return null
  const foreign = Object.hasOwn(FOREIGN, name) ? ` (did you mean \`${FOREIGN[name]}\`?)` : ''
  return `there is no function \`${name}\`${foreign || didYouMean(name, FUNCTION_NAMES)}: docs/write-a-team.md lists all functions`
}

/** Namespaces of functions, as in `math.round(x)`. */
export const NAMESPACES = ['math', 'strings', 'lists', 'optional', 'cel']
