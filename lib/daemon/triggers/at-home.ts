// What a kind of trigger keeps in the database of a home, beside the row of the trigger.

import type { RunId } from '../../files/run-id.ts'
import type { TriggerFields } from '../../firing/check-trigger.ts'
import type { Halt } from '../../firing/halt.ts'
import type { Secrets } from '../../firing/hook-secrets.ts'
import type { Firing, Trigger } from '../../firing/trigger.ts'
import type { There } from '../../firing/watch-rows.ts'
import type { JsonObject } from '../../json.ts'
import type { CatchUp } from '../../triggers/schedule/spec.ts'
import type { Daemon } from '../runs/daemon.ts'
import type { Tables } from './tables.ts'

export interface Home {
  daemon: Daemon
  tables: Tables
}

export const MAY_HAVE_STARTED =
  'it was due before this home was found to be a copy, and the other home may have started it'

/** What is done before a run begins, by which its firing waits meanwhile. */
export interface Ready {
  runId: RunId
  /** Not recorded yet: with what the firing waits, and what is written with that. */
  begin?: { variables: JsonObject; write(): void }
}

/** How a pause ends. */
interface Resumed {
  catchUp: CatchUp
  /** When this home was found to be a copy of another one; 0 for one that is none. */
  copiedAt: number
  now: number
  there: There | undefined
}

/** Those that write are called in the transaction that changes the trigger or the firing. */
export interface AtHome<Own = unknown> {
  /** What there is before it is looked at from now on. Throws `invalid_request` when that cannot be seen. */
  there?(home: Home, trigger: Pick<Trigger<Own>, 'id' | 'spec'>): Promise<There>
  added?(home: Home, trigger: Trigger<Own>, fields: Secrets, there: There | undefined): void
  updated?(home: Home, trigger: Trigger<Own>, fields: Secrets): void
  /** The cursor is about to become `now`. */
  beforeNow?(home: Home, trigger: Trigger<Own>, now: number, there: There | undefined): void
  /** A person ended its pause, and the cursor is what it was before. */
  resumed?(home: Home, trigger: Trigger<Own>, was: Resumed): void
  /**
   * What is done before the run of a firing begins, once it is known that it starts one. It is asked again, and after a
   * kill, until the firing waits no more. Null: nothing. `variables`: all that expressions see.
   */
  ready?(home: Home, trigger: Trigger<Own>, firing: Firing, variables: JsonObject): Promise<Ready | Halt | null>
  /** It is known what became of a firing. */
  settled?(home: Home, firing: Firing): void
  /** What expressions see of a firing beside what it has. Throws `invalid_state` when that is not there. */
  recalled?(home: Home, trigger: Trigger<Own>, firing: Firing): JsonObject
  /** What the firing has where a person starts a run now. Throws `invalid_state` when there is nothing. */
  newest?(home: Home, trigger: Trigger<Own>): JsonObject
  /** Why an occasion starts nothing, whatever the trigger says of it. `variables`: all that expressions see. */
  forbids?(home: Home, trigger: Trigger<Own>, variables: JsonObject): Promise<Halt | null>
  /** Called before the trigger is added, changed or enabled. `starts`: the name of its team. Throws `conflict`. */
  mayBeEnabled?(home: Home, trigger: Pick<Trigger<Own>, 'id' | 'name' | 'spec'>, starts: string): Promise<void>
}

export type Changes = Partial<TriggerFields> & Secrets & { name?: string; keep?: boolean }

/** A team as it is read: a folder, or a package. */
export const whichTeam = (team: string) => (team.startsWith('/') ? { path: team } : { team })
