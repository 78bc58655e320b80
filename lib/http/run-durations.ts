// How long top runs waited and took, and how they ended, as hub and daemon count it. The name and the labels are those of
// OpenTelemetry's conventions (https://opentelemetry.io/docs/specs/semconv/cicd/cicd-metrics/).

import { resultOf } from '../wire/states.ts'
import { Histogram, type MetricsOptions } from './metrics.ts'

const SECONDS = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400]

interface EndedRun {
  team: string
  state: string
  reason: string | null
  started_at: number | null
  completed_at: number | null
}

export class RunDurations {
  readonly #teams: boolean
  readonly #histogram: Histogram

  constructor({ teams, series }: MetricsOptions) {
    this.#teams = teams
    this.#histogram = new Histogram(
      {
        name: 'cicd_pipeline_run_duration_seconds',
        help: 'Time that dispatched runs waited for a daemon (pending), and that top runs took until their end (executing).',
        open: ['cicd_pipeline_name'],
      },
      SECONDS,
      series,
    )
  }

  waited(seconds: number): void {
    this.#histogram.observe(seconds, { cicd_pipeline_run_state: 'pending' })
  }

  /** A run that never began took no time. The clock of its daemon may have stepped back. */
  ended(run: EndedRun): void {
    const { team, started_at, completed_at } = run
    const ms = started_at === null || completed_at === null ? 0 : Math.max(0, completed_at - started_at)
    this.#histogram.observe(ms / 1_000, {
      cicd_pipeline_run_state: 'executing',
      cicd_pipeline_result: resultOf(run),
      ...(this.#teams && { cicd_pipeline_name: team }),
    })
  }

  text(): string {
    return this.#histogram.text()
  }
}
