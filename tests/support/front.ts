// A server between a daemon and its hub that loses calls, as a bad network does.

/** What gets lost of a call: it never arrives, or it arrives and its reply does not come back. */
export type Loss = 'request' | 'reply'

export interface SeenCall {
  path: string
  // biome-ignore lint/suspicious/noExplicitAny: the bodies of all calls; null for a file.
  body: any
}

export interface Front extends AsyncDisposable {
  url: string
  /** Every call that came, lost or not. */
  seen: SeenCall[]
  /** Decides what gets lost from now on. At first nothing is. */
  loses: (call: SeenCall) => Loss | null
}

export function startFront(hubUrl: string): Front {
  const gateway = () => new Response('gateway time-out', { status: 504 })
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 255,
    async fetch(request) {
      const { pathname: path, search } = new URL(request.url)
      const bytes = await request.bytes()
      const body = request.method === 'POST' ? JSON.parse(new TextDecoder().decode(bytes) || '{}') : null
      const call = { path, body }
      front.seen.push(call)
      const lost = front.loses(call)
      if (lost === 'request') return gateway()
      const { method, headers, signal } = request
      const sent = method === 'GET' ? null : bytes
      const reply = await fetch(hubUrl + path + search, { method, headers, body: sent, signal }).catch(gateway)
      return lost === 'reply' ? gateway() : reply
    },
  })
  const front: Front = {
    url: server.url.origin,
    seen: [],
    loses: () => null,
    [Symbol.asyncDispose]: () => server.stop(true),
  }
  return front
}
