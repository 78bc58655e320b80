// The functions that cel-js does not have: those of cel-go's extensions, and our own.
// https://github.com/google/cel-go/tree/master/ext

import type { Environment } from '@marcbachmann/cel-js'
import type { Json } from '../../json.ts'
import { currentEvaluation } from './evaluation.ts'
import { format } from './format.ts'
import { registerMacros } from './macros.ts'
import { kindOf, sortedBy } from './order.ts'
import { equals, fromCel, type Optional } from './values.ts'

const SYNC = { async: false }
const MAX_INT = 2n ** 63n - 1n
const MIN_INT = -(2n ** 63n)

export function registerFunctions(cel: Environment): void {
  for (const name of ['math', 'strings', 'lists']) {
    const Namespace = class {}
    cel.registerType(`${name}Namespace`, Namespace)
    cel.registerConstant(name, `${name}Namespace`, new Namespace())
  }
  registerTexts(cel)
  registerLists(cel)
  registerMath(cel)
  registerOwn(cel)
  registerTimes(cel)
  registerMacros(cel)
}

/** Of the language itself: https://github.com/google/cel-spec/blob/master/doc/langdef.md#type-conversions */
function registerTimes(cel: Environment): void {
  const time = 'google.protobuf.Timestamp'
  cel
    .registerFunction(`string(${time}): string`, (at: Date) => at.toISOString().replace('.000Z', 'Z'), SYNC)
    .registerFunction(`int(${time}): int`, (at: Date) => BigInt(Math.floor(at.getTime() / 1_000)), SYNC)
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

/** Replaces `wanted`. `put` is inserted literally; `$1` has no special meaning. */
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

/**
 * Removes duplicates. Texts, numbers and bools are looked up in a set; lists and maps are compared with every value
 * that was kept.
 */
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
  const unary = (
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
  unary('ceil', Math.ceil, same, ['double', 'int'])
  unary('floor', Math.floor, same, ['double', 'int'])
  unary('trunc', Math.trunc, same, ['double', 'int'])
  // Halves are rounded away from zero.
  unary('round', x => Math.sign(x) * Math.round(Math.abs(x)), same, ['double', 'int'])
  unary('abs', Math.abs, x => checked(x < 0n ? -x : x), ['double', 'int'])
  unary('sign', Math.sign, x => (x > 0n ? 1n : x < 0n ? -1n : 0n), ['double', 'int'])
  unary('sqrt', Math.sqrt, x => Math.sqrt(Number(x)), ['double', 'double'])
  unary('isNaN', Number.isNaN, () => false, ['bool', 'bool'])
  unary('isFinite', Number.isFinite, () => true, ['bool', 'bool'])
  unary(
    'isInf',
    x => Math.abs(x) === Number.POSITIVE_INFINITY,
    () => false,
    ['bool', 'bool'],
  )
  const binary = (name: string, apply: (a: bigint, b: bigint) => bigint) => {
    cel.registerFunction(
      `mathNamespace.${name}(int, int): int`,
      (_: object, a: bigint, b: bigint) => BigInt.asIntN(64, apply(a, b)),
      SYNC,
    )
  }
  binary('bitAnd', (a, b) => a & b)
  binary('bitOr', (a, b) => a | b)
  binary('bitXor', (a, b) => a ^ b)
  binary('bitShiftLeft', (a, b) => (shift(b) > 63n ? 0n : a << b))
  binary('bitShiftRight', (a, b) => (shift(b) > 63n ? 0n : BigInt.asUintN(64, a) >> b))
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

/** A whole number where all are whole, as `+` has it. */
function sum(list: readonly unknown[]): unknown {
  if (list.some(each => kindOf(each) !== 'number')) throw new Error('sum takes numbers')
  if (list.every(each => typeof each === 'bigint')) return checked(list.reduce((all, each) => all + each, 0n))
  return list.reduce<number>((all, each) => all + Number(each), 0)
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
    .registerFunction('sum(list): dyn', sum, SYNC)
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
