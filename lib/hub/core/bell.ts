// Wakes everybody who waits for a change, in every process that uses the database: polls wait for jobs (by realm), and
// streams wait for events (by root run).

import type { Channel } from '../../../db/hub/channel.ts'
import { startPause } from '../../wait.ts'

export interface Bell {
  ring(name: string): void
  /** Starts listening for `name`. A ring between two waits is remembered. */
  listen(name: string): Ear
  /** Calls `hear` whenever the bell rings for `name`, until the returned function is called. */
  on(name: string, hear: () => void): () => void
}

export interface Ear extends Disposable {
  /**
   * Resolves when the bell rings (immediately if it has rung since the last wait), after `ms`, or when `signal` fires.
   */
  wait(ms: number, signal: AbortSignal): Promise<void>
}

export function createBell(channel: Channel | null): Bell {
  const listening = new Map<string, Set<() => void>>()
  const wakeAll = (name: string) => {
    for (const hear of listening.get(name) ?? []) hear()
  }
  channel?.receive(wakeAll, () => {
    for (const name of listening.keys()) wakeAll(name)
  })
  const on: Bell['on'] = (name, hear) => {
    const those = listening.get(name) ?? new Set()
    listening.set(name, those.add(hear))
    return () => {
      those.delete(hear)
      if (those.size === 0 && listening.get(name) === those) listening.delete(name)
    }
  }
  return {
    on,
    ring(name) {
      wakeAll(name)
      channel?.send(name)
    },
    listen(name) {
      let rang = false
      let wake = () => {}
      const hear = () => {
        rang = true
        wake()
      }
      const unheard = on(name, hear)
      return {
        async wait(ms, signal) {
          if (!rang && !signal.aborted) {
            const pause = startPause(ms, signal)
            wake = pause.end
            await pause.over
          }
          rang = false
        },
        [Symbol.dispose]: unheard,
      }
    },
  }
}
