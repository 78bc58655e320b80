// Effects: work outside the transaction that a step asks for, as data. They are carried out once the step is durable,
// each with its own error handling, so that an effect that fails does not harm the others.

import type { SmallFile } from '../../../agent/files.ts'
import type { RunId } from '../../../files/run-id.ts'
import type { MaskedText } from '../../../secrets/masked.ts'
import type { CountedRun, PhaseState, RunError } from '../../core/core.ts'
import type { PhaseChange } from '../../store/store.ts'

/** The result of an attempt, and of a gate what its commands printed. */
export interface Completed extends PhaseChange {
  printed?: Printed
}

/** The end of what commands printed, and how many bytes came before it. */
export interface Printed {
  output: string
  omitted_bytes: number
}

/** How an attempt of a leaf phase ended. */
export type Outcome =
  | ({ kind: 'completed'; small?: readonly SmallFile[] } & Completed)
  | { kind: 'failed'; error: RunError; retryable: boolean }
  | { kind: 'cancelled' }
  /** Nobody knows whether `entries` were written to the other system: a person has to decide. */
  | { kind: 'unknown'; error: RunError; entries: string[]; sent: string }

/** Work outside the transaction without which a team or map phase cannot continue, or a run cannot end. */
export type TaskKind =
  /** Evaluate the items of a map and their keys. */
  | 'items'
  /** Hand the files of a completed sub-run (`child`) to the run above. */
  | 'files'
  /** Build the result of a map. */
  | 'result'
  /** Check the file outputs of a run whose phases have ended, and hand them to the run above. */
  | 'outputs'
  /** Write the files of a tree that are written behind, before its top run ends. */
  | 'written'

export interface Task {
  kind: TaskKind
  runId: RunId
  /** The phase, or `OF_RUN` for `outputs` and `written`. */
  position: number
  /** Tells it from other tasks of the phase: the attempts of its run and of its phase, and its sub-run. */
  key: string
  child?: RunId
}

/** In place of a position, for a task of the run itself. */
export const OF_RUN = -1

export type Effect =
  | { kind: 'launch'; runId: RunId; position: number; attempt: number }
  | { kind: 'abort'; runId: RunId; position: number; attempt: number }
  /** Gives an attempt that continues after its run was asked to end at most `ms` from now. */
  | { kind: 'limit'; runId: RunId; position: number; attempt: number; ms: number }
  | { kind: 'task'; task: Task }
  /** Removes the files in a phase's folder that belong to no completed sub-run. */
  | { kind: 'clear'; runId: RunId; position: number }
  /** Starts the next run of a concurrency key, and cancels runs that a later run replaces. */
  | { kind: 'key'; key: string }
  /** Writes a line into the log of a phase. A kill may lose it, so what it says is in the rows, too. */
  | { kind: 'say'; runId: RunId; phase: string; text: MaskedText }
  | { kind: 'deliver'; runId: RunId }
  /** Finds out what the approval of a review leads to. */
  | { kind: 'next'; runId: RunId; position: number }
  /** A phase that calls an agent ended, which is counted. */
  | { kind: 'phase'; agent: string; state: PhaseState; reason: string | null }
  /**
   * `settled`: the end needs no work outside, such as a delivery, a report or the removal of secrets. `counted`: a top run
   * that was in memory; others are read from their rows.
   */
  | { kind: 'ended'; runId: RunId; root: string; settled: boolean; counted?: CountedRun }
