// What a review is about: the team, the run and the phase. A run without a name is not named, for nobody knows it by its id.

import type { AskedReview } from '../../wire/records/review-records.ts'
import { to, withQuery } from '../kit/route.ts'

export function AskedAbout({
  review: { run_id, run_name, phase, team },
}: {
  review: Pick<AskedReview, 'run_id' | 'run_name' | 'phase' | 'team'>
}) {
  return (
    <a href={withQuery(to('runs', run_id), { phase: phase ?? '' })}>
      {[team, run_name, phase ?? 'start'].filter(Boolean).join(' › ')}
    </a>
  )
}
