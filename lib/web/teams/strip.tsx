// The last runs of a team as a strip of their states, the newest at the end. Each is a link to its run.

import { tookMs } from '../../wire/records/words.ts'
import { to } from '../kit/route.ts'
import { State, wordOf } from '../kit/state.tsx'
import { durationOf } from '../kit/time.tsx'

interface StripRun {
  run_id: string
  state: string
  run_name: string | null
  started_at: number | null
  completed_at: number | null
  lived_ms?: number | null | undefined
}

/** `runs`: newest first. `here`: the run whose page this is. */
export function Strip({ runs, here }: { runs: readonly StripRun[]; here?: string }) {
  return (
    <ol class="strip" aria-label="States, the newest at the end">
      {runs.toReversed().map(run => (
        <li key={run.run_id}>
          <a href={to('runs', run.run_id)} title={aboutOf(run)} aria-current={run.run_id === here ? 'page' : undefined}>
            <State of={run.state} bare />
          </a>
        </li>
      ))}
    </ol>
  )
}

function aboutOf(run: StripRun): string {
  const took = tookMs(run)
  const begun = run.started_at === null ? '' : new Date(run.started_at).toLocaleString()
  return [run.run_name, wordOf(run.state), took === null ? '' : durationOf(took), begun].filter(Boolean).join(', ')
}
