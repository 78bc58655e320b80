// What steps need from outside. None of these methods writes.

import type { RunId } from '../../../files/run-id.ts'
import type { JsonObject } from '../../../json.ts'
import type { Masked } from '../../../secrets/masked.ts'
import type { Bundle, EventName } from '../../../team/team.ts'
import type { LiveRun } from '../../core/core.ts'

export interface World {
  /** The wall clock, for times that are recorded and shown. */
  now(): number
  /** The lived time of the home, in which everything is due. */
  lived(): number
  random(): number
  bundle(id: string): Bundle
  /** Masks the secrets of a tree. Values of expressions may hold them, and are masked before they are recorded. */
  mask<T>(rootId: RunId, value: T): Masked<T>
  /** The secret inputs of a top run, which are masked in its row. Throws when they cannot be read. */
  secretInputs(rootId: RunId): JsonObject
  /** The folder of a run. */
  stateDir(runId: RunId): string
  /** Whether this process executes that attempt. */
  executing(runId: string, position: number, attempt: number): boolean
  /** Whether that attempt has given its slot back, because it waits for another system to settle. */
  settling(runId: string, position: number, attempt: number): boolean
  /** Whether that attempt has given its slot back, because a limit does not let its next entry begin. */
  paced(runId: string, position: number, attempt: number): boolean
  /** Whether small files of a tree are not written yet. */
  hasUnwritten(rootId: RunId): boolean
  /** Whether leaf phases have to wait even though slots are free. */
  paused(): boolean
  /** Whether nothing may begin any more, because the process ends once what runs has ended. */
  draining(): boolean
  /** Whether anybody on this machine follows changes. */
  followed(): boolean
  /** Says that something is due when the lived time is `at`. */
  wakeAt(at: number): void
  /** Records what the listeners of a run will send about an event. Returns whether there is anything to send. */
  event(live: LiveRun, event: EventName, position: number | null, asks?: Asks): boolean
}

/** The phase that asks a person, in its own run or below the run of an event. */
export interface Asks {
  live: LiveRun
  position: number
}
