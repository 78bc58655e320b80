// Gives up the place that a top run has in its concurrency key. The next run begins in a unit of its own.

import type { Work } from './state.ts'

export function giveUpPlace({ notes, store }: Work, runId: string): void {
  const key = store.keyPlaces.drop(runId)
  if (key !== null) notes.after({ kind: 'key', key })
}
