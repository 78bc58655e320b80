// Wakes everybody who waits for a change, in every process that uses the database: polls wait for jobs (by realm), and
// streams wait for events (by root run).

import type { Channel } from '../../../db/hub/channel.ts'
import { startPause } from '../../wait.ts'

export interface Notifier {
  notify(name: string): void
  /** A notification between two waits ends the next wait at once. */
  subscribe(name: string): Subscription
  /** Calls `listener` at each notification of `name`, until the returned function is called. */
  on(name: string, listener: () => void): () => void
}

export interface Subscription extends Disposable {
  /**
   * Resolves at a notification (immediately if there was one since the last wait), after `ms`, or when `signal` fires.
   */
  wait(ms: number, signal: AbortSignal): Promise<void>
}

export function createNotifier(channel: Channel | null): Notifier {
  const listening = new Map<string, Set<() => void>>()
  const wakeAll = (name: string) => {
    for (const listener of listening.get(name) ?? []) listener()
  }
  channel?.receive(wakeAll, () => {
    for (const name of listening.keys()) wakeAll(name)
  })
  const on: Notifier['on'] = (name, listener) => {
    const listeners = listening.get(name) ?? new Set()
    listening.set(name, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && listening.get(name) === listeners) listening.delete(name)
    }
  }
  return {
    on,
    notify(name) {
      wakeAll(name)
      channel?.send(name)
    },
    subscribe(name) {
      let isNotified = false
      let wake = () => {}
      const listener = () => {
        isNotified = true
        wake()
      }
      const unsubscribe = on(name, listener)
      return {
        async wait(ms, signal) {
          if (!isNotified && !signal.aborted) {
            const pause = startPause(ms, signal)
            wake = pause.end
            await pause.over
          }
          isNotified = false
        },
        [Symbol.dispose]: unsubscribe,
      }
    },
  }
}
