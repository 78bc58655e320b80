// Who sent a request. A program that listens twice has two servers, and each knows only the senders of its own requests.

import type { Server } from 'bun'
import { arrivedAs } from './nested.ts'

const received = new WeakMap<Request, Server<unknown>>()

/** Notes that a server besides that of the app has received a request. */
export const receivedBy = (server: Server<unknown>, request: Request): unknown => received.set(request, server)

/** The address of the sender; null where it is not known. `server` is that of the app. */
export function peerOf(server: Server<unknown> | null, request: Request): string | null {
  const first = arrivedAs(request)
  return (received.get(first) ?? server)?.requestIP(first)?.address ?? null
}
