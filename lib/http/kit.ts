// The HTTP kit of hub and daemon: the Elysia plugin that every resource uses. It leaves bodies unread until the
// credential has been checked, and turns what handlers return into replies. A route declares who may call it with a
// macro that `admission` creates: `open` here, and others in the kits of hub and daemon.

import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import type { TSchema } from 'typebox'
import { admission, anyone } from './admission.ts'
import './routes.ts'
import { requestDurations } from './metrics.ts'
import { type Frame, plainFrame, replyOf } from './reply.ts'

/** The plugin would also read a token from the query. A random name prevents that. */
const extract = { query: crypto.randomUUID() }

/** What nearly all callers send, in which nothing needs to be changed. */
const USUAL = /^Bearer \S+$/

export function httpKit() {
  const frame: Frame = plainFrame
  return (
    new Elysia({ name: 'http' })
      .decorate({
        frame,
        /** The address of the other end of the socket. `root` replaces this, because it knows the server. */
        peer: (_: Request): string | null => null,
        /** Aborted when somebody asks the server to stop, which ends long polls and streams. */
        stopping: new AbortController(),
        /** Aborted when the server is about to stop and still answers, which `/ready` reports. */
        leaving: new AbortController(),
        /** How long requests took, for `/metrics`. */
        durations: requestDurations(),
      })
      .onTransform({ as: 'global' }, ({ headers }) => {
        // The plugin accepts any character after `Bearer`. The scheme must be `Bearer`, in any case, followed by a
        // space (RFC 9110, 11.1).
        const { authorization } = headers
        if (authorization === undefined || USUAL.test(authorization)) return
        headers.authorization = /^bearer /i.test(authorization) ? `Bearer ${authorization.slice(7).trim()}` : ''
      })
      .use(bearer({ extract }))
      .onAfterHandle({ as: 'global' }, ({ response, frame, body }) => {
        // Elysia would wait for a hook that returns what another function returns, because that may be a promise.
        const reply = replyOf(response, frame, body)
        return reply
      })
      // What a route declares besides its access, body or query. `admission` and `routesOf` read it.
      .macro({
        /** The schema of `data` in a success, for OpenAPI and for the tests, which check replies against it. */
        data: (_: TSchema) => ({}),
        /** The content type, if the handler returns a Response of its own. */
        media: (_: string) => ({}),
        /** The status of a success. The default is 200. */
        status: (_: 200 | 201) => ({}),
        /** Headers that the route reads, and what they are. */
        takes: (_: Readonly<Record<string, string>>) => ({}),
        /** The maximum size of the body in bytes. The default is 1 MiB. */
        limit: (_: number) => ({}),
        /** The form of replies. The default is `{ok, data}`. */
        frame: (_: Frame) => ({}),
      })
      .macro({ open: (_: true) => admission(anyone) })
  )
}
