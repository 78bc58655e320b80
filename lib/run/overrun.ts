// The clock of a `team` or `map` phase: when an attempt takes too long, what runs below it is cancelled and it fails.
// As with the clock of a run, the time that a person takes to answer does not end it.

import { formatDuration } from '../duration.ts'
import type { LiveRun } from './live.ts'
import type { Machine } from './machine.ts'
import { stopRun } from './stopping.ts'

/** To be called when an attempt begins, and again when it is read back. */
export function watchOverrun(machine: Machine, live: LiveRun, position: number): void {
  const { type, timeout } = live.phase(position)
  if (timeout === undefined || (type !== 'team' && type !== 'map')) return
  const { id } = live
  const { attempt } = live.phases[position]!
  const strike = () => {
    const current = machine.lives.get(id)
    const phase = current?.phases[position]
    if (!current || current.ending || !phase || phase.attempt !== attempt) return
    if (phase.state === 'awaiting_input') machine.host.schedule(machine.host.now() + timeout, strike)
    else if (phase.state === 'running') {
      overrun(machine, current, position, timeout)
      machine.drain()
    }
  }
  machine.host.schedule(machine.store.phase(id, position)!.started_at! + timeout, strike)
}

/** The error stands in the row before the last sub-run ends, which then makes the phase fail with it. */
function overrun(machine: Machine, live: LiveRun, position: number, timeout: number): void {
  const message = `the attempt took longer than ${formatDuration(timeout)}`
  machine.store.setPhaseError(live.id, position, { code: 'timeout', message })
  const progress = live.maps.get(position)
  if (progress) progress.stopped = true
  for (const child of [...live.below(position)]) stopRun(machine, child, { state: 'cancelled', reason: 'parent' })
}
