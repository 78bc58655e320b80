// Errands that a team or map phase waits for.

import type { LiveRun } from '../core/core.ts'
import type { Errand } from './effects.ts'
import type { Work } from './work.ts'

/** Sends an errand for a phase that has begun. */
export function sendErrand(
  { notes }: Work,
  live: LiveRun,
  position: number,
  kind: Errand['kind'],
  child?: string,
): void {
  live.errands.set(position, (live.errands.get(position) ?? 0) + 1)
  const { attempt } = live.phases[position]!
  const errand = { kind, runId: live.id, position, attempt, ...(child !== undefined && { child }) }
  notes.after({ kind: 'errand', errand })
}

export function errandDone(live: LiveRun, position: number): void {
  const left = (live.errands.get(position) ?? 1) - 1
  if (left > 0) live.errands.set(position, left)
  else live.errands.delete(position)
}
