// The HTTP kit of hub and daemon: the Elysia plugin that every resource uses. It leaves bodies unread until the credential
// is found right, and puts what handlers return into the form of replies. A route declares who may call it by a macro
// that `admission` makes: `open` here, others in the kits of hub and daemon.

import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import type { TSchema } from 'typebox'
import { admission, anyone } from './admission.ts'
import { type Frame, plainFrame } from './reply.ts'

/** The plugin takes a token from the query too, under a name that nobody can guess here. */
const extract = { query: crypto.randomUUID() }

export function httpKit() {
  const frame: Frame = plainFrame
  return (
    new Elysia({ name: 'http' })
      .decorate({
        frame,
        /** Address of the socket's other end; `root` knows the server. */
        peer: (_: Request): string | null => null,
        /** Aborted when the server is told to stop: long polls and streams end then. */
        stopping: new AbortController(),
      })
      .onParse({ as: 'global' }, () => null)
      .onTransform({ as: 'global' }, ({ headers }) => {
        // The plugin takes `Bearer` and any character as the scheme. It is `Bearer`, in any case, and a space (RFC 9110, 11.1).
        const { authorization } = headers
        if (authorization === undefined) return
        headers.authorization = /^bearer /i.test(authorization) ? `Bearer ${authorization.slice(7).trim()}` : ''
      })
      .use(bearer({ extract }))
      .onAfterHandle({ as: 'global' }, ({ response, frame, body }) =>
        response instanceof Response ? response : frame.success(response ?? null, body),
      )
      // What a route declares beside its access, body or query; `admission` and `routesOf` read it.
      .macro({
        /** What a success answers as `data`: for OpenAPI and the tests, which hold replies against it. */
        data: (_: TSchema) => ({}),
        /** Where the handler answers with a Response of its own: its content type. */
        media: (_: string) => ({}),
        /** Of success; default 200. */
        status: (_: 200 | 201) => ({}),
        /** Largest body in bytes; default 1 MiB. */
        limit: (_: number) => ({}),
        /** The form of replies; default `{ok, data}`. */
        frame: (_: Frame) => ({}),
      })
      .macro({ open: (_: true) => admission(anyone) })
  )
}
