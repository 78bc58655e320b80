// What a step wants done outside of the transaction, as data: it is done once the step is durable, and each by itself,
// so that one that fails harms no other.

import type { SmallFile } from '../../agent/files.ts'
import type { RunError } from '../core/core.ts'
import type { PhaseChange } from '../store/store.ts'

/** How an attempt of a leaf phase ended. */
export type Outcome =
  | ({ kind: 'completed'; small?: readonly SmallFile[] } & PhaseChange)
  | { kind: 'failed'; error: RunError; retryable: boolean }
  | { kind: 'cancelled' }
  /** It may have written outside, and nobody can tell: a person must. */
  | { kind: 'unknown'; error: RunError; entries: string[] }

/** What is to be done outside before a team or map phase, or the end of a run, can go on. */
export type ErrandKind =
  /** Evaluate the items of a map and their keys. */
  | 'freeze'
  /** Hand the files of a completed sub-run (`child`) to the run above. */
  | 'hand'
  /** Put the result of a map together. */
  | 'conclude'
  /** Look at the file outputs of a run whose phases have ended, and hand them to the run above. */
  | 'outputs'

export interface Errand {
  kind: ErrandKind
  runId: string
  /** The phase; -1 for `outputs`. */
  position: number
  /** Of the phase; 0 for `outputs`. */
  attempt: number
  child?: string
}

export type Effect =
  | { kind: 'launch'; runId: string; position: number; attempt: number }
  | { kind: 'abort'; runId: string; position: number; attempt: number }
  /** Gives an attempt that goes on after its run was asked to end no longer than `ms` from now. */
  | { kind: 'limit'; runId: string; position: number; attempt: number; ms: number }
  | { kind: 'errand'; errand: Errand }
  /** Removes the files below a phase's folder that belong to no completed sub-run. */
  | { kind: 'clear'; runId: string; position: number }
  | { kind: 'deliver'; runId: string }
  | { kind: 'ended'; runId: string; root: string }
