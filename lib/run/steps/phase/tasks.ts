// Tasks that a phase or a run waits for. The result of a task counts only while the task is awaited: a phase that ends
// or asks a person awaits none, and an attempt awaits none of an earlier attempt. A tree that was read again sends its
// tasks again; the first result counts.

import type { RunId } from '../../../files/run-id.ts'
import type { LiveRun } from '../../core/core.ts'
import { OF_RUN, type Task } from '../state/effects.ts'
import type { EngineState } from '../state/state.ts'

/** Sends a task for a phase that is in progress, or for a run (`OF_RUN`). */
export function sendTask(
  { notes }: EngineState,
  live: LiveRun,
  position: number,
  kind: Task['kind'],
  child?: RunId,
): void {
  const attempt = position === OF_RUN ? 0 : live.phases[position]!.attempt
  const key = `${kind} ${live.row.attempt} ${attempt} ${child ?? ''}`
  const awaited = live.tasks.get(position)
  if (awaited) awaited.add(key)
  else live.tasks.set(position, new Set([key]))
  const task: Task = { kind, runId: live.id, position, key, ...(child !== undefined && { child }) }
  notes.after({ kind: 'task', task })
}

/** The run that awaits the task; null when none does any more. */
export function awaiting({ lives }: Pick<EngineState, 'lives'>, { runId, position, key }: Task): LiveRun | null {
  const live = lives.get(runId)
  return live?.tasks.get(position)?.has(key) ? live : null
}

export function taskDone(live: LiveRun, { position, key }: Task): void {
  const awaited = live.tasks.get(position)
  awaited?.delete(key)
  if (awaited?.size === 0) live.tasks.delete(position)
}
