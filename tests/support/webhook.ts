// An incoming webhook as chat posts to it, on this machine.

export interface Webhook extends AsyncDisposable {
  readonly url: string
  /** What came, in order. */
  readonly told: string[]
  /** While it is true, nothing is answered. */
  held: boolean
  stop(): Promise<void>
}

export function webhook(): Webhook {
  const answer = Promise.withResolvers<void>()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      self.told.push(await request.text())
      if (self.held) await answer.promise
      return new Response('ok')
    },
  })
  const stop = async () => {
    answer.resolve()
    await server.stop(true)
  }
  const self: Webhook = { url: server.url.href, told: [], held: false, stop, [Symbol.asyncDispose]: stop }
  return self
}
