// What every step works with: rows, memory, and the notes of effects and changes.

import { type LiveRun, phaseEnded, type Slots } from '../../core/core.ts'
import type { Store } from '../../store/store.ts'
import type { Agenda } from './agenda.ts'
import type { Notes } from './notes.ts'
import type { World } from './world.ts'

export interface EngineState {
  readonly store: Store
  /** The runs that have not ended, by id. */
  readonly lives: Map<string, LiveRun>
  /**
   * Top runs that were `queued` for a concurrency key and that this process continues. The rows say which of them wait
   * now.
   */
  readonly queued: Set<string>
  readonly slots: Slots<LiveRun>
  readonly agenda: Agenda
  readonly notes: Notes
  readonly world: World
}

/** The run of a fact about an attempt; null when the phase has ended or is in another attempt. */
export function liveIn({ lives }: EngineState, runId: string, position: number, attempt: number): LiveRun | null {
  const live = lives.get(runId)
  const phase = live?.phases[position]
  return live && phase && phase.attempt === attempt && !phaseEnded(phase.state) ? live : null
}
