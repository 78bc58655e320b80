// A server before the daemon, which can be cut off.

export const frontOf = (url: string, port: number) =>
  Bun.serve({
    hostname: '127.0.0.1',
    port,
    idleTimeout: 255,
    fetch({ url: asked, method, headers, body }) {
      const { pathname, search } = new URL(asked)
      return fetch(url + pathname + search, { method, headers: { ...headers.toJSON(), host: new URL(url).host }, body })
    },
  })
