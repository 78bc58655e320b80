// Starts and stops an API. It is announced only when it is ready, and it stops within ten seconds whatever still runs.

import type { Server } from 'bun'
import type { AnyElysia } from 'elysia'
import { CadreError } from '../error.ts'
import type { Log } from '../log.ts'
import { routesOf } from './routes.ts'

/** Requests in progress get this long to end after a stop was requested. */
const GRACE_MS = 8_000

export interface Listening {
  readonly url: string
  readonly port: number
  readonly server: Server<unknown>
  /** Refuses new requests, ends long polls and streams, and waits at most eight seconds for the rest. */
  stop(): Promise<void>
}

export interface ListenOptions {
  host: string
  /** 0 means any free port. */
  port: number
}

/** An app that has the HTTP kit. */
export type App = Pick<AnyElysia, 'fetch' | 'routes' | 'server'> & { decorator: { stopping: AbortController } }

/** Serves `app`. Throws `conflict` when the address is not available, and when a route does not declare its access. */
export function listen(app: App, { host, port }: ListenOptions): Listening {
  routesOf(app)
  const server = bind(app, host, port)
  const listening: Listening = {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${server.port}`,
    port: server.port!,
    server,
    async stop() {
      app.decorator.stopping.abort()
      const force = setTimeout(() => server.stop(true), GRACE_MS)
      await server.stop()
      clearTimeout(force)
    },
  }
  return listening
}

/**
 * Elysia's own `listen` would share the port with another process and leave an exit hook behind for each server. The
 * routes limit the size of bodies and reply in our form. The server's own limit would reply before them.
 */
function bind(app: App, hostname: string, port: number): Server<unknown> {
  try {
    const server = Bun.serve({
      hostname,
      port,
      fetch: app.fetch,
      idleTimeout: 30,
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      development: false,
      // Outside of development Bun lets two processes share a port unnoticed, unless this is false.
      reusePort: false,
    })
    app.server = server
    return server
  } catch (error) {
    const { code } = error as { code?: string }
    const reason = code === 'EADDRINUSE' ? 'it is in use' : (code ?? String(error))
    throw new CadreError('conflict', `cannot listen on ${hostname} port ${port}: ${reason}; choose another with --port`)
  }
}

/**
 * Runs until SIGTERM or SIGINT, then stops `listening`, calls `close` and exits with 0, within ten seconds in any case.
 * Call it before the start is announced, because whoever reads that line may send a signal at once.
 */
export function stopOnSignal(listening: Listening, log: Log, close: () => void | Promise<void>): void {
  let stopping = false
  const stop = async (signal: string) => {
    if (stopping) return
    stopping = true
    log.info('stopping', { signal })
    setTimeout(() => process.exit(0), GRACE_MS + 1_500).unref()
    await listening.stop()
    await close()
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal))
}
