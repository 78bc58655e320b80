// Gives up the place that a top run has in its concurrency key. The next run begins in a unit of its own.

import type { EngineState } from '../state/state.ts'

export function releaseKey({ notes, store }: EngineState, runId: string): void {
  const key = store.concurrencyKeys.drop(runId)
  if (key !== null) notes.after({ kind: 'key', key })
}
