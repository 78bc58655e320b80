// Every route of an app as it was declared.

import type { AnyElysia } from 'elysia'
import type { TSchema } from 'typebox'
import { ruleOf } from './admission.ts'

export interface Route {
  method: string
  path: string
  /** What its access requires, in words. */
  rule: string
  /** The status of a success. */
  status: number
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
    const { transform, status = 200, data, media, frame, detail } = hooks
    const isMessage = frame?.isMessage ?? false
    return { method, path, rule: ruleOf(transform), status, data, media, isMessage, hidden: detail?.hide === true }
  })
  const undeclared = found.filter(({ rule }) => rule === undefined).map(({ method, path }) => `${method} ${path}`)
  if (undeclared.length > 0) {
    throw new Error(`routes without a declared access: ${undeclared.join(', ')}; declare who may call them`)
  }
  return found.map(route => ({ ...route, rule: route.rule! })).sort((a, b) => (a.path < b.path ? -1 : 1))
}
