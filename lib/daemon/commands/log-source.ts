// Where `logs` reads: in the home, or at the hub.

import type { Static } from 'typebox'
import type { LogLine } from '../../run/engine.ts'
import type { GetLogs } from '../../wire/daemon-calls.ts'
import type { ToldTree } from '../../wire/run-records.ts'

/** A run of a tree. */
export type Entry = Omit<Static<typeof ToldTree>['runs'][number], 'state'> & { state: string }

export type Line = Omit<LogLine, 'stream'> & { stream: string }

/** A run of the tree, and the names between the run that was asked for and it. */
export interface Place {
  entry: Entry
  path: readonly string[]
}

export interface LogSource {
  tree(runId: string): Promise<readonly Entry[]>
  lines(query: Static<typeof GetLogs.body>): Promise<{ lines: Line[]; next: number }>
  failedPhases(runId: string): Promise<string[]>
  /** What is said on stderr at the end. */
  remarks(places: readonly Place[]): Promise<string[]>
}
