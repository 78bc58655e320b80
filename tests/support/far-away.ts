// A proxy in front of a database that is far away: each answer is on its way for a while.

import { connect, createServer, type Socket } from 'node:net'

export interface FarAway extends AsyncDisposable {
  location: string
}

export async function farAway(database: string, ms: number): Promise<FarAway> {
  const { hostname, port } = new URL(database)
  const sockets = new Set<Socket>()
  const server = createServer(near => {
    const far = connect(Number(port || 5432), hostname)
    near.pipe(far)
    far.on('data', chunk => void setTimeout(() => near.write(chunk), ms))
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    near.on('close', () => far.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', () => resolve()))
  const location = new URL(database)
  location.host = `127.0.0.1:${(server.address() as { port: number }).port}`
  return {
    location: location.href,
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
