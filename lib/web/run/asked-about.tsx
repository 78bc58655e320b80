// A link to the run, with the phase if it is about one.

import type { AskedReview } from '../../wire/records/run-records.ts'
import { to, withQuery } from '../kit/route.ts'

export function AskedAbout({
  review: { run_id, run_name, phase },
}: {
  review: Pick<AskedReview, 'run_id' | 'run_name' | 'phase'>
}) {
  return (
    <a href={withQuery(to('runs', run_id), { phase: phase ?? '' })}>
      {run_name ?? run_id}
      {phase !== null && ` › ${phase}`}
    </a>
  )
}
