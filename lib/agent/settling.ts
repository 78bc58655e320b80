// Asks the other system about a write whose reply was lost: at once, at growing distances, and when the settling time is
// over. The engine and the suite for agents both ask with it.

import { AgentError } from './core/agent-error.ts'

/** How long a write may be on its way, unless the action says otherwise. */
export const SETTLE_MS = 60_000
/** The first look after the one at once. */
const FIRST_LOOK_MS = 1_000
/** A look-up that fails for now is tried at least so often. */
const LEAST_LOOKS = 3

export interface Question<T> {
  /** Null when the other system does not show the write. */
  find(): Promise<T | null>
  /** Whether null is proof at any time. */
  seesAtOnce: boolean
  /** When the request ended, and how long after that null begins to count, in milliseconds. */
  ended: number
  settles: number
  now(): number
  pause(ms: number, signal?: AbortSignal): Promise<void>
  /** Called before each pause, with how long it may still take. */
  waits?(ms: number): Promise<void>
  stopped?: AbortSignal
}

/** `stopped`: nothing is known, because the question was called off. */
export type Settled<T> = { found: T } | 'absent' | 'stopped' | { failed: unknown }

export async function settle<T>(question: Question<T>): Promise<Settled<T>> {
  const { seesAtOnce, settles, stopped } = question
  const end = question.ended + settles
  let distance = Math.max(1, Math.min(FIRST_LOOK_MS, settles / 4))
  for (let looks = 1; ; looks++) {
    const isLast = question.now() >= end
    try {
      const found = await question.find()
      if (found !== null) return { found }
      if (seesAtOnce || isLast) return 'absent'
    } catch (thrown) {
      const mayPass = thrown instanceof AgentError && thrown.retryable && !(isLast && looks >= LEAST_LOOKS)
      if (!mayPass || stopped?.aborted) return { failed: thrown }
    }
    const left = end - question.now()
    await question.waits?.(Math.max(left, distance))
    await question.pause(left > 0 ? Math.min(left, distance) : isLast ? distance : 0, stopped)
    // An answer that comes too early proves nothing.
    if (stopped?.aborted) return 'stopped'
    distance *= 2
  }
}
