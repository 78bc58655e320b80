// A proxy in front of PostgreSQL that carries what clients say in rounds, as a long way does: what is said within one
// round arrives together, and all replies to it come back together. So the number of rounds is that of the round trips
// that somebody waits for, however many statements and connections each one has.

import { connect, createServer, type Socket } from 'node:net'

export interface TripProxy extends AsyncDisposable {
  port: number
  /** Runs `work`, and returns in how many rounds it was done. */
  tripsOf(work: () => Promise<unknown>): Promise<number>
}

/** Nobody says any more in a round when nothing was heard for this long. */
const QUIET_MS = 15

interface Pair {
  near: Socket
  far: Socket
  /** What the client has said, and what the server has replied, and the other side has not heard yet. */
  said: Buffer[]
  replied: Buffer[]
}

export async function tripProxy(host: string, port: number): Promise<TripProxy> {
  const pairs = new Set<Pair>()
  let isCounting = false
  let trips = 0
  let heardAt = 0
  const pass = (pair: Pair, to: 'near' | 'far', bytes: Buffer) => {
    heardAt = performance.now()
    if (!isCounting) pair[to].write(bytes)
    else pair[to === 'far' ? 'said' : 'replied'].push(bytes)
  }
  const deliver = (to: 'near' | 'far') => {
    let any = false
    for (const pair of pairs) {
      const waiting = pair[to === 'far' ? 'said' : 'replied'].splice(0)
      if (waiting.length === 0) continue
      pair[to].write(Buffer.concat(waiting))
      any = true
    }
    return any
  }
  const quiet = async () => {
    heardAt = performance.now()
    while (performance.now() - heardAt < QUIET_MS) await Bun.sleep(1)
  }
  const carry = async () => {
    while (isCounting) {
      await quiet()
      if (!deliver('far')) continue
      trips++
      await quiet()
      deliver('near')
    }
    deliver('far')
    deliver('near')
  }
  const server = createServer(near => {
    const pair: Pair = { near, far: connect(port, host), said: [], replied: [] }
    pairs.add(pair)
    near.on('data', (bytes: Buffer) => pass(pair, 'far', bytes))
    pair.far.on('data', (bytes: Buffer) => pass(pair, 'near', bytes))
    const end = () => {
      pairs.delete(pair)
      near.destroy()
      pair.far.destroy()
    }
    for (const socket of [near, pair.far]) socket.on('close', end).on('error', end)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', () => resolve()))
  return {
    port: (server.address() as { port: number }).port,
    async tripsOf(work) {
      trips = 0
      isCounting = true
      const carrying = carry()
      try {
        await work()
        return trips
      } finally {
        isCounting = false
        await carrying
      }
    },
    async [Symbol.asyncDispose]() {
      server.close()
      for (const { near, far } of [...pairs]) for (const socket of [near, far]) socket.destroy()
    },
  }
}
