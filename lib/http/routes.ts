// Every route of an app, as it was declared.

import type { AnyElysia } from 'elysia'
import type { TSchema } from 'typebox'
import { ruleOf } from './admission.ts'

export interface Route {
  method: string
  path: string
  /** What its access asks, in words. */
  rule: string
  /** Of success. */
  status: number
  /** Of success: the schema of `data`, or the content type of what is no such reply. */
  data: TSchema | undefined
  media: string | undefined
}

/** Sorted by path. Throws when a route does not declare who may call it. */
export function routesOf(app: Pick<AnyElysia, 'routes'>): Route[] {
  const found = app.routes.map(({ method, path, hooks }) => {
    const { transform, status = 200, data, media } = hooks
    return { method, path, rule: ruleOf(transform), status, data, media }
  })
  const undeclared = found.filter(({ rule }) => rule === undefined).map(({ method, path }) => `${method} ${path}`)
  if (undeclared.length > 0) {
    throw new Error(`routes without a declared access: ${undeclared.join(', ')}; declare who may call them`)
  }
  return found.map(route => ({ ...route, rule: route.rule! })).sort((a, b) => (a.path < b.path ? -1 : 1))
}
