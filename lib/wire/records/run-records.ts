// Runs and phases as the daemon's API returns them, and the events of its streams.

import type { Static, TProperties } from 'typebox'
import { named, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { rowsOf } from '../page.ts'
import {
  AnyJson,
  AnyObject,
  AnyText,
  BYTES_OF_RESULT,
  BYTES_OF_VALUES,
  NullableText,
  NullableTime,
  SUB_RUNS_MORE,
  Time,
} from '../parts.ts'
import { MAX_DEPTH, PHASE_STATES, PHASE_TYPES, RUN_STATES } from '../states.ts'
import { StartedBy, StartedByView } from './started-by.ts'

/** Why a run or a phase failed. `phase` and `run_id` name the leaf where the failure began. */
export const RunError = Type.Object({
  code: AnyText,
  message: AnyText,
  hint: Type.Optional(AnyText),
  phase: Type.Optional(AnyText),
  run_id: Type.Optional(AnyText),
})
export type RunError = Static<typeof RunError>

export const FileRecord = Type.Object({
  name: AnyText,
  /** Relative to the run's state folder: `files/<phase>/<name>`. */
  path: AnyText,
  bytes: Type.Integer(),
  /** Hex. */
  sha256: AnyText,
})

const RunState = Type.Enum([...RUN_STATES])
/**
 * The state that people see: a run that no process continues is `interrupted`. A hub answers in the same form, and adds
 * `crashed` for a run whose daemon is silent, and states that only a newer daemon knows.
 */
const ViewedState = AnyText

const RUN = {
  run_id: AnyText,
  run_name: NullableText,
  root_run_id: AnyText,
  parent_run_id: NullableText,
  parent_phase: NullableText,
  call_path: Type.Array(AnyText),
  call_depth: Type.Integer(),
  team: AnyText,
  version: AnyText,
  reason: NullableText,
  error: nullable(RunError),
  outputs: nullable(AnyObject),
  ...BYTES_OF_VALUES,
  workspace: NullableText,
  attempt: Type.Integer(),
  started_at: NullableTime,
  completed_at: NullableTime,
}
/** What only a hub knows of a run. */
const AT_HUB = {
  realm_id: Type.Optional(AnyText),
  /** Null while the run waits for a daemon. */
  daemon_id: Type.Optional(NullableText),
  job_id: Type.Optional(NullableText),
  created_at: Type.Optional(Time),
}
const recorded = <P extends TProperties>(more: P) =>
  Type.Object({
    ...RUN,
    environment: NullableText,
    lived_ms: nullable(Type.Integer()),
    tolerated: nullable(Type.Integer()),
    state: RunState,
    started_by: nullable(StartedBy),
    ...more,
  })
/** A run as people are shown it, by a daemon or by a hub. */
const viewOf = <P extends TProperties>(more: P) =>
  Type.Object({
    ...RUN,
    ...AT_HUB,
    environment: Type.Optional(NullableText),
    lived_ms: Type.Optional(nullable(Type.Integer())),
    tolerated: Type.Optional(nullable(Type.Integer())),
    state: ViewedState,
    started_by: StartedByView,
    ...more,
  })

/** In lists and events `inputs` and `outputs` are null if they are large; `runs/get` has them. */
const HEAD = { inputs: nullable(AnyObject) }

/** A run as the engine records it. */
export const RunRecord = recorded(HEAD)
export type RunRecord = Static<typeof RunRecord>
/** An item of `runs/list`. */
export const RunView = viewOf(HEAD)
export type RunView = Static<typeof RunView>

/** An item of `deliveries` in `runs/get`. */
export const DeliveryRecord = Type.Object({
  phase: AnyText,
  event: AnyText,
  state: AnyText,
  error: NullableText,
})
const WHOLE = {
  inputs: AnyObject,
  deliveries: Type.Array(DeliveryRecord),
  /** Only of a queued run. */
  waiting_for: Type.Optional(AnyText),
  folder: Type.Optional(
    Type.String({ description: 'The folder, or the file, of the team of a run that was started here from a path.' }),
  ),
  labels: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: 'The labels of daemons that its dispatch asked for, besides those that its team asks for.',
    }),
  ),
}
const RunDetail = recorded(WHOLE)
export type RunDetail = Static<typeof RunDetail>
/** `runs/get`. */
export const RunDetailView = viewOf(WHOLE)
export type RunDetailView = Static<typeof RunDetailView>

const TREE_ENTRY = {
  run_id: AnyText,
  run_name: NullableText,
  call_path: Type.Array(AnyText),
  call_depth: Type.Integer({ minimum: 0, maximum: MAX_DEPTH }),
  parent_phase: NullableText,
  started_at: NullableTime,
  completed_at: NullableTime,
}
const TreeEntry = Type.Object({ ...TREE_ENTRY, tolerated: nullable(Type.Integer()), state: RunState })
/** An item of `runs/tree`. Times are epoch milliseconds, null until known. */
export type TreeEntry = Static<typeof TreeEntry>
/** `runs/tree`. */
export const TreeView = Type.Object({
  root_run_id: AnyText,
  runs: rowsOf(Type.Object({ ...TREE_ENTRY, tolerated: Type.Optional(nullable(Type.Integer())), state: ViewedState })),
})

