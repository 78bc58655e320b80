// A proxy before a fake vendor, on a clock that is driven: it loses replies to writes, lets writes land later than it
// answers, and after a write it may answer the next reads as they were answered before.

import type { DrivenClock } from '../../lib/testing/driven-clock.ts'
import { copyOf } from '../../lib/testing/fake-vendor.ts'
import type { Fate } from './late-vendor.ts'

/** Reads whose replies are never those of another: of a repository, and of new ids. */
const OWN = /\.git\/|\/generateIds$/

export interface LateProxy extends Disposable {
  url: string
  /** Nothing reaches the vendor: who calls counts as killed. */
  deaf: boolean
  /** What becomes of a request that writes. */
  fate: () => Fate
  /** What writes that are not there yet have in their addresses and bodies. */
  coming: Set<string>
  /** How many late writes are landing at this moment. */
  landing: number
}

export function lateProxy(vendorUrl: string, writes: RegExp, clock: DrivenClock): LateProxy {
  /** By request: the last reply to a read. */
  const known = new Map<string, Response>()
  let hidden = 0
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (proxy.deaf) return new Response('killed', { status: 503 })
      const { pathname, search } = new URL(request.url)
      const { method } = request
      const headers = new Headers(request.headers)
      for (const name of ['host', 'content-length', 'connection', 'accept-encoding']) headers.delete(name)
      const body = method === 'GET' || method === 'HEAD' ? null : await request.bytes()
      const forward = () => fetch(vendorUrl + pathname + search, { method, headers, body, redirect: 'manual' })
      const text = `${pathname}${search} ${body === null ? '' : new TextDecoder().decode(body)}`
      if (!writes.test(`${method} ${pathname}`)) {
        const before = known.get(text)
        if (before && hidden-- > 0) return copyOf(before)
        const now = await forward()
        if (!OWN.test(pathname)) known.set(text, copyOf(now))
        return now
      }
      const fate = proxy.fate()
      const { reply = 'ok', lands = 0 } = fate
      hidden = fate.hidden ?? 0
      if (reply === 'refused') return Response.json({ message: 'not allowed' }, { status: 403 })
      if (lands === 0) {
        const done = await forward()
        return reply === 'ok' ? done : lost()
      }
      if (lands !== null) void land(forward, text, lands)
      return lost()
    },
  })
  const land = async (forward: () => Promise<Response>, text: string, after: number) => {
    proxy.coming.add(text)
    await clock.pause(after)
    proxy.landing++
    await (await forward()).text()
    proxy.landing--
    proxy.coming.delete(text)
  }
  const proxy: LateProxy = {
    url: `http://127.0.0.1:${server.port}`,
    deaf: false,
    fate: () => ({}),
    coming: new Set(),
    landing: 0,
    [Symbol.dispose]: () => void server.stop(true),
  }
  return proxy
}

const lost = () => new Response('the gateway waited too long', { status: 504 })
