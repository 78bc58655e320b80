// What the runs of this process have done since its start, for `GET /metrics`: how they and their phases ended, and what
// became of entries that change something outside.

import type { Effect } from '../../agent/core/effect.ts'
import { type Count, Counter, type MetricsOptions } from '../../http/metrics.ts'
import { RunDurations } from '../../http/run-durations.ts'
import type { Meter } from '../../run/engine.ts'
import { resultOf } from '../../wire/states.ts'

export class RunCounts implements Meter {
  readonly #runs: RunDurations
  readonly #phases: Counter
  readonly #writes: Counter
  /** By agent and end. To find a count by its labels costs ten times as much as to add to it. */
  readonly #phaseCounts = new Map<string, Count>()

  constructor(options: MetricsOptions) {
    this.#runs = new RunDurations(options)
    const open = ['agent']
    this.#phases = new Counter(
      { name: 'cadre_phases_total', help: 'Phases that have ended, by the agent that they call and result.', open },
      [],
      options.series,
    )
    this.#writes = new Counter(
      {
        name: 'cadre_outside_writes_total',
        help: 'Entries that change something outside, by agent, effect and result; doubtful if nobody knows.',
        open,
      },
      [],
      options.series,
    )
  }

  runEnded(run: Parameters<Meter['runEnded']>[0]): void {
    this.#runs.ended(run)
  }

  phaseEnded(agent: string, end: Parameters<Meter['phaseEnded']>[1]): void {
    const key = `${agent} ${end.state} ${end.reason}`
    const known = this.#phaseCounts.get(key)
    const count = known ?? this.#phases.of({ agent: nameOf(agent), cicd_pipeline_task_run_result: resultOf(end) })
    if (!known) this.#phaseCounts.set(key, count)
    count.sum++
  }

  writeEnded(agent: string, effect: Effect, result: string): void {
    this.#writes.add(1, { agent: nameOf(agent), effect, result })
  }

  text(): string {
    return this.#runs.text() + this.#phases.text() + this.#writes.text()
  }
}

/** Without the account: `issues` for `issues@eu`. */
const nameOf = (agent: string): string => agent.split('@', 1)[0]!
