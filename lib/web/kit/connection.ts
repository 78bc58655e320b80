// Whether the server answers. While it does not, what is shown grows old, and nothing can be changed.

import { signal } from '@preact/signals'
import { hearClock, serverNow } from './clock.ts'

/** When the server answered last, while it does not answer; null while it does. */
export const lost = signal<number | null>(null)

let heardAt = serverNow()
/** How many requests in a row got no reply. One alone may have been lost on its way. */
let misses = 0

export const isInDoubt = (): boolean => misses > 0

/** The server has replied to what was sent then. */
export function heard(reply: Response, sentAt: number): void {
  hearClock(reply.headers.get('date'), sentAt)
  heardAt = serverNow()
  misses = 0
  lost.value = null
}

/** A request got no reply. */
export function missed(): void {
  misses++
  if (misses > 1) lost.value ??= heardAt
}
