// A top run gives up its concurrency key, or its wait for it. The next run starts in a unit of its own.

import type { EngineState } from '../state/state.ts'

export function releaseKey({ notes, store }: EngineState, runId: string): void {
  const key = store.concurrencyKeys.drop(runId)
  if (key !== null) notes.after({ kind: 'key', key })
}
