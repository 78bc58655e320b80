// Errands that a phase or a run waits for. Their results are taken only while the errand is awaited: a phase that ends or
// asks a person awaits none, and no attempt awaits those of an earlier one. A tree that was read again sends its errands
// again; the first result counts, whichever of the two had it.

import type { RunId } from '../../../files/run-id.ts'
import type { LiveRun } from '../../core/core.ts'
import { type Errand, OF_RUN } from './effects.ts'
import type { Work } from './state.ts'

/** Sends an errand for a phase that has begun, or for a run (`OF_RUN`). */
export function sendErrand(
  { notes }: Work,
  live: LiveRun,
  position: number,
  kind: Errand['kind'],
  child?: RunId,
): void {
  const attempt = position === OF_RUN ? 0 : live.phases[position]!.attempt
  const key = `${kind} ${live.row.attempt} ${attempt} ${child ?? ''}`
  const awaited = live.errands.get(position)
  if (awaited) awaited.add(key)
  else live.errands.set(position, new Set([key]))
  const errand: Errand = { kind, runId: live.id, position, key, ...(child !== undefined && { child }) }
  notes.after({ kind: 'errand', errand })
}

/** The run that awaits the errand; null when none does any more. */
export function awaiting({ lives }: Pick<Work, 'lives'>, { runId, position, key }: Errand): LiveRun | null {
  const live = lives.get(runId)
  return live?.errands.get(position)?.has(key) ? live : null
}

export function errandDone(live: LiveRun, { position, key }: Errand): void {
  const awaited = live.errands.get(position)
  awaited?.delete(key)
  if (awaited?.size === 0) live.errands.delete(position)
}
