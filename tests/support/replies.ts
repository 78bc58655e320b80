// Checks that a reply matches what its route declares. Tests are stricter than the contract with callers: they allow no
// property that the schema does not name.

import type { TSchema } from 'typebox'
import type { Route } from '../../lib/http/routes.ts'
import { isObject } from '../../lib/json.ts'
import { problems } from '../../lib/schema/schema.ts'

/** Throws when the reply of the route at `path`, with this `status` and `data`, does not match the route's declaration. */
export function checkReply(routes: readonly Route[], path: string, status: number, data: unknown): void {
  const route = routes.find(each => each.path === path)
  if (!route) throw new Error(`${path} answered ${status} and is no route`)
  if (status !== route.status) throw new Error(`${path} answered ${status}, but declares ${route.status}`)
  if (!route.data) throw new Error(`${path} must declare its reply`)
  const wrong = problems(strict(route.data), data)
  if (wrong.length === 0) return
  const list = wrong.map(({ path, message }) => `${path || '/'} ${message}`).join(', ')
  throw new Error(`${path} must answer what it declares: ${list}\n${JSON.stringify(data).slice(0, 2_000)}`)
}

const closed = new WeakMap<TSchema, TSchema>()

function strict(schema: TSchema): TSchema {
  const known = closed.get(schema)
  if (known) return known
  const made = closing(schema) as TSchema
  closed.set(schema, made)
  return made
}

function closing(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closing)
  if (!isObject(schema)) return schema
  const made = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closing(value)]))
  return isObject(schema.properties) && made.additionalProperties === undefined
    ? { ...made, additionalProperties: false }
    : made
}
