// The clocks of a run: its deadline, the time of a retry, the patience with a cancelled attempt. Each is set from a row,
// and when it strikes it looks whether the row still means it; so a clock too many does no harm.

import type { LiveRun } from './live.ts'
import type { Machine } from './machine.ts'

/** How long a cancelled attempt has before its phase is ended without it. */
const ABORT_GRACE_MS = 4_500

export function watchDeadline(machine: Machine, live: LiveRun): void {
  const { id, deadline } = live.row
  if (deadline === null) return
  machine.host.schedule(deadline, () => {
    if (machine.lives.get(id)?.row.deadline === deadline) machine.end(id, { state: 'failed', reason: 'timeout' })
  })
}

export function watchRetry(machine: Machine, live: LiveRun, position: number): void {
  const { id } = live
  const { attempt, dueAt } = live.phases[position]!
  machine.host.schedule(dueAt!, () => {
    const current = machine.lives.get(id)
    const phase = current?.phases[position]
    if (!current || !phase || phase.state !== 'pending' || phase.attempt !== attempt) return
    current.makeReady(position)
    machine.step(current)
    machine.drain()
  })
}

/** An attempt that does not heed its signal is ended without it. */
export function watchAbort(machine: Machine, live: LiveRun, position: number, attempt: number): void {
  const late = () => machine.attemptEnded(live.id, position, attempt, { kind: 'cancelled' })
  machine.host.schedule(machine.host.now() + ABORT_GRACE_MS, late)
}
