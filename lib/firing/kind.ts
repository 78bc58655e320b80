// What one kind of trigger does in its own way. Everything else about triggers is the same for all kinds and does not ask
// which one it has. Pure, so that a home and a hub do alike.

import type { Detail } from '../error.ts'
import type { JsonObject } from '../json.ts'
import type { StartedBy } from '../wire/records/started-by.ts'
import type { Overlap } from '../wire/records/trigger-words.ts'
import type { TriggerRecord } from '../wire/records/triggers.ts'
import type { Firing, Trigger } from './trigger.ts'

/** The own fields of a trigger, as the body of a call has them. */
export type OwnFields = Record<string, unknown>

/** What the fields do not say. */
export interface Around {
  now: number
  overlap: Overlap
  /** The zone where none is written: that of the machine on a home, `UTC` in a realm. */
  tz: string
  /** It is being added, and not changed. */
  isNew: boolean
}

export type Checked<Own> = { own: Own; problems?: never } | { own?: never; problems: Detail[] }

/** A firing, as far as a run says of it what started it. */
export type Started = Pick<Firing, 'id' | 'occasion' | 'at' | 'late_ms' | 'manual' | 'variables'>

/** `Own`: what the kind keeps of its own fields, as `spec.own` of its triggers. */
export interface Kind<Own = unknown> {
  /** What happens while a run of it has not ended, unless the trigger says it. */
  readonly overlap: Overlap
  /** What expressions may name. */
  readonly variables: readonly string[]
  /** The names of its own fields in the body of a call. */
  readonly fields: readonly string[]
  /** At most so many of them are on a home, and in a realm. */
  readonly most?: { home: number; realm: number }

  /** The own fields with their defaults, or everything that is wrong with them. */
  check(fields: OwnFields, around: Around): Checked<Own>
  /** The own fields after a change, for `check`: what is not given stays. */
  changed(own: Own, changes: OwnFields): OwnFields
  /** Whether both look at the same occasions. Another rule counts from now on. */
  isSameRule(one: Own, other: Own): boolean
  /** Whether something may be an occasion of both. Each trigger of a kind without this has occasions of its own. */
  meets?(one: Own, other: Own): boolean
  /** What it says, for people. */
  words(own: Own): string
  /** What a record has of it: its own fields, and what is computed from them. */
  shown(trigger: Trigger<Own>, now: number): Partial<TriggerRecord>
  /** What expressions see when a person starts a run of it. */
  variablesNow(now: number): JsonObject
  /** `isLater`: it does not start when its occasion came. */
  startedBy(trigger: Trigger<Own>, firing: Started, isLater: boolean): StartedBy

  /** When it is due after its cursor. A kind without this is told of its occasions. */
  nextAt?(trigger: Trigger<Own>): number | null
  /** How many firings may wait where a trigger says less with `queue_max`. */
  mostWaiting?(own: Own): number
}

/** Those of a body that are given. */
export const given = (fields: OwnFields, names: readonly string[]): OwnFields =>
  Object.fromEntries(names.flatMap(name => (fields[name] === undefined ? [] : [[name, fields[name]]])))
