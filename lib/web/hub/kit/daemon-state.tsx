// Whether a daemon answers and takes runs, and its labels.

import type { Daemon } from '../../../wire/records/hub-records.ts'
import { State } from '../../kit/state.tsx'

/** The state of a daemon, in the shapes of runs. */
const SHOWN: Record<string, string> = {
  online: 'completed',
  stale: 'awaiting_input',
  offline: 'cancelled',
  removed: 'cancelled',
}

export function Status({ of }: { of: Daemon }) {
  if (of.status === 'online' && !of.approved) return <State of="awaiting_input" word="waits for approval" />
  if (of.status === 'online' && of.stuck) return <State of="failed" word="stuck" />
  if (of.status === 'online' && of.paused) return <State of="interrupted" word="paused" />
  return <State of={SHOWN[of.status] ?? 'pending'} word={of.status} />
}

export function Labels({ of: { labels } }: { of: Daemon }) {
  return (
    <ul class="labels" aria-label="Labels">
      {Object.entries(labels).map(([name, value]) => (
        <li key={name}>
          {name}
          {value !== 'yes' && <span class="quiet">={value}</span>}
        </li>
      ))}
    </ul>
  )
}
