// A bad network between daemons and their hubs, as a TCP server: it cuts requests and replies half-way, swallows them,
// delays them, and leaves connections open without a word. It knows requests only by their first line.

import { connect, createServer, type Socket } from 'node:net'
import type { Random } from '../random.ts'

type Fate =
  | 'passes'
  | 'is late'
  | 'is lost'
  | 'is cut'
  | 'gets no reply'
  | 'gets half a reply'
  | 'falls into a hole'
  | 'waits for a reply from a hole'

const BAD: readonly Exclude<Fate, 'passes'>[] = [
  'is late',
  'is lost',
  'is cut',
  'gets no reply',
  'gets half a reply',
  'falls into a hole',
  'waits for a reply from a hole',
]

const LONGEST_DELAY_MS = 500
/** A connection into a hole is closed after this time at the latest, because the time-outs of daemons are longer. */
const DEEPEST_HOLE_MS = 4_000

export interface BadFront extends AsyncDisposable {
  url: string
  /** While this is set, everything passes. */
  calm: boolean
  /** The number of requests that did not pass. */
  losses: number
}

/** `ports` returns the ports of the hubs that can be reached now. Each connection goes to one of them. */
export async function startBadFront(ports: () => readonly number[], random: Random): Promise<BadFront> {
  const open = new Set<Socket>()
  const fateOf = (path: string): Fate => {
    if (front.calm) return 'passes'
    if (path === '/v1/daemons/ack' && random.once(7)) return random.once(2) ? 'is lost' : 'gets no reply'
    return random.once(16) ? random.of(BAD) : 'passes'
  }
  const server = createServer(client => {
    const hub = connect(random.of(ports()), '127.0.0.1')
    const cut = () => {
      for (const socket of [client, hub]) socket.destroy()
    }
    const cutLater = () => setTimeout(cut, random.below(DEEPEST_HOLE_MS)).unref()
    let fate: Fate = 'passes'
    for (const socket of [client, hub]) {
      open.add(socket)
      socket.on('error', cut)
      socket.on('close', () => {
        open.delete(socket)
        cut()
      })
    }
    client.on('data', (chunk: Buffer) => {
      const path = /^POST (\S+) HTTP/.exec(chunk.toString('latin1', 0, 200))?.[1]
      if (path) {
        fate = fateOf(path)
        if (fate !== 'passes') front.losses++
      }
      switch (fate) {
        case 'is lost':
          return cut()
        case 'is cut':
          return void hub.write(chunk.subarray(0, chunk.length / 2), cut)
        case 'falls into a hole':
          return void cutLater()
        case 'is late':
          client.pause()
          setTimeout(() => {
            hub.write(chunk)
            client.resume()
          }, random.below(LONGEST_DELAY_MS)).unref()
          return
        default:
          hub.write(chunk)
      }
    })
    hub.on('data', (chunk: Buffer) => {
      switch (fate) {
        case 'gets no reply':
          return cut()
        case 'gets half a reply':
          return void client.write(chunk.subarray(0, chunk.length / 2), cut)
        case 'waits for a reply from a hole':
          return void cutLater()
        default:
          client.write(chunk)
      }
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address() as { port: number }
  const front: BadFront = {
    url: `http://127.0.0.1:${address.port}`,
    calm: true,
    losses: 0,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
  return front
}
