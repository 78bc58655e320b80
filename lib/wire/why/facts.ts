// The facts from which the explanation of a run is made, as far as a daemon or a hub knows them.

import type { FailedItems, RunError, Written } from '../records/run-records.ts'

export interface PhaseFacts {
  name: string
  type: string
  agent: string | null
  action: string | null
  state: string
  reason: string | null
  attempt: number
  error: RunError | null
  /** Whether its failure does not fail its run. A hub does not know before the run has completed. */
  tolerated: boolean
  /** Whether it runs after failures, too. A hub does not know. */
  cleanup: boolean
  /** What it waits for. A hub does not know. */
  waiting: string | null
  /** With `repeat`: the turn in which it is, or was last, such as `turn 3 of 40`. A hub does not know the last number. */
  turn: string | null
  /** Of a map that has a result: how many of its items failed, and why. A hub does not know why. */
  items: Pick<FailedItems, 'total' | 'failed' | 'causes'> | null
}

/** A run of the chain with the phase that decided its end, or for which it waits. */
export interface RunFacts {
  run_id: string
  run_name: string | null
  team: string
  environment: string | null
  call_depth: number
  state: string
  reason: string | null
  error: RunError | null
  started_at: number | null
  completed_at: number | null
  lived_ms: number | null
  phases: readonly PhaseFacts[]
  /** One of `phases`. */
  cause: PhaseFacts | null
  /** What it waits for before it begins, or before it ends. */
  turn: string | null
  deliveries: readonly { phase: string; event: string; state: string; error: string | null }[]
}

/** Failures in runs that are not part of the chain. */
export interface FailuresBelow {
  items: readonly FailedItems[]
  /** Phases that failed and were passed over below no map, each with its error. */
  passedOver: readonly string[]
}
export const NOTHING_BELOW: FailuresBelow = { items: [], passedOver: [] }

export interface WhyFacts {
  root_run_id: string
  /** The run, and then the sub-runs that decided its end. */
  chain: readonly [RunFacts, ...RunFacts[]]
  /** Of the run and of all runs below it; null when it is not known here. */
  written: readonly Written[] | null
  /** What other systems were asked about in vain. */
  unasked: readonly string[]
  /** Whether `why --ask` can find out more. */
  mayAsk: boolean
  /** The review that the last run of the chain waits for. */
  review: string | null
  /** The run that holds the key for which the run waits. */
  holder: string | null
  /** A phase of the last run of the chain that a person completed, and whose result is read where that run failed. */
  unfilled: string | null
  /** What else failed in the runs below an ended run. */
  below: FailuresBelow
  /** Whether its top run began. What ended in the queue of a hub cannot be resumed. */
  began: boolean
}

/** An output could not be made: the run failed, or as a top run completed without it. */
export const lacksOutputs = ({ reason }: RunFacts): boolean => reason === 'outputs'
/** A file may be there the next time. A value is made from results and a team.yml that stay. */
export const lacksFile = (run: RunFacts): boolean => lacksOutputs(run) && run.error?.code === 'not_found'

/** Whether a phase failed and its run went on as if it had not. */
export const wasPassedOver = ({ state, tolerated }: PhaseFacts): boolean => state === 'failed' && tolerated
