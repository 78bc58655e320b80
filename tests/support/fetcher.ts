// A guarded fetch with a clock that only sleeping moves.

import type { Effect } from '../../lib/agent/core/effect.ts'
import { type FetchWorld, guardedFetch, type NetworkPolicy } from '../../lib/agent/fetch.ts'

export const NOW = Date.parse('2026-01-01T00:00:00Z')

interface FetcherOptions {
  effect?: Effect
  settings?: unknown
  network?: Partial<NetworkPolicy>
  signal?: AbortSignal
  world?: Partial<FetchWorld>
}

/** The fetch, how long it slept, what it logged, and what it reported to wait for. */
export function fetcher({ effect = 'read', settings = {}, network, signal, world }: FetcherOptions) {
  const waits: number[] = []
  const lines: string[] = []
  const reported: [reason: string, until: string | undefined][] = []
  let clock = NOW
  const fetch = guardedFetch(
    {
      settings,
      network: { allow: ['127.0.0.1'], literalOrigins: [], ...network },
      effect,
      signal: signal ?? new AbortController().signal,
      log: message => lines.push(message),
      waiting(reason, until) {
        reported.push([reason, until?.toISOString()])
        return { [Symbol.dispose]() {} }
      },
    },
    {
      env: {},
      now: () => clock,
      lived: () => clock,
      random: () => 0.5,
      async sleep(ms) {
        waits.push(ms)
        clock += ms
      },
      ...world,
    },
  )
  return { fetch, waits, lines, reported }
}
