// What daemons may report about their runs: the forms of the changes of runs/sync. Unknown properties are ignored.

import type { Static, TProperties } from 'typebox'
import { Type } from '../type.ts'
import { AnyJson, AnyList, AnyObject } from './parts.ts'
import { MAX_DEPTH, PHASE_STATES, PHASE_TYPES, RUN_STATES, TREE_KEY_STEP } from './states.ts'

const Text = (maxLength: number) => Type.String({ maxLength })
const NullableText = (maxLength: number) => Type.Union([Text(maxLength), Type.Null()])
const Time = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const NullableTime = Type.Union([Time, Type.Null()])
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const Name = Type.String({ minLength: 1, maxLength: 300 })
const RunId = Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', 'x-expected': 'the id of a run' })

/**
 * How much there is of the log of a run. `ended`: no line is added any more. `kept`: the daemon sends no lines. Older
 * daemons do not tell it.
 */
const Log = Type.Object({ lines: Count, ended: Type.Boolean(), kept: Type.Boolean() })

const Run = Type.Object({
  run_id: RunId,
  run_name: NullableText(1_000),
  root_run_id: RunId,
  parent_run_id: Type.Union([RunId, Type.Null()]),
  parent_phase: NullableText(300),
  call_path: Type.Array(Text(300), { minItems: 1, maxItems: MAX_DEPTH + 1 }),
  call_depth: Type.Integer({ minimum: 0, maximum: MAX_DEPTH }),
  tree_key: Type.String({
    pattern: `^([0-9a-z]{${TREE_KEY_STEP}})*$`,
    'x-expected': `groups of ${TREE_KEY_STEP} small letters and digits`,
    maxLength: TREE_KEY_STEP * MAX_DEPTH,
  }),
  team: Name,
  version: NullableText(100),
  state: Type.Enum([...RUN_STATES]),
  reason: NullableText(10_000),
  error: AnyJson,
  inputs: AnyObject,
  outputs: AnyJson,
  workspace: NullableText(4_000),
  created_at: Type.Optional(Time),
  started_at: NullableTime,
  completed_at: NullableTime,
  deliveries: Type.Optional(AnyList),
  log: Type.Optional(Log),
})

const Phase = Type.Object({
  name: Name,
  index: Type.Integer({ minimum: 0, maximum: 1_000 }),
  type: Type.Enum([...PHASE_TYPES]),
  agent: NullableText(300),
  action: NullableText(300),
  state: Type.Enum([...PHASE_STATES]),
  reason: NullableText(10_000),
  attempt: Count,
  depends_on: Type.Array(Text(300), { maxItems: 1_000 }),
  started_at: NullableTime,
  completed_at: NullableTime,
  error: AnyJson,
  ok: Type.Union([Type.Boolean(), Type.Null()]),
  text: Type.String(),
  data: AnyJson,
  files: AnyList,
})

const Line = Type.Object({
  seq: Count,
  phase: NullableText(300),
  at: Time,
  stream: Text(20),
  text: Type.String(),
})

const Review = Type.Object({
  id: RunId,
  run_name: NullableText(1_000),
  phase: Name,
  entries: AnyList,
  kind: Type.Enum(['gate', 'escalation']),
  reason: NullableText(10_000),
  prompt: NullableText(100_000),
  inputs: Type.Optional(AnyList),
  reviewers: Type.Optional(Type.Array(Text(300), { maxItems: 100 })),
  state: Type.Enum(['pending', 'decided']),
  decision: NullableText(100),
  decided_by: NullableText(300),
  comment: Type.Optional(NullableText(100_000)),
  created_at: Time,
  decided_at: NullableTime,
})

/** A write to another system that happened or may have happened. `cleared` means that it did not happen. */
const Receipt = Type.Object({
  phase: Name,
  entry: Text(1_000),
  state: Type.Enum(['sent', 'unknown', 'done', 'cleared']),
  external_id: Type.Optional(NullableText(10_000)),
  external_url: Type.Optional(NullableText(10_000)),
})

const change = <P extends TProperties>(body: P) => Type.Object({ seq: Count, run_id: RunId, attempt: Count, ...body })

/** By kind. */
export const CHANGES = {
  run: change({ run: Run }),
  phase: change({ phase: Phase }),
  /**
   * The next lines, up to number `to`; those that are not there are missing. `last` is the number of the last line that
   * there is by now, and `ended` says that none is added after `to`. Older daemons send only `lines`.
   */
  log: change({
    lines: Type.Array(Line, { maxItems: 10_000 }),
    to: Type.Optional(Count),
    last: Type.Optional(Count),
    ended: Type.Optional(Type.Boolean()),
  }),
  event: change({ event: Type.Object({ name: Name, phase: NullableText(300), at: Time, data: AnyJson }) }),
  artifact: change({
    artifact: Type.Object({ phase: Name, name: Text(1_000), path: Text(2_000), bytes: Count, sha256: Text(64) }),
  }),
  receipt: change({ receipt: Receipt }),
  review: change({ review: Review }),
} as const

export type ChangeKind = keyof typeof CHANGES
/** A change of runs/sync. */
export type SyncChange<K extends ChangeKind> = Static<(typeof CHANGES)[K]>

/**
 * The maximum size of a change in bytes of JSON. The sender keeps each change below it, and the hub refuses larger
 * ones.
 */
export const MAX_CHANGE_BYTES = 1024 * 1024
