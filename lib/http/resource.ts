// The plugin of a resource: its routes, made of calls that lib/wire/calls declares.

import { type AnyElysia, Elysia } from 'elysia'
import type { Call, Export, Transfer } from '../wire/call.ts'

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
