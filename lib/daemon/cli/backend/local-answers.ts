// The calls of the daemon's API that this process answers itself when no process holds the home. A command makes a call
// and need not know who answers it.

import type { Static, TSchema } from 'typebox'
import type { Call } from '../../../wire/call.ts'
import type { Callee } from './home-client.ts'

export interface Answer {
  path: string
  of(body: unknown): Promise<unknown>
}

export function answer<Body extends TSchema, Data extends TSchema>(
  { path }: Call<Body, Data>,
  of: (body: Static<Body>) => Promise<Static<Data>>,
): Answer {
  // Only `answering` calls it, with the body of a call of this path.
  return { path, of: body => of(body as Static<Body>) }
}

export function answering(...answers: readonly Answer[]): Callee {
  const byPath = new Map(answers.map(each => [each.path, each]))
  return {
    async call(call, body) {
      const known = byPath.get(call.path)
      if (!known) throw new Error(`${call.path} has no answer without a daemon`)
      return (await known.of(body)) as Static<typeof call.data>
    },
  }
}
