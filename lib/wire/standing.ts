// How a daemon stands, as it says with each heartbeat: what people have to know before a run finds out.

import type { Static, TSchema } from 'typebox'
import { isObject } from '../json.ts'
import { matches, nullable } from '../schema/schema.ts'
import { Type } from '../schema/type.ts'
import { Text } from './parts.ts'

/** The most credentials that are named. */
export const MOST_CREDENTIALS = 50
/** How much of a text is kept. */
export const MOST_TEXT = 500

/** Epoch milliseconds that a date can have: others cannot be shown. */
const Moment = Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 })

const PARTS = {
  disk_free: Type.Optional(
    nullable(Type.Integer({ minimum: 0 }), { description: 'The free bytes of the disk with its home.' }),
  ),
  clock_ms: Type.Optional(
    nullable(Type.Integer(), {
      description: 'By how many milliseconds its clock is ahead of that of the hub; null: not known.',
    }),
  ),
  last_error: Type.Optional(
    nullable(Type.Object({ at: Moment, text: Text(MOST_TEXT) }), {
      description: 'The last error in its log since it started.',
    }),
  ),
  outbox: Type.Optional(
    Type.Object(
      {
        changes: Type.Integer({ minimum: 0, description: 'Changes of runs.' }),
        files: Type.Integer({ minimum: 0, description: 'Files of runs.' }),
        oldest_at: nullable(Moment, { description: 'Since when the oldest of them waits.' }),
      },
      { description: 'What waits to be sent to the hub.' },
    ),
  ),
  credentials_expire: Type.Optional(
    Type.Array(Type.Object({ name: Text(300), at: Moment }), {
      maxItems: MOST_CREDENTIALS,
      description: 'Credentials of its settings whose end is known, the next one first.',
    }),
  ),
}

export const Standing = Type.Object(PARTS)
export type Standing = Static<typeof Standing>

/** What fits of what a daemon says. A part in another form is left out, and so is what a newer one says besides. */
export function readStanding(given: unknown): Standing | null {
  if (!isObject(given)) return null
  const fitting = Object.entries(PARTS).flatMap(([name, part]) => {
    const value = given[name]
    return matches(part, value) ? [[name, known(part, value)] as const] : []
  })
  return Object.fromEntries(fitting) as Standing
}

/** A value that matches the schema, without properties that are not in it. */
function known(schema: TSchema, value: unknown): unknown {
  const { properties = {}, items, anyOf } = schema as Shape
  if (anyOf) return known(anyOf[0]!, value)
  if (Array.isArray(value)) return value.map(each => known(items!, each))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(properties).map(([name, part]) => [name, known(part, value[name])]))
}

/** What a schema has of these: of a union, which is with null here, its parts. */
interface Shape {
  anyOf?: readonly TSchema[]
  properties?: Readonly<Record<string, TSchema>>
  items?: TSchema
}
