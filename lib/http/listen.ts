// Starts and stops the server of an API. The server stops within ten seconds, whatever still runs.

import { networkInterfaces } from 'node:os'
import type { Server } from 'bun'
import { CadreError } from '../error.ts'
import type { Fields, Log } from '../log/log.ts'
import { startPause } from '../wait.ts'
import { receivedBy } from './peers.ts'
import { routesOf } from './routes.ts'
import { type App, watched } from './watch.ts'

/** Requests in progress get this long to end after a stop was requested. */
const GRACE_MS = 8_000
/** A process ends this long after it began to stop at the latest. */
export const STOP_MS = GRACE_MS + 1_500

/** The longest drain. The services of deploy/ give a stop this time and 15 seconds. */
export const MOST_DRAIN_SECONDS = 300

export interface Listening {
  readonly url: string
  readonly port: number
  readonly server: Server<unknown>
  /** From now on `/ready` says that the server stops. Everything is still answered. */
  leave(): void
  /** Refuses new requests, ends long polls and streams, and waits at most eight seconds for the rest. */
  stop(): Promise<void>
}

export interface ListenOptions {
  host: string
  /** 0 means any free port. */
  port: number
  /**
   * Whether pages are opened at `localhost`, which browsers look for at `::1` first: the port is taken there as well, so that no
   * other user of the machine can answer in the name of this program.
   */
  asLocalhost?: boolean
}

/** How often a free port is looked for that is free at `::1`, too. */
const TRIES = 10

/** Serves `app`. Throws `conflict` when the address is not available, and when a route does not declare its access. */
export function listen(app: App, { host, port, asLocalhost = false }: ListenOptions): Listening {
  routesOf(app)
  const isBoth = asLocalhost && host === '127.0.0.1' && hasLoopback6()
  const [server, ...others] = isBoth ? bindBoth(app, port) : ([bind(app, host, port)] as const)
  const servers = [server, ...others]
  app.server = server
  const listening: Listening = {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${server.port}`,
    port: server.port!,
    server,
    leave() {
      app.decorator.leaving.abort()
    },
    async stop() {
      app.decorator.stopping.abort()
      const force = setTimeout(() => servers.map(each => each.stop(true)), GRACE_MS)
      await Promise.all(servers.map(each => each.stop()))
      clearTimeout(force)
    },
  }
  return listening
}

const hasLoopback6 = (): boolean =>
  Object.values(networkInterfaces()).some(addresses => addresses?.some(({ address }) => address === '::1'))

function bindBoth(app: App, port: number): [Server<unknown>, Server<unknown>] {
  for (let left = TRIES; ; left--) {
    const server = bind(app, '127.0.0.1', port)
    try {
      return [server, bind(app, '::1', server.port!, receivedBy)]
    } catch (error) {
      server.stop(true)
      if (port !== 0 || left === 0) throw error
    }
  }
}

/**
 * Elysia's own `listen` would share the port with another process and leave an exit hook behind for each server. The
 * routes limit the size of bodies and reply in our form. The server's own limit would reply before them.
 */
function bind(app: App, hostname: string, port: number, note?: typeof receivedBy): Server<unknown> {
  const answer = watched(app)
  try {
    return Bun.serve({
      hostname,
      port,
      fetch: note
        ? (request, server) => {
            note(server, request)
            return answer(request)
          }
        : answer,
      idleTimeout: 30,
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      development: false,
      // Outside of development Bun lets two processes share a port unnoticed, unless this is false.
      reusePort: false,
    })
  } catch (error) {
    const { code } = error as { code?: string }
    const reason = code === 'EADDRINUSE' ? 'it is in use' : (code ?? String(error))
    throw new CadreError('conflict', `cannot listen on ${hostname} port ${port}: ${reason}; choose another with --port`)
  }
}

/** Reads CADRE_DRAIN_SECONDS, of which `drainMsOf` says what counts. */
export function drainSecondsIn({ CADRE_DRAIN_SECONDS: text }: Record<string, string | undefined>): number {
  if (!text) return 0
  if (/^[0-9]+$/.test(text)) return Number(text)
  const expected = `expected a whole number from 0 to ${MOST_DRAIN_SECONDS}`
  throw new CadreError('invalid_request', `CADRE_DRAIN_SECONDS: ${expected}, got ${text}`)
}

/** `seconds` of CADRE_DRAIN_SECONDS in milliseconds. Warns of more than the longest drain, which then counts. */
export function drainMsOf(seconds: number, log: Log): number {
  if (seconds > MOST_DRAIN_SECONDS) {
    log.warn('CADRE_DRAIN_SECONDS is longer than the longest drain, which counts', {
      seconds,
      counts: MOST_DRAIN_SECONDS,
    })
  }
  return Math.min(seconds, MOST_DRAIN_SECONDS) * 1_000
}

export interface DrainOptions {
  /** How long a drain lasts that a signal begins. */
  ms: number
  /** Begins a drain of at most `ms`; the default is a pause of that time. */
  start?(ms: number): { over: Promise<void>; end(): void }
}

/**
 * Runs until SIGTERM or SIGINT, then stops `listening`, calls `close` and exits with 0, within ten seconds in any case.
 * During the drain before that it still answers, and `/ready` says that it stops, so that a load balancer can send requests
 * elsewhere. A second signal ends the drain. Call this before the start is announced, because whoever reads that line may
 * send a signal at once. Returns a function that does what a signal does, with a drain of its own length.
 */
export function stopOnSignal(
  listening: Listening,
  log: Log,
  close: () => void | Promise<void>,
  { ms: signalMs, start = startPause }: DrainOptions,
): (because: Fields, ms: number) => Promise<void> {
  let drain: ReturnType<typeof start> | null = null
  const stop = async (because: Fields, ms: number) => {
    if (drain) return drain.end()
    log.info('stopping', because)
    listening.leave()
    drain = start(ms)
    if (ms > 0) await drain.over
    setTimeout(() => process.exit(0), STOP_MS).unref()
    await listening.stop()
    await close()
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop({ signal }, signalMs))
  return stop
}
