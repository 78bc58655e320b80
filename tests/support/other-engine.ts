// A proxy in front of PostgreSQL that makes of it an engine which speaks its protocol and lacks some of its statements: they
// are sent on as a call of a function that no server has, so the server itself refuses them.

import { connect, createServer, type Socket } from 'node:net'

const REFUSED = 'SELECT unimplemented_here()'

export interface OtherEngine extends AsyncDisposable {
  location: string
  /** The statements that were refused. */
  readonly refused: string[]
}

/** Refuses the statements that `lacks` finds. */
export async function otherEngine(database: string, lacks: RegExp): Promise<OtherEngine> {
  const { hostname, port } = new URL(database)
  const refused: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer(near => {
    const far = connect(Number(port || 5432), hostname)
    let rest = Buffer.alloc(0)
    let isStarted = false
    near.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      for (;;) {
        // The first message has no kind.
        const head = isStarted ? 1 : 0
        if (rest.length < head + 4) return
        const end = head + rest.readInt32BE(head)
        if (rest.length < end) return
        far.write(isStarted ? sent(rest.subarray(0, end)) : rest.subarray(0, end))
        isStarted = true
        rest = rest.subarray(end)
      }
    })
    far.pipe(near)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    near.on('close', () => far.destroy())
  })

  /** A message of the client as the server gets it: of those with a statement (Q and P), another one may be. */
  function sent(message: Buffer): Buffer {
    const kind = String.fromCharCode(message[0]!)
    if (kind !== 'Q' && kind !== 'P') return message
    const from = kind === 'Q' ? 5 : message.indexOf(0, 5) + 1
    const to = message.indexOf(0, from)
    const text = message.toString('utf8', from, to)
    if (!lacks.test(text)) return message
    refused.push(text)
    const body = Buffer.concat([message.subarray(5, from), Buffer.from(REFUSED), message.subarray(to)])
    const head = Buffer.alloc(5)
    head.write(kind)
    head.writeInt32BE(4 + body.length, 1)
    return Buffer.concat([head, body])
  }

  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', () => resolve()))
  const location = new URL(database)
  location.host = `127.0.0.1:${(server.address() as { port: number }).port}`
  return {
    location: location.href,
    refused,
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
