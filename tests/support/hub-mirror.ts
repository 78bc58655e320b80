// A server that answers as a hub does and changes what it answers: a hub that nobody should trust.

export interface Mirror extends AsyncDisposable {
  url: string
  /** Changes the data of each reply. At first nothing is changed. */
  change: (path: string, data: unknown) => unknown
}

export function startMirror(hubUrl: string): Mirror {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 255,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const { method, headers } = request
      const body = method === 'GET' ? null : await request.bytes()
      const reply = await fetch(hubUrl + pathname + search, { method, headers, body })
      if (reply.headers.get('content-type')?.startsWith('application/json') !== true) return reply
      const answer = (await reply.json()) as { data?: unknown }
      const data = mirror.change(pathname.slice('/v1/'.length), answer.data)
      return Response.json({ ...answer, data }, { status: reply.status })
    },
  })
  const mirror: Mirror = {
    url: server.url.origin,
    change: (_, data) => data,
    [Symbol.asyncDispose]: () => server.stop(true),
  }
  return mirror
}
