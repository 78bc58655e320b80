// What this process has done since its start, for `GET /metrics`.

import { Counter, Histogram } from '../../http/metrics.ts'

const WAITS = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400]

export class Counts {
  readonly changes = new Counter({
    name: 'cadre_sync_changes_total',
    help: 'Changes of runs that daemons have reported.',
  })
  readonly rejected = new Counter(
    { name: 'cadre_sync_rejected_changes_total', help: 'Changes that were refused, by the code of the refusal.' },
    [],
  )
  readonly signInFailures = new Counter({
    name: 'cadre_sign_in_failures_total',
    help: 'Sign-ins that failed or were not checked.',
  })
  /** From the dispatch of a run until a daemon accepted it, in seconds. */
  readonly waits = new Histogram(
    {
      name: 'cicd_pipeline_run_duration_seconds',
      help: 'Time that dispatched runs waited until a daemon accepted them.',
    },
    WAITS,
  )

  text(): string {
    return [this.changes, this.rejected, this.signInFailures, this.waits].map(each => each.text()).join('')
  }
}
