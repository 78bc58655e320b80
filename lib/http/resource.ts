// The plugin of a resource: its routes, made of calls that lib/wire/calls declares.

import type { Server } from 'bun'
import { type AnyElysia, Elysia } from 'elysia'
import type { Static, TSchema } from 'typebox'
import type { Call, Export, Transfer } from '../wire/call.ts'
import type { Histogram } from './metrics.ts'

export type DataOf<C> = C extends { data: infer Data extends TSchema } ? Static<Data> : never

/** What a handler gets besides the caller: the body or query of the call, checked. */
export interface CallContext<C> {
  body: C extends { body: infer Body extends TSchema } ? Static<Body> : never
  query: C extends { query: infer Query extends TSchema } ? Static<Query> : never
  headers: Record<string, string | undefined>
  request: Request
  server: Server<unknown> | null
  /** Aborted when somebody asks the server to stop. */
  stopping: AbortController
  /** How long requests took. */
  durations: Histogram
}

/** A call and what answers it. */
export interface Answer {
  readonly call: Call | Export | Transfer
  /** Who may make it, in the options of the kit. */
  readonly access: object
  /** Gets what the kit makes of a request. */
  readonly handler: (context: never) => unknown
  /** Further options of the kit. */
  readonly options?: object
}

/** The routes of `answers`. `kit` knows what they say about who may call, and adds it to their context. */
export function resource(name: string, kit: AnyElysia, answers: readonly Answer[]): AnyElysia {
  const plugin: AnyElysia = new Elysia({ name }).use(kit)
  for (const { call, access, handler, options } of answers) {
    const { path, summary, hub: _, daemon: __, ...declared } = call
    const method = 'body' in call ? 'POST' : (call.method ?? 'GET')
    // `answer` gave the handler the type that the kit's options give its context.
    plugin.route(method, path, handler as never, { ...declared, ...access, ...options, detail: { summary } })
  }
  return plugin
}
