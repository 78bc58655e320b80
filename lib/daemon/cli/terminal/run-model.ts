// A run with all runs below it, built from its events.

import type { PhaseEvent, RunEvent, RunView } from '../../../wire/records/run-records.ts'
import { ENDED_RUN_STATES } from '../../../wire/states.ts'

export interface RunNode {
  record: RunView
  /** In file order. */
  phases: PhaseEvent[]
  /** By position: how the attempt before the present one failed, in one line. */
  tried: (string | undefined)[]
  /** Sub-runs by the phase that started them, in the order of their start. */
  below: Map<string, RunNode[]>
}

export const hasEnded = ({ record }: RunNode): boolean => ENDED_RUN_STATES.includes(record.state)

/** How an attempt failed that is followed by another one, in one line; undefined for any other phase. */
export function triedText({ state, reason, error, attempt, failures, max_attempts }: PhaseEvent): string | undefined {
  if (state !== 'pending' || reason !== 'retry' || !error) return undefined
  const which = failures && max_attempts ? `attempt ${failures} of ${max_attempts}` : `attempt ${attempt}`
  return `${which}: ${error.message}`
}

/** Whether a phase waits for its next attempt, or for its next turn. */
export const isBegunAgain = ({ state, reason }: Pick<PhaseEvent, 'state' | 'reason'>): boolean =>
  state === 'pending' && (reason === 'retry' || reason === 'repeat')

export class RunModel {
  readonly #rootId: string
  readonly #runs = new Map<string, RunNode>()
  /** Whether the run, or a run below it, has a phase that starts sub-runs. */
  hasSubRuns = false

  constructor(rootId: string) {
    this.#rootId = rootId
  }

  get root(): RunNode | undefined {
    return this.#runs.get(this.#rootId)
  }

  node(runId: string): RunNode | undefined {
    return this.#runs.get(runId)
  }

  apply(event: RunEvent): void {
    if (event.event === 'run' || event.event === 'end') this.#run(event.data)
    else if (event.event === 'phase') {
      const { run_id, position } = event.data
      const node = this.#runs.get(run_id)
      if (!node) return
      this.hasSubRuns ||= event.data.type === 'map' || event.data.type === 'team'
      node.phases[position] = event.data
      node.tried[position] =
        triedText(event.data) ?? (event.data.state === 'running' ? node.tried[position] : undefined)
    }
  }

  /** The path from the root to a run, such as `folders/lib/measure`. */
  path(runId: string): string[] {
    const record = this.#runs.get(runId)?.record
    if (!record || runId === this.#rootId || record.parent_run_id === null) return []
    const name = record.run_name === null ? [] : [record.run_name]
    return [...this.path(record.parent_run_id), record.parent_phase ?? '', ...name]
  }

  /** Whether a leaf is running or waits for its next attempt. */
  get atWork(): boolean {
    for (const { phases } of this.#runs.values()) {
      for (const { type, state, reason } of phases) {
        if (state === 'running' && type !== 'team' && type !== 'map') return true
        if (isBegunAgain({ state, reason })) return true
      }
    }
    return false
  }

  #run(record: RunView): void {
    const known = this.#runs.get(record.run_id)
    if (known) {
      known.record = record
      // Completed items of a map are only counted from here on.
      if (hasEnded(known) && record.state === 'completed' && record.run_id !== this.#rootId) this.#forget(known)
      return
    }
    const node: RunNode = { record, phases: [], tried: [], below: new Map() }
    this.#runs.set(record.run_id, node)
    const parent = record.parent_run_id === null ? undefined : this.#runs.get(record.parent_run_id)
    if (!parent || record.parent_phase === null) return
    const siblings = parent.below.get(record.parent_phase)
    if (siblings) siblings.push(node)
    else parent.below.set(record.parent_phase, [node])
  }

  /** Drops a completed run, which is never drawn in detail again. A tree may have 100,000 runs. */
  #forget(node: RunNode): void {
    for (const runs of node.below.values()) {
      for (const run of runs) {
        this.#forget(run)
        this.#runs.delete(run.record.run_id)
      }
    }
    node.below.clear()
    node.phases = []
    node.tried = []
  }
}
