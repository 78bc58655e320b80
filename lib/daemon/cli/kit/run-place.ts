// Where a command looks at runs and changes them: in the home, or with `--hub` at a hub (hub-place.ts).

import { readRunId, runFolder } from '../../../files/run-id.ts'
import { createLog } from '../../../log/log.ts'
import { commandLine } from '../../../program/called-as.ts'
import type { Ask } from '../../calls/ids.ts'
import { type Follower, openRunner, servedRunner } from '../../calls/runner.ts'
import type { HubClient } from '../../link/link.ts'

export interface PlaceOptions {
  home?: string
  /** At a hub: its address, or true for the one where the home is enrolled or signed in. */
  hub?: string | true
}

export interface RunPlace {
  readonly ask: Ask
  /** Null in the home. */
  readonly hub: HubClient | null
  runId(typed: string): Promise<string>
  reviewId(typed: string): Promise<string>
  /** Calls `first` with what changes runs there. `command` is the name of this process if it then holds the home. */
  open<T>(command: string, first: (runner: Follower) => Promise<T>): Promise<{ runner: Follower; result: T }>
  /** What follows runs that go on without this process; null when nothing executes them. */
  served(): Promise<Follower | null>
  /** The folder with the files of a run; null when they are on another machine. */
  folderOf(runId: string): string | null
  /** A command that looks at the same place, to be pasted. */
  command(...args: readonly string[]): string
}

/** What reads the home is loaded when something is asked, because `run` follows its run in its own process. */
export function homePlace(home: string): RunPlace {
  const ask: Ask = async work => (await import('../../calls/run-answers.ts')).askAboutRuns(home, work)
  const ids = () => import('../../calls/ids.ts')
  return {
    ask,
    hub: null,
    runId: async typed => (await ids()).runIdAt(ask, `in ${home}`, typed),
    reviewId: async typed => (await ids()).reviewIdAt(ask, typed),
    open: (command, first) => openRunner(home, command, createLog({ level: 'warn' }), first),
    served: () => servedRunner(home),
    folderOf: runId => runFolder(home, readRunId(runId)),
    command: commandLine,
  }
}
