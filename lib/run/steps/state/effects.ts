// What a step wants done outside the transaction, as data. It is done once the step is durable, and each effect is
// guarded by itself, so that one that fails does not harm the others.

import type { SmallFile } from '../../../agent/files.ts'
import type { RunId } from '../../../files/run-id.ts'
import type { RunError } from '../../core/core.ts'
import type { PhaseChange } from '../../store/store.ts'

/** How an attempt of a leaf phase ended. */
export type Outcome =
  | ({ kind: 'completed'; small?: readonly SmallFile[] } & PhaseChange)
  | { kind: 'failed'; error: RunError; retryable: boolean }
  | { kind: 'cancelled' }
  /** It may or may not have written `entries` outside: a person has to decide. */
  | { kind: 'unknown'; error: RunError; entries: string[]; sent: string }

/** What has to be done outside before a team or map phase can continue, or a run can end. */
export type TaskKind =
  /** Evaluate the items of a map and their keys. */
  | 'freeze'
  /** Hand the files of a completed sub-run (`child`) to the run above. */
  | 'hand'
  /** Build the result of a map. */
  | 'conclude'
  /** Check the file outputs of a run whose phases have ended, and hand them to the run above. */
  | 'outputs'

export interface Task {
  kind: TaskKind
  runId: RunId
  /** The phase, or `OF_RUN` for `outputs`. */
  position: number
  /** The attempts of its run and of its phase, and its sub-run: what tells it from others of the phase. */
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
  /** Looks who of a concurrency key may begin, and who must make room. */
  | { kind: 'key'; key: string }
  | { kind: 'deliver'; runId: RunId }
  /** `settled`: the end calls for nothing outside, such as telling listeners or the hub, or removing secrets. */
  | { kind: 'ended'; runId: RunId; root: string; settled: boolean }
