// What this process has done since its start, for `GET /metrics`.

import { Counter, type MetricsOptions } from '../../http/metrics.ts'
import { RunDurations } from '../../http/run-durations.ts'

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
  readonly runs: RunDurations

  constructor(options: MetricsOptions) {
    this.runs = new RunDurations(options)
  }

  text(): string {
    return [this.changes, this.rejected, this.signInFailures, this.runs].map(each => each.text()).join('')
  }
}
