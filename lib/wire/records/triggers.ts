// Triggers, the rules that start runs, and firings, the occasions at which they did or did not: what a home and a hub
// record and answer of them.

import type { Static } from 'typebox'
import type { JsonObject } from '../../json.ts'
import { nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { OptionalHookFields } from '../../triggers/hook/fields.ts'
import { WATCHED } from '../../triggers/watch/words.ts'
import { Requires } from '../needs.ts'
import { AnyObject, AnyText, NullableText, Time } from '../parts.ts'
import { SHOWN_RUN_STATES } from '../states.ts'
import { File } from './started-by.ts'
import { On, WATCH } from './trigger-fields.ts'
import {
  FIRING_REASONS,
  FIRING_STATES,
  OVERLAPS,
  type Overlap,
  TRIGGER_KINDS,
  TRIGGER_STATES,
} from './trigger-words.ts'

const text = (description: string) => Type.String({ description })
const number = (description: string) => Type.Integer({ description })
const optional = (description: string) => Type.Optional(text(description))

export const FiringRecord = Type.Object({
  id: AnyText,
  trigger_id: AnyText,
  name: text('The name of the trigger.'),
  revision: number('The revision of the trigger that was used.'),
  occasion: text('What makes it the only one of its trigger: the UTC minute of a slot, the id of a delivery.'),
  at: number('When the occasion was, in epoch milliseconds; of several slots, the first.'),
  until: nullable(Time, { description: 'The last slot, when it stands for several; else null.' }),
  seen_at: Time,
  state: Type.Enum([...FIRING_STATES]),
  reason: nullable(Type.Enum([...FIRING_REASONS]), { description: 'Why nothing started, or not yet.' }),
  detail: NullableText,
  run_id: nullable(AnyText, { description: 'The run that it started; null without one.' }),
  run_state: Type.Optional(
    nullable(Type.Enum([...SHOWN_RUN_STATES]), { description: 'The state of that run; null once it was deleted.' }),
  ),
  run_ids: Type.Array(AnyText),
  count: number('For how many slots or files it stands.'),
  deliveries: nullable(Type.Integer(), { description: 'How often the delivery of a hook came; else null.' }),
  late_ms: nullable(Type.Integer()),
  manual: nullable(Type.Object({ by: AnyText }), { description: 'Who asked for it; null when it was due.' }),
  files: Type.Optional(Type.Array(File, { description: 'The files of a watch.' })),
  delivery: Type.Optional(
    Type.Object(
      {
        headers: AnyObject,
        query: AnyObject,
        body: nullable(AnyText, { description: 'As text, with secrets masked; null when it is not kept.' }),
      },
      { description: 'What a hook has stored of the delivery, where it was asked for.' },
    ),
  ),
})
export type FiringRecord = Static<typeof FiringRecord>

const SlotRecord = Type.Object({ at: number('The slot, in epoch milliseconds.'), local: AnyText })
/** What a backfill starts, or would start. */
export const BackfillRecord = Type.Object({
  slots: Type.Array(SlotRecord, { description: 'The slots, the oldest first.' }),
  left: number('How many more there are, which another call starts.'),
  firings: Type.Array(FiringRecord, { description: 'Their firings, which start one after the other.' }),
})
export type BackfillRecord = Static<typeof BackfillRecord>

const NoteRecord = Type.Object({
  day: Type.Optional(AnyText),
  kind: Type.Enum(['moved', 'twice', 'missing', 'rare', 'hook']),
  text: AnyText,
})
const notes = Type.Array(NoteRecord, {
  description: 'Days on which a change of clocks moves a slot, and what the scheme of a hook leaves open.',
})

/** What a schedule will do, for people: slots with their local time, days on which clocks change them, and words. */
export const PreviewRecord = Type.Object({
  slots: Type.Array(SlotRecord, { description: 'When it is due.' }),
  notes,
  words: AnyText,
  files: Type.Optional(
    Type.Array(
      Type.Object({
        path: AnyText,
        bytes: Type.Integer(),
        mtime: number('When it was last changed, in epoch milliseconds.'),
        what: Type.Enum([...WATCHED], { description: 'What happened to it since it was last seen.' }),
      }),
      { description: 'What a watch would report now, once these files rest.' },
    ),
  ),
  total: Type.Optional(number('How many files those are, beyond the limit.')),
  outcome: Type.Optional(
    Type.Object(
      {
        state: Type.Enum(['starts', 'skipped', 'refused']),
        reason: nullable(Type.Enum([...FIRING_REASONS])),
        detail: NullableText,
        inputs: nullable(AnyObject),
      },
      { description: 'What a hook would do with the delivery, without its signature, and with other runs left out.' },
    ),
  ),
})
export type PreviewRecord = Static<typeof PreviewRecord>

/** All that a person may change of a trigger. `Own`: what its kind keeps of its own fields. */
export interface TriggerSpec<Own = unknown> {
  /** `@scope/name[@range]`, or on a home the absolute path of a folder. */
  team: string
  inputs: JsonObject
  when: string | null
  workspace: string | null
  /** Absent in triggers of before there were environments. */
  environment?: string | null
  run_name: string | null
  overlap: Overlap
  queue_max: number
  at_most: { count: number; per: string } | null
  own: Own
}

/** It is one of the `triggers` of a team. */
export interface Declared {
  /** `@scope/name`. */
  team: string
  version: string
  name: string
  /** What the file said when it was enabled. */
  fields: JsonObject
  /** Whether it goes on as it is when the file says something else. */
  keep?: boolean
}

export const TriggerRecord = Type.Object({
  id: AnyText,
  name: AnyText,
  kind: Type.Enum([...TRIGGER_KINDS]),
  team: text('What it starts: @scope/name with or without a range, or the path of a folder.'),
  inputs: Type.Unsafe<JsonObject>(
    Type.Record(Type.String(), Type.Unknown(), { description: 'The inputs of its runs; values may be templates.' }),
  ),
  when: nullable(AnyText, { description: 'The CEL expression that an occasion has to satisfy; null: all do.' }),
  workspace: NullableText,
  environment: Type.Optional(NullableText),
  run_name: NullableText,
  overlap: Type.Enum([...OVERLAPS]),
  queue_max: Type.Integer(),
  at_most: nullable(Type.Object({ count: number('How many firings.'), per: AnyText }), {
    description: 'How many firings start within so long a time; null: all.',
  }),
  enabled: Type.Boolean(),
  paused: nullable(
    Type.Object({ since: number('Since when, in epoch milliseconds.'), by: AnyText, reason: NullableText }),
    { description: 'Who paused it; null when it is not paused.' },
  ),
  revision: number('One more with each change.'),
  source: Type.Unsafe<'manual' | { team: string; version: string; name: string }>(
    Type.Unknown({ description: '`manual`, or the team whose file defines it.' }),
  ),
  state: Type.Enum([...TRIGGER_STATES]),
  problem: nullable(
    Type.Object({ reason: AnyText, text: AnyText, since: number('Since when, in epoch milliseconds.') }),
    { description: 'What is wrong with it while it is `broken`; else null.' },
  ),
  created_at: Time,
  created_by: AnyText,
  cron: optional('The five fields of its rule.'),
  every: optional('The distance of its slots.'),
  at: optional('Its only slot, local in `tz` or with an offset.'),
  tz: optional('The zone of its times.'),
  from: optional('When `every` begins.'),
  catch_up: optional('Which slots start that were due too long ago.'),
  window: optional('How late a slot may be that `last` or `all` starts.'),
  max: Type.Optional(number('How many slots `all` starts.')),
  late_after: optional('How late a slot may be that starts without `catch_up`.'),
  jitter: optional('Over how long a time its starts are spread.'),
  after: optional('The team whose runs a chain follows.'),
  again: Type.Optional(Type.Boolean({ description: 'Whether each attempt of a run counts.' })),
  words: Type.Optional(AnyText),
  notes: Type.Optional(notes),
  ...OptionalHookFields,
  ...WATCH,
  on: On,
  url: optional('Where the sender posts to: the path, or the whole address where it is known.'),
  secrets: Type.Optional(
    Type.Array(
      Type.Object({
        id: AnyText,
        created_at: Time,
        expires_at: nullable(Time, { description: 'Since when it fits no more; null while it fits.' }),
      }),
      { description: 'The secrets of the hook, but for their values.' },
    ),
  ),
  /** A preview: tables of time zones change. */
  next: Type.Array(SlotRecord, { description: 'The next slots.' }),
  last: Type.Array(FiringRecord, { description: 'The latest firings, newest first.' }),
  warnings: Type.Optional(
    Type.Array(AnyText, {
      description: 'What whoever has added, changed or enabled it should know: only in the reply to that, if anything.',
    }),
  ),
})
export type TriggerRecord = Static<typeof TriggerRecord>

/** A trigger of a realm. */
export const RealmTriggerRecord = Type.Object({
  ...TriggerRecord.properties,
  realm_id: AnyText,
  owner: text('The account with whose rights its runs start.'),
  requires: nullable(Requires, { description: 'What its runs need of a daemon beside what the team needs.' }),
  priority: Type.Integer(),
  queue_timeout: NullableText,
})
export type RealmTriggerRecord = Static<typeof RealmTriggerRecord>
