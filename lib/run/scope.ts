// What expressions of a run can name. Results come from the database when they are named, so that memory holds none,
// and are the same before and after a restart.

import type { Json } from '../json.ts'
import type { PhaseValue, Scope } from '../team/team.ts'
import type { LiveRun } from './live.ts'
import { parse } from './records.ts'
import { filesOf, type RunStore } from './store.ts'

/** The last results that were asked for: a map's inputs name the same ones for every item. */
const RECENT = 8
const recent = new Map<string, PhaseValue>()

export function scopeOf(machine: { store: RunStore }, live: LiveRun, item?: { value: Json; index: number }): Scope {
  return {
    inputs: live.inputs,
    run: { id: live.id, name: live.row.run_name },
    phase(name) {
      const position = live.team.phases.findIndex(phase => phase.name === name)
      return phaseValue(machine.store, live.id, position, live.phases[position]!.attempt)
    },
    ...(item && { item: item.value, index: item.index }),
  }
}

function phaseValue(store: RunStore, runId: string, position: number, attempt: number): PhaseValue {
  const row = store.phase(runId, position)!
  const key = `${runId}:${position}:${attempt}:${row.state}:${row.reason}:${row.completed_at}`
  const known = recent.get(key)
  if (known) return known
  const value: PhaseValue = {
    state: row.state,
    reason: row.reason,
    text: row.text ?? '',
    data: parse<Json>(row.data),
    files: filesOf(row),
  }
  recent.set(key, value)
  if (recent.size > RECENT) recent.delete(recent.keys().next().value!)
  return value
}
