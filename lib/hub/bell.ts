// Wakes those who wait for something to change, in every process on the database: polls for jobs (by realm), streams
// (by root run).

import type { Channel } from '../../db/hub/store.ts'

export interface Bell {
  ring(name: string): void
  /** Resolves when `name` rings, after `ms`, or when `signal` fires. */
  wait(name: string, ms: number, signal: AbortSignal): Promise<void>
}

export function createBell(channel: Channel | null): Bell {
  const waiting = new Map<string, Set<() => void>>()
  const wakeAll = (name: string) => {
    for (const wake of waiting.get(name) ?? []) wake()
  }
  channel?.receive(wakeAll)
  return {
    ring(name) {
      wakeAll(name)
      channel?.send(name)
    },
    wait(name, ms, signal) {
      const { promise, resolve } = Promise.withResolvers<void>()
      if (signal.aborted) return Promise.resolve()
      const those = waiting.get(name) ?? new Set()
      waiting.set(name, those.add(wake))
      const timer = setTimeout(wake, ms)
      signal.addEventListener('abort', wake)
      return promise

      function wake(): void {
        clearTimeout(timer)
        signal.removeEventListener('abort', wake)
        those.delete(wake)
        if (those.size === 0 && waiting.get(name) === those) waiting.delete(name)
        resolve()
      }
    },
  }
}
