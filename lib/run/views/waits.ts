// Says in words what a phase that has not ended waits for, and a run that has not begun, for people who wonder why nothing
// happens. A wait that ends at a known time says when.

import { turnOf } from '../../wire/concurrency.ts'
import type { Waiting } from '../../wire/records/run-records.ts'
import { type LiveRun, phaseEnded, turnOfBound } from '../core/core.ts'
import type { Store } from '../store/store.ts'

/**
 * Null when the phase waits for nothing. `note` is the wait that its agent reported last. `halted` says what the daemon
 * waits for before it starts anything, such as space on the disk, and is null when it starts. `wallTime` turns the lived
 * time at which something is due into what a clock on the wall will show.
 */
export function waitOf(
  live: LiveRun,
  position: number,
  note: { reason: string; until: Date | undefined } | undefined,
  halted: string | null,
  wallTime: (at: number) => number,
): Waiting | null {
  const phase = live.phases[position]!
  if (phase.state === 'running' && note) return { reason: note.reason, until: note.until?.getTime() ?? null }
  if (phase.state === 'pending' && phase.open === 0 && phase.dueAt !== null && !live.ready.includes(position)) {
    return { reason: nextOf(live, position), until: wallTime(phase.dueAt) }
  }
  const reason = reasonOf(live, position, halted)
  return reason === null ? null : { reason, until: null }
}

/** What a phase waits for that is begun again. */
function nextOf(live: LiveRun, position: number): string {
  const { turn, reason } = live.phases[position]!
  const { repeat } = live.phase(position)
  return reason === 'repeat' && turn && repeat ? turnText(turn.number + 1, repeat.most) : 'its next attempt'
}

/** `turn 3 of 40`. */
export const turnText = (turn: number, most: number): string => `turn ${turnOfBound(turn, most)} of ${most}`

function reasonOf(live: LiveRun, position: number, halted: string | null): string | null {
  const phase = live.phases[position]!
  const { team } = live
  if (phase.state === 'awaiting_input') return `a person (${phase.reason})`
  if (phase.state === 'running') {
    const map = live.maps.get(position)
    if (map && !map.stopped && map.next < map.total) return `concurrency of ${live.phase(position).name}`
    return null
  }
  if (phase.state !== 'pending') return null
  if (phase.open > 0) {
    const open = live.phase(position).dependsOn.filter(dependency => !phaseEnded(live.phases[dependency]!.state))
    return open.map(dependency => team.phases[dependency]!.name).join(', ')
  }
  if (live.parked) return `a place among the sub-runs of ${live.row.parent_phase}`
  if (live.running >= (team.concurrency ?? Number.POSITIVE_INFINITY)) return `concurrency of ${team.name}`
  return halted ?? 'a free slot of the daemon'
}

/** What a top run waits for before it begins; null when it waits for no key. */
export function turnOfRun({ concurrencyKeys }: Store, runId: string): string | null {
  const place = concurrencyKeys.get(runId)
  if (!place || place.holds) return null
  const holders = concurrencyKeys.of(place.key, 1).map(holder => holder.run_id)
  return turnOf(place.key, holders, concurrencyKeys.ahead(place))
}
