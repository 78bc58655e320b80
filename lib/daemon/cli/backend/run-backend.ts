// What commands need of the place that has the runs: a home (home-backend.ts), or with `--hub` a hub (hub-backend.ts).

import type { JsonObject } from '../../../json.ts'
import type { Decision } from '../../../run/engine.ts'
import type { AskedReview } from '../../../wire/records/review-records.ts'
import type { RunEvent, Written } from '../../../wire/records/run-records.ts'
import type { HubClient } from '../../link/hub-client.ts'
import type { CommandHost } from './command-host.ts'
import type { Ask } from './typed-ids.ts'

export interface BackendOptions {
  home?: string
  /** The address of a hub, or true for the hub where the home is enrolled or signed in. */
  hub?: string | true
}

export interface RunBackend {
  readonly ask: Ask
  /** Null for a home. */
  readonly hub: HubClient | null
  runId(typed: string): Promise<string>
  reviewId(typed: string): Promise<string>
  /** Calls `first` with what changes runs. `command` is the name of this process if it then holds the home. */
  open<T>(command: string, first: (runner: Runner) => Promise<T>): Promise<{ runner: Runner; result: T }>
  /** What follows runs that go on without this process; null when no process executes them. */
  served(): Promise<Runner | null>
  /** The folder with the files of a run; null when they are on another machine. */
  folderOf(runId: string): string | null
  /** A command for the same home or hub, to be pasted. */
  command(...args: readonly string[]): string
}

/** `already_waits`: at a hub, the same order was given before, and the daemon of the run has not answered it. */
interface OrderFate {
  already_waits?: boolean
}

export interface ResumeRequest {
  /** Repeat this phase and all phases that depend on it. */
  from_phase?: string
  /** Repeat what failed and was passed over. */
  failed?: boolean
  /** Make outputs again that could not be made. */
  outputs?: boolean
  /** Secret inputs. */
  inputs?: JsonObject
}

/**
 * What runs again, and what was already written and is not sent again. `continued` means that the run was interrupted.
 */
export interface Resumed {
  repeats: string[]
  written: Written[]
  continued: boolean
}

export type ReviewAnswer = Omit<Decision, 'by'>

/** Changes and follows runs. */
export interface Runner {
  /** `cleanup`: names of `always` phases that go on. */
  cancel(runId: string): Promise<{ cleanup: string[] } & OrderFate>
  /** Null when only the daemon of the run knows what the resume does. */
  resume(runId: string, request: ResumeRequest): Promise<Resumed | null>
  /** Returns the run that continues. */
  decide(reviewId: string, answer: ReviewAnswer): Promise<{ run_id: string } & OrderFate>
  /** `notify` gets what people should know meanwhile. */
  events(runId: string, signal: AbortSignal, notify: (line: string) => void): AsyncGenerator<RunEvent>
  /** Reviews that nobody has answered, newest first, at most 100. */
  pending(): Promise<AskedReview[]>
  /** This process, if it holds the home. Its runs stop with it. */
  readonly host: CommandHost | null
}
