// What daemons may report about their runs: the forms of the changes of runs/sync. Unknown properties are ignored, and
// names are held to their grammar, so that a newer daemon may have states and kinds that this program does not know.

import type { Static, TProperties } from 'typebox'
import type { JsonObject } from '../../json.ts'
import { nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { AgentName, ErrorCode, FieldName, PhaseName, TeamPath, Version, Word } from '../names.ts'
import { AnyJson, AnyList, AnyObject } from '../parts.ts'
import { MAX_DEPTH, TREE_KEY_STEP } from '../states.ts'
import type { RunError } from './run-records.ts'

const Text = (maxLength: number) => Type.String({ maxLength })
const NullableText = (maxLength: number) => Type.Union([Text(maxLength), Type.Null()])
/** A year has four digits, so that each time can be written as a date. */
const Time = Type.Integer({ minimum: 0, maximum: Date.UTC(10_000, 0, 1) - 1 })
const NullableTime = Type.Union([Time, Type.Null()])
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const RunId = Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', 'x-expected': 'the id of a run' })

/** What happened, in a line. Half a character is stored as it is. */
const OneLine = Type.String({
  minLength: 1,
  maxLength: 300,
  pattern: '^[^\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}]*$',
})

/** Values by the names of inputs or outputs. */
const Values = Type.Unsafe<JsonObject>(Type.Record(FieldName, Type.Unknown(), { additionalProperties: false }))
/** Why a run or a phase failed. */
const Fault = Type.Unsafe<RunError | null>(
  nullable(
    Type.Object({
      code: ErrorCode,
      message: Type.String(),
      hint: Type.Optional(Type.String()),
      phase: Type.Optional(PhaseName),
      run_id: Type.Optional(RunId),
    }),
  ),
)

/**
 * How much there is of the log of a run. `ended`: no line is added any more. `kept`: the daemon sends no lines. Older
 * daemons do not report it.
 */
const Log = Type.Object({ lines: Count, ended: Type.Boolean(), kept: Type.Boolean() })

const Run = Type.Object({
  run_id: RunId,
  run_name: NullableText(1_000),
  root_run_id: RunId,
  parent_run_id: Type.Union([RunId, Type.Null()]),
  parent_phase: nullable(PhaseName),
  call_path: Type.Array(TeamPath, { minItems: 1, maxItems: MAX_DEPTH + 1 }),
  call_depth: Type.Integer({ minimum: 0, maximum: MAX_DEPTH }),
  tree_key: Type.String({
    pattern: `^([0-9a-z]{${TREE_KEY_STEP}})*$`,
    'x-expected': `groups of ${TREE_KEY_STEP} small letters and digits`,
    maxLength: TREE_KEY_STEP * MAX_DEPTH,
  }),
  team: TeamPath,
  version: nullable(Type.Union([Version, Type.Literal('')])),
  state: Word,
  reason: NullableText(10_000),
  error: Fault,
  inputs: Values,
  outputs: nullable(Values),
  workspace: NullableText(4_000),
  /** Older daemons leave it out. */
  environment: Type.Optional(NullableText(100)),
  /** Who or what started a top run. Older daemons leave it out, and a hub passes over what it does not know. */
  started_by: Type.Optional(AnyJson),
  created_at: Type.Optional(Time),
  started_at: NullableTime,
  completed_at: NullableTime,
  /** Null while the run goes on, and for one from before this was counted. Older daemons leave it out. */
  lived_ms: Type.Optional(nullable(Count)),
  /** Null for a run that did not complete, and for one from before this was counted. Older daemons leave it out. */
  tolerated: Type.Optional(nullable(Count)),
  deliveries: Type.Optional(AnyList),
  /** An `Explanation`; absent where there is nothing to explain. A hub passes over one of another form. */
  why: Type.Optional(AnyJson),
  log: Type.Optional(Log),
})

/** A turn of a phase with `repeat`. */
const Turn = Type.Object({ turn: Count, state: Word, started_at: Time, completed_at: NullableTime })

const Phase = Type.Object({
  name: PhaseName,
  index: Type.Integer({ minimum: 0, maximum: 1_000 }),
  type: Word,
  agent: nullable(AgentName),
  action: nullable(Word),
  state: Word,
  reason: NullableText(10_000),
  attempt: Count,
  depends_on: Type.Array(PhaseName, { maxItems: 1_000 }),
  started_at: NullableTime,
  completed_at: NullableTime,
  error: Fault,
  ok: Type.Union([Type.Boolean(), Type.Null()]),
  text: Type.String(),
  data: AnyJson,
  files: AnyList,
  /** The last hundred; empty without `repeat`. Older daemons leave it out. */
  turns: Type.Optional(Type.Array(Turn, { maxItems: 100 })),
})

/** A file that a phase has recorded. `path` is relative to the state folder of its run; `sha256` is hexadecimal. */
const FILE = { name: Text(1_000), path: Text(2_000), bytes: Count, sha256: Text(64) }
/** An item of the files of a phase; what has another form is passed over. */
export const RecordedFile = Type.Object(FILE)

const Line = Type.Object({
  seq: Count,
  phase: nullable(PhaseName),
  at: Time,
  stream: Word,
  text: Type.String(),
})

const Review = Type.Object({
  id: RunId,
  run_name: NullableText(1_000),
  /** Null: whether the run may begin. */
  phase: nullable(PhaseName),
  entries: AnyList,
  kind: Word,
  reason: NullableText(10_000),
  prompt: NullableText(100_000),
  inputs: Type.Optional(AnyList),
  reviewers: Type.Optional(Type.Array(Text(300), { maxItems: 100 })),
  /** A `ReviewNext`, which the hub checks when it shows it. */
  next: Type.Optional(nullable(AnyObject)),
  /** A `ReviewShown`. */
  shown: Type.Optional(nullable(AnyObject)),
  /** Whether its daemon does not say what its approval leads to. Older daemons leave these out. */
  keeps_next: Type.Optional(Type.Boolean()),
  expires_at: Type.Optional(NullableTime),
  state: Word,
  decision: nullable(Word),
  decided_by: NullableText(300),
  comment: Type.Optional(NullableText(100_000)),
  created_at: Time,
  decided_at: NullableTime,
})

/** A write to another system that happened or may have happened. `cleared` means that it did not happen. */
const Receipt = Type.Object({
  phase: PhaseName,
  entry: Text(1_000),
  state: Word,
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
  event: change({ event: Type.Object({ name: OneLine, phase: nullable(OneLine), at: Time, data: AnyJson }) }),
  artifact: change({
    artifact: Type.Object({ phase: PhaseName, ...FILE }),
  }),
  receipt: change({ receipt: Receipt }),
  review: change({ review: Review }),
} as const

export type ChangeKind = keyof typeof CHANGES
/** A change of runs/sync. */
export type SyncChange<K extends ChangeKind> = Static<(typeof CHANGES)[K]>
