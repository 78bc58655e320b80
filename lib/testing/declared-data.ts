// What a handler declares as the `data` of its results must be true of each result, in every field.

import type { TSchema } from 'typebox'
import type { AgentResult } from '../agent/agent-context.ts'
import type { Handler } from '../agent/define.ts'
import { problems } from '../schema/schema.ts'

/** The result, if its `data` is what the handler declares, if it declares any. Throws otherwise. */
export function asDeclared<R extends AgentResult | null>({ data: declared }: Pick<Handler, 'data'>, result: R): R {
  if (!declared || !result) return result
  // `find` may return a list of all that carry the mark of an entry.
  if (Array.isArray(result)) return result.map(each => asDeclared({ data: declared }, each)) as never
  const [wrong] = problems(closed(declared), result.data ?? {})
  if (wrong)
    throw new Error(`a result has another form than the \`data\` that is declared: data${wrong.path} ${wrong.message}`)
  return result
}

const copies = new WeakMap<TSchema, TSchema>()

/** A copy of a schema whose objects have only the properties that it names, unless it says otherwise. */
function closed(schema: TSchema): TSchema {
  const copy = copies.get(schema) ?? (close(schema) as TSchema)
  copies.set(schema, copy)
  return copy
}

function close(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(close)
  if (typeof part !== 'object' || part === null) return part
  const copy = Object.fromEntries(Object.entries(part).map(([key, value]) => [key, close(value)]))
  const { type, properties } = part as { type?: unknown; properties?: unknown }
  return type === 'object' && properties !== undefined ? { additionalProperties: false, ...copy } : copy
}