const SUB_RUN = { run_id: AnyText, run_name: NullableText }
const SubRun = Type.Object({ ...SUB_RUN, state: RunState })
export type SubRun = Static<typeof SubRun>

/** What a phase waits for, in words, and until when at the latest, as far as it is known. */
export const Waiting = Type.Object({ reason: AnyText, until: NullableTime })
export type Waiting = Static<typeof Waiting>

/** A turn of a phase with `repeat`. */
const TurnRecord = Type.Object({
  turn: Type.Integer(),
  state: Type.Enum([...PHASE_STATES]),
  started_at: Time,
  completed_at: NullableTime,
})
export type TurnRecord = Static<typeof TurnRecord>
const TurnView = Type.Object({ ...TurnRecord.properties, state: AnyText })
/** A turn as a hub has it: a newer daemon may have other states. */
export type TurnView = Static<typeof TurnView>

const BARE_PHASE = {
  name: AnyText,
  type: Type.Enum([...PHASE_TYPES]),
  agent: NullableText,
  action: NullableText,
  reason: NullableText,
  attempt: Type.Integer(),
  depends_on: Type.Array(AnyText),
  started_at: NullableTime,
  completed_at: NullableTime,
  error: nullable(RunError),
  ok: nullable(Type.Boolean()),
  text: AnyText,
  files: Type.Array(FileRecord),
  /** What the phase waits for while a process executes its run; null when it works or has ended. */
  waiting: nullable(Waiting),
  /** The last hundred; empty without `repeat`. */
  turns: Type.Array(TurnRecord),
}

/** An attempt of a phase that was followed by another one. `ended_at` is null when its process ended before it did. */
const AttemptRecord = Type.Object({
  phase: AnyText,
  attempt: Type.Integer(),
  state: Type.Enum(['failed', 'cancelled', 'completed', 'skipped', 'interrupted']),
  error: nullable(RunError),
  started_at: Time,
  ended_at: NullableTime,
})
export type AttemptRecord = Static<typeof AttemptRecord>

/** A write to another system that must not happen twice. */
export const Written = Type.Object({
  run_id: AnyText,
  /** The phases above the run that wrote, from the top one down, and the keys of items of maps. */
  place: Type.Array(AnyText),
  phase: AnyText,
  entry: AnyText,
  state: Type.Enum(['sent', 'done', 'partial', 'unknown', 'presumed']),
  /** The id that the other system gave it. */
  id: NullableText,
  url: NullableText,
  /** What else exists of it there, because it was sent again although the first request arrived in the end. */
  copies: Type.Optional(Type.Array(Type.Object({ id: NullableText, url: NullableText }))),
  /** Whether the other system is still to be asked if it exists once, because it was sent again. */
  unconfirmed: Type.Optional(Type.Boolean()),
  /** Of one in doubt: what was sent, and when. */
  request: Type.Optional(AnyText),
  sent_at: Type.Optional(Time),
})
export type Written = Static<typeof Written>

/** `runs/history`: what happened in a run before what `runs/phases` has, and what its phases wrote outside. */
export const History = Type.Object({ attempts: Type.Array(AttemptRecord), written: Type.Array(Written) })
export type History = Static<typeof History>

const PHASE = { ...BARE_PHASE, data: AnyJson }
/** What a reply has of a phase: `text` and `data` are null if it has no room for them. */
const CUT_PHASE = { ...PHASE, text: NullableText, ...BYTES_OF_RESULT, sub_runs_more: SUB_RUNS_MORE }
/** What people see of phases may come from a newer program, like the states of runs. */
const PHASE_VIEW = { type: AnyText, state: AnyText }
/** Hubs of 0.1.0 leave these out. */
const WAIT_VIEW = {
  waiting: Type.Optional(nullable(Waiting)),
  turns: Type.Optional(Type.Array(TurnView)),
}
const SubRunView = Type.Object({ ...SUB_RUN, state: ViewedState })
const PhaseState = Type.Enum([...PHASE_STATES])

const PhaseRecord = Type.Object({ ...PHASE, state: PhaseState, sub_runs: Type.Array(SubRun) })
export type PhaseRecord = Static<typeof PhaseRecord>

const RunPhases = Type.Object({
  run_id: AnyText,
  state: RunState,
  phases: Type.Array(Type.Object({ ...CUT_PHASE, state: PhaseState, sub_runs: Type.Array(SubRun) })),
})
export type RunPhases = Static<typeof RunPhases>
/** `runs/phases`. */
export const PhasesView = Type.Object({
  run_id: AnyText,
  state: ViewedState,
  phases: rowsOf(Type.Object({ ...CUT_PHASE, ...PHASE_VIEW, ...WAIT_VIEW, sub_runs: Type.Array(SubRunView) })),
})

