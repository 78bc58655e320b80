// A server that misbehaves as real vendors do. Tests define its answers by path.

import { createServer, type Socket } from 'node:net'

export interface Seen {
  method: string
  path: string
  headers: Record<string, string>
  body: string
}

export type Answer = (request: Seen, count: number) => Response | Promise<Response>

export interface FaultServer {
  url: string
  seen: Seen[]
  /** Sets the answers of a path. `count` is the number of the request, from 1. */
  on(path: string, answer: Answer): void
  [Symbol.dispose](): void
}

export function faultServer(): FaultServer {
  const answers = new Map<string, Answer>()
  const seen: Seen[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const { method, headers } = request
      const entry = { method, path: pathname, headers: Object.fromEntries(headers), body: await request.text() }
      seen.push(entry)
      const answer = answers.get(pathname)
      return answer
        ? answer(entry, seen.filter(({ path }) => path === pathname).length)
        : new Response('', { status: 404 })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    seen,
    on: (path, answer) => answers.set(path, answer),
    [Symbol.dispose]: () => void server.stop(true),
  }
}

/**
 * A TCP server for behaviour that an HTTP server does not allow. `handle` receives each connection and its first bytes.
 */
export async function rawServer(handle: (socket: Socket, head: string) => void) {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', data => handle(socket, String(data)))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
