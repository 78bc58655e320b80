// The loop of a serving hub that looks at triggers.

import { messageOf } from '../../error.ts'
import type { Hub } from '../core/hub.ts'
import { tick } from './tick.ts'

const EVERY_MS = 1_000

/** Looks every second, and never twice at once, until what is returned is called. It ends when the last look has. */
export function lookAtTriggers(hub: Hub): () => Promise<void> {
  let looking: Promise<void> | null = null
  let failed = false
  const look = async () => {
    try {
      await tick(hub)
      failed = false
    } catch (error) {
      // Slots stay due while the database is away.
      if (!failed) hub.log.warn('triggers could not be looked at', { error: messageOf(error).split('\n', 1)[0] })
      failed = true
    }
    looking = null
  }
  const timer = setInterval(() => {
    looking ??= look()
  }, EVERY_MS)
  timer.unref()
  return async () => {
    clearInterval(timer)
    await looking
  }
}
