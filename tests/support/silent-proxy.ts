// A proxy in front of a TCP server, which can fall silent as a machine does that vanishes: connections stay open, and
// nothing comes through them any more, not even their end.

import { connect, createServer, type Socket } from 'node:net'

export interface SilentProxy extends AsyncDisposable {
  port: number
  /** Makes the connections of now silent for ever. New ones work. */
  silence(): void
  /** New connections get no answer while this is true, and never will. */
  isDeaf: boolean
  /** Whether connections are refused from now on; those that are open end. */
  refuse(on: boolean): Promise<void>
  /** How many connections are open and not silent. */
  readonly open: number
}

export async function silentProxy(host: string, port: number): Promise<SilentProxy> {
  const pairs = new Set<{ near: Socket; far: Socket }>()
  const silent = new Set<Socket>()
  const server = createServer(near => {
    if (self.isDeaf) {
      silent.add(near.on('error', () => {}).resume())
      return
    }
    const pair = { near, far: connect(port, host) }
    pairs.add(pair)
    near.pipe(pair.far)
    pair.far.pipe(near)
    const end = () => {
      if (!pairs.delete(pair)) return
      near.destroy()
      pair.far.destroy()
    }
    for (const socket of [near, pair.far]) socket.on('close', end).on('error', end)
  })
  const listen = (at: number) => new Promise<void>(resolve => server.listen(at, '127.0.0.1', () => resolve()))
  await listen(0)
  const own = (server.address() as { port: number }).port
  const endAll = () => {
    for (const { near, far } of [...pairs]) for (const socket of [near, far]) socket.destroy()
  }
  const self: SilentProxy = {
    port: own,
    isDeaf: false,
    get open() {
      return pairs.size
    },
    silence() {
      for (const pair of [...pairs]) {
        const { near, far } = pair
        pairs.delete(pair)
        near.unpipe()
        far.unpipe()
        // What comes is read and thrown away, and the server behind sees the end.
        near.removeAllListeners('data').resume()
        far.destroy()
        silent.add(near)
      }
    },
    async refuse(on) {
      if (!on) return listen(own)
      server.close()
      endAll()
    },
    async [Symbol.asyncDispose]() {
      server.close()
      endAll()
      for (const socket of silent) socket.destroy()
    },
  }
  return self
}
