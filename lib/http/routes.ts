// Every route of an app as it was declared. A route that is declared twice, or that does not say who may call it, stops
// the start.

import { type AnyElysia, Elysia } from 'elysia'
import type { TSchema } from 'typebox'
import { ruleOf } from './admission.ts'

export interface Route {
  method: string
  path: string
  /** What its access requires, in words. */
  rule: string
  /** The status of a success. */
  status: number
  /** `summary` and `description`. */
  detail: { summary?: string; description?: string }
  /** The schemas that check requests. */
  body: TSchema | undefined
  query: (TSchema & { properties?: Record<string, TSchema>; required?: string[] }) | undefined
  /** The headers that it reads, and what they are. */
  takes: Readonly<Record<string, string>>
  /** For a success: the schema of `data`, or the content type if the reply has another form. */
  data: TSchema | undefined
  media: string | undefined
  /** Whether requests and replies are messages with an envelope. */
  isMessage: boolean
  /** The route does not belong to the API but to the pages of its server (`detail.hide`), and the document leaves it out. */
  hidden: boolean
}

/** The routes, sorted by path. Throws when a route does not declare who may call it. */
export function routesOf(app: Pick<AnyElysia, 'routes'>): Route[] {
  const found = app.routes.map(({ method, path, hooks }) => {
    const { transform, status = 200, data, media, frame, body, query, takes = {} } = hooks
    const { hide = false, ...detail } = hooks.detail ?? {}
    const isMessage = frame?.isMessage ?? false
    const declared = { body, query, takes, data, media, isMessage }
    return { method, path, rule: ruleOf(transform), status, detail, ...declared, hidden: hide }
  })
  const undeclared = found.filter(({ rule }) => rule === undefined).map(({ method, path }) => `${method} ${path}`)
  if (undeclared.length > 0) {
    throw new Error(`routes without a declared access: ${undeclared.join(', ')}; declare who may call them`)
  }
  return found.map(route => ({ ...route, rule: route.rule! })).sort((a, b) => (a.path < b.path ? -1 : 1))
}

// Elysia silently replaces the first declaration of a route by the second, with its access, and keeps no trace of it. Its
// method `add`, which is not public, adds each route to a plugin, and each route of a plugin to an app.

type Add = (...route: unknown[]) => unknown

const add: Add = Reflect.get(Elysia.prototype, 'add')

function addOnce(this: Elysia, ...route: unknown[]): unknown {
  const before = [...this.routes]
  const result = Reflect.apply(add, this, route)
  const replacing = this.routes.find((after, index) => index < before.length && after !== before[index])
  if (replacing) throw new Error(`${replacing.method} ${replacing.path} is declared twice: remove one of the two`)
  return result
}

Reflect.set(Elysia.prototype, 'add', addOnce)
