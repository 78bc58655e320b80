// The address of a database, which can fall silent as a machine does that vanishes: what is connected hears nothing any
// more, not even an end, and who connects gets no answer.

import { connect, createServer, type Socket } from 'node:net'

export interface DatabaseFront extends AsyncDisposable {
  readonly port: number
  silence(): void
  /** The address answers again. What fell silent stays so. */
  answer(): void
}

export async function databaseFront(port: number): Promise<DatabaseFront> {
  const pairs = new Map<Socket, Socket>()
  const silent = new Set<Socket>()
  let isSilent = false
  const mute = (near: Socket) => {
    near.removeAllListeners()
    near.on('error', () => {}).resume()
    silent.add(near)
  }
  const server = createServer(near => {
    if (isSilent) return mute(near)
    const far = connect(port, '127.0.0.1')
    pairs.set(near, far)
    near.pipe(far).pipe(near)
    const end = () => {
      if (!pairs.delete(near)) return
      near.destroy()
      far.destroy()
    }
    for (const socket of [near, far]) socket.on('close', end).on('error', end)
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  return {
    port: (server.address() as { port: number }).port,
    silence() {
      isSilent = true
      for (const [near, far] of [...pairs]) {
        pairs.delete(near)
        near.unpipe()
        far.unpipe()
        mute(near)
        // The machine is gone, and with it what its server did for these connections.
        far.destroy()
      }
    },
    answer() {
      isSilent = false
    },
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of [...pairs.keys(), ...pairs.values(), ...silent]) socket.destroy()
    },
  }
}