export const LogLine = Type.Object({
  /** From 1, without gaps, over all phases of the run. */
  seq: Type.Integer(),
  phase: NullableText,
  /** Epoch milliseconds. */
  at: Time,
  stream: Type.Enum(['stdout', 'stderr', 'log']),
  text: AnyText,
  fields: Type.Optional(AnyObject),
})
export type LogLine = Static<typeof LogLine>

/** Consecutive lines of the log of a tree that belong to one run: an event `log`, and a line of `runs/log`. */
const TreeLines = Type.Object({ run_id: AnyText, lines: Type.Array(LogLine) })
export type TreeLines = Static<typeof TreeLines>

/** One step of the chain: a run and the phase in it that decided its end. */
const Cause = Type.Object({
  run_id: AnyText,
  run_name: NullableText,
  team: AnyText,
  state: AnyText,
  phase: NullableText,
  error: nullable(RunError),
})
export type Cause = Static<typeof Cause>

/** The failed items of a map, by their errors, of which each has at most ten keys. */
const FailedItems = Type.Object({
  run_id: AnyText,
  /** With the phases that lead to the map, such as `work/each`, if it is in a run below. */
  phase: AnyText,
  passed_over: Type.Optional(
    Type.String({
      description: 'The phase that failed in each of the items, and was passed over, so that they completed.',
    }),
  ),
  total: Type.Integer(),
  failed: Type.Integer(),
  causes: Type.Array(Type.Object({ message: AnyText, count: Type.Integer(), keys: Type.Array(AnyText) })),
})
export type FailedItems = Static<typeof FailedItems>

const EXPLANATION = {
  run_id: AnyText,
  /** The explanation, one fact a line: the leaf that failed first. */
  lines: Type.Array(AnyText),
  /** The commands to go on with, as their arguments. */
  next: Type.Array(Type.Array(AnyText)),
  chain: Type.Array(Cause),
  written: Type.Array(Written),
  /** Phases that were skipped or cancelled because of it. */
  cancelled: Type.Array(Type.Object({ run_id: AnyText, phase: AnyText, state: AnyText })),
  /** Older daemons leave it out. */
  items: Type.Optional(Type.Array(FailedItems)),
}
/** Why a run ended as it did, or what it waits for, as a daemon reports it to its hub. */
export const Explanation = Type.Object(EXPLANATION)
export type Explanation = Static<typeof Explanation>

/** `runs/why`. `text`: `lines`, and on a daemon then the commands of `next` as they are typed on its machine. */
export const Why = Type.Object({ ...EXPLANATION, text: AnyText, started_by: StartedByView })
export type Why = Static<typeof Why>

const PhaseEvent = Type.Object({
  ...BARE_PHASE,
  ...PHASE_VIEW,
  ...WAIT_VIEW,
  run_id: AnyText,
  position: Type.Integer(),
  /** The number of items of a map, once it is known. A hub does not say. */
  items: Type.Optional(nullable(Type.Integer())),
  /** How many attempts failed and were, or are, followed by another one, of at most `max_attempts`. A hub does not know. */
  failures: Type.Optional(Type.Integer()),
  max_attempts: Type.Optional(Type.Integer()),
})
/** A phase in an event. Its result is not included; `runs/phases` returns it. */
export type PhaseEvent = Static<typeof PhaseEvent>

/** `data` of the events of a stream, by name. `end` is the last one: the run that was asked for has ended. */
export const EVENTS = {
  run: RunView,
  phase: PhaseEvent,
  log: TreeLines,
  end: RunView,
} as const

export type RunEvent = {
  [K in keyof typeof EVENTS]: { event: K; data: Static<(typeof EVENTS)[K]> }
}[keyof typeof EVENTS]

/** Lines of a log by their numbers, both ends included. */
export const LineRange = named('line_range', { from: Type.Integer(), to: Type.Integer() })
export type LineRange = Static<typeof LineRange>

/** How much of the log of a run the hub has. */
export const LOG_STATE = {
  /** Whether the hub has every line and none will be added; null: the daemon is too old to say so. */
  complete: nullable(Type.Boolean()),
  /** Lines that do not come any more. */
  missing: Type.Array(LineRange),
  /** Lines that are still to come; `to` is null while it is not known how many. */
  to_come: nullable(Type.Object({ from: Type.Integer(), to: nullable(Type.Integer()) })),
  /** Whether the hub left lines out, because the realm has used up its quota of log bytes. Older hubs have none. */
  cut: Type.Optional(
    Type.Boolean({ description: 'Whether lines are missing because the quota of log bytes is used up.' }),
  ),
  /** Whether the daemon keeps the log, because its setting `sync` is `status`. */
  kept: Type.Boolean(),
}
