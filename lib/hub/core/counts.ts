// What this process has done since its start, for `GET /metrics`.

import { Counter, Gauge, type MetricsOptions } from '../../http/metrics.ts'
import { RunDurations } from '../../http/run-durations.ts'

const WAITING_POLLS = new Gauge({ name: 'cadre_polls_waiting', help: 'Polls of daemons that wait for jobs here.' })

const results = (...names: string[]) => names.map(result => ({ result }))

export class Counts {
  /** Polls that wait for jobs now. */
  pollsWaiting = 0
  readonly polls = new Counter(
    { name: 'cadre_polls_total', help: 'Polls of daemons that were answered, by result.' },
    results('jobs', 'nothing'),
  )
  /** Attempts. One that failed for good ends its message. */
  readonly webhooks = new Counter(
    { name: 'cadre_webhook_deliveries_total', help: 'Attempts to send a message to a webhook, by result.' },
    results('delivered', 'retried', 'failed'),
  )
  readonly files = new Counter(
    { name: 'cadre_files_total', help: 'Files of runs that began to be in a state.' },
    ['awaited', 'stored', 'removed'].map(state => ({ state })),
  )
  readonly storeCalls = new Counter(
    { name: 'cadre_file_store_calls_total', help: 'Calls of the store of files, by result.' },
    results('answered', 'failed'),
  )
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
    const { changes, rejected, signInFailures, runs, polls, webhooks, files, storeCalls } = this
    const all = [changes, rejected, signInFailures, runs, polls, webhooks, files, storeCalls]
    return all.map(each => each.text()).join('') + WAITING_POLLS.text(this.pollsWaiting)
  }
}
