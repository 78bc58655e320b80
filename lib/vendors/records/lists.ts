// What the agent data does with lists, item by item. `given` are the values that expressions name as inputs.

import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import type { Json, JsonObject } from '../../json.ts'
import { fieldAt } from './records.ts'

type Context = AgentContext<unknown>
type Evaluate = ReturnType<Context['expression']>
type Values = Record<string, unknown> | undefined

/** What the older list of a comparison may have, because it is kept while the newer one is read. In characters. */
const MOST_COMPARED = 64 * 1024 * 1024

const refuse = ({ callName }: Context, why: string, hint?: string) =>
  new AgentError(`[${callName}] ${why}`, { code: 'invalid_request', ...(hint && { hint }) })

/** The items for which the expression is true. */
export async function* filtered(
  records: AsyncIterable<Json>,
  where: string,
  given: Values,
  context: Context,
): AsyncGenerator<Json, void> {
  const fits = context.expression(where, given as JsonObject)
  let index = 0
  for await (const item of records) {
    const verdict = fits(item, index)
    if (typeof verdict !== 'boolean') {
      throw refuse(
        context,
        `\`where\` must give true or false, but for item ${index} it gave ${JSON.stringify(verdict)}`,
      )
    }
    if (verdict) yield item
    index++
  }
}

/** Of each item an object with some of its fields, or with the values of expressions. */
export async function* picked(
  records: AsyncIterable<Json>,
  fields: readonly string[] | Record<string, string>,
  given: Values,
  context: Context,
): AsyncGenerator<Json, void> {
  const values: [string, Evaluate][] = Array.isArray(fields)
    ? fields.map(name => [name, item => fieldAt(item, name) ?? null])
    : Object.entries(fields).map(([name, source]) => [name, context.expression(source, given as JsonObject)])
  let index = 0
  for await (const item of records) {
    yield Object.fromEntries(values.map(([name, value]) => [name, value(item, index)]))
    index++
  }
}

/** The items in lists of at most `count`. */
export async function* grouped(records: AsyncIterable<Json>, count: number): AsyncGenerator<Json[], void> {
  let some: Json[] = []
  for await (const record of records) {
    some.push(record)
    if (some.length < count) continue
    yield some
    some = []
  }
  if (some.length > 0) yield some
}

export interface Counts {
  added: number
  removed: number
  changed: number
}

/**
 * What differs between two lists whose items are the same where the expression gives the same key. Counts what it yields.
 * The older list is kept in memory.
 */
export async function* changesBetween(
  older: AsyncIterable<Json>,
  newer: AsyncIterable<Json>,
  key: Evaluate,
  context: Context,
  counts: Counts,
): AsyncGenerator<Json, void> {
  const left = new Map<Json, Json>()
  const seen = new Set<Json>()
  const keyOf = (item: Json, index: number, list: string, known: { has(key: Json): boolean }): Json => {
    const found = key(item, index)
    if (typeof found === 'object') {
      throw refuse(
        context,
        `the key of item ${index} of \`${list}\` is neither a text nor a number: ${JSON.stringify(found)}`,
      )
    }
    if (!known.has(found)) return found
    const hint = 'choose a `key` that no two items have'
    throw refuse(context, `two items of \`${list}\` have the key ${JSON.stringify(found)}`, hint)
  }
  const change = (kind: keyof Counts, rest: JsonObject): JsonObject => {
    counts[kind]++
    return { change: kind, ...rest }
  }
  let [index, chars] = [0, 0]
  for await (const item of older) {
    chars += JSON.stringify(item).length
    if (chars > MOST_COMPARED)
      throw refuse(context, 'the older list has more than 64 MiB', '`pick` what to compare first')
    left.set(keyOf(item, index++, 'before', left), item)
  }
  index = 0
  for await (const after of newer) {
    const key = keyOf(after, index++, 'after', seen)
    seen.add(key)
    const before = left.get(key)
    left.delete(key)
    if (before === undefined) yield change('added', { key, after })
    else if (!Bun.deepEquals(before, after)) yield change('changed', { key, before, after })
  }
  for (const [key, before] of left) yield change('removed', { key, before })
}
