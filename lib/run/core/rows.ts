// The rows of the run database as they are read, and how JSON is stored in a column.

import type { RunId } from '../../files/run-id.ts'
import type { MaskedText } from '../../secrets/masked.ts'
import type { RunError } from '../../wire/records/run-records.ts'
import { type StartedBy, UNKNOWN_STARTER } from '../../wire/records/started-by.ts'
import type { ReceiptState } from './receipt.ts'
import type { PhaseState, RunState } from './states.ts'

export type { RunError }

export interface RunRow {
  /** Its rowid, by which the index of searches knows it; 0 until it is inserted. */
  number: number
  id: RunId
  root_id: RunId
  tree_key: string
  parent_id: RunId | null
  parent_position: number | null
  parent_phase: string | null
  item: number | null
  run_name: string | null
  call_path: string
  call_depth: number
  bundle_id: string
  team_key: string
  team: string
  version: string
  state: RunState
  reason: string | null
  error: string | null
  inputs: string
  outputs: string | null
  workspace: string | null
  from_path: number
  synced: number
  attempt: number
  ending: string | null
  created_at: number
  started_at: number | null
  completed_at: number | null
  deadline: number | null
  time_left: number | null
  /** Number of the last log line that the hub has to get. */
  logged: number
  /** Number of the last log line that the hub has acknowledged. */
  log_sent: number
  /** 1 when nothing more is written to the log of this attempt. */
  log_ended: number
  /** 1 while the hub has not heard of all of the log. */
  log_due: number
  handed: string | null
  settled: number
  /** Who or what started a top run, as JSON; null also for one from before this was recorded. */
  started_by: string | null
  /** Whose settings and secrets it has; null for the plain ones. That of a sub-run is that of its top run. */
  environment: string | null
  /** Who may approve a top run before anything of it begins, as a JSON list of names; null when nobody is asked. */
  review: string | null
  /** How long its ended attempts took, in lived milliseconds; null for a run from before this was counted. */
  lived_ms: number | null
  /** How many failures a completed run passed over, in it and below it; null for every other run. */
  tolerated: number | null
  /** The lived time at which the attempt began that goes on; null when none does. */
  lived_since: number | null
  /** The place in a trace of the call that started a top run; null where its trace begins with the run. */
  traceparent: string | null
}

export interface PhaseRow {
  run_id: RunId
  position: number
  state: PhaseState
  reason: string | null
  attempt: number
  failures: number
  /** In lived time, as all of `deadline`. */
  due_at: number | null
  started_at: number | null
  completed_at: number | null
  error: string | null
  text: string | null
  data: string | null
  files: string | null
  deadline: number | null
  time_left: number | null
  total: number | null
  renewal: 'completed' | 'failed' | null
}

export interface ReceiptRow {
  run_id: RunId
  position: number
  entry: string
  state: ReceiptState
  attempt: number
  result: string | null
  external_id: string | null
  external_url: string | null
  sent_at: number
  done_at: number | null
  /** When its request ended, or was sent while that is not known: a moment of the boot `boot`. */
  boot: string | null
  ended: number | null
  /** When its absence was first concluded by time alone; null when it never was. */
  presumed_at: number | null
  /** When what is presumed absent was sent. */
  sent_first: number | null
  /** What was sent, where the entry says it. */
  request: string | null
  /** What else carries the mark of the entry, as a JSON list of `{id, url}`. */
  copies: string | null
}

/** The position of the review that asks whether a run may begin: it is about no phase. */
export const START = -1

export interface ReviewRow {
  id: string
  run_id: RunId
  /** Of its phase; `START` for the review of kind `start`. */
  position: number
  /** Of its phase; for the review of kind `start` that of the run. */
  attempt: number
  kind: 'gate' | 'escalation' | 'start'
  reason: string
  prompt: string
  entries: string
  /** What its approval leads to, as JSON; null until that was found out, which is after it opens. */
  next: string | null
  /** What the commands of its gate printed and wrote, as JSON. */
  shown: string | null
  state: 'pending' | 'decided'
  decision: string | null
  decided_by: string | null
  comment: string | null
  input: string | null
  deadline: number | null
  created_at: number
  decided_at: number | null
}

export interface DeliveryRow {
  run_id: RunId
  number: number
  listener: string
  event: string
  payload: string
  state: 'pending' | 'sent' | 'delivered' | 'failed' | 'unknown'
  error: string | null
}

/** JSON that has already been written as text, because it was measured or built piece by piece. */
export class JsonText {
  readonly text: MaskedText

  constructor(text: MaskedText) {
    this.text = text
  }
}

/** JSON text for a column; null for an absent value. */
export function json(value: unknown): string | null {
  return value === undefined || value === null ? null : JSON.stringify(value)
}

export function parse<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T)
}

/** Who may approve a run before anything of it begins; nobody, where nobody is asked. */
export function startReviewers({ review }: Pick<RunRow, 'review'>): string[] {
  return parse<string[]>(review) ?? []
}

/** Who or what started a run; null for a sub-run. */
export function startedBy(row: Pick<RunRow, 'parent_id' | 'started_by'>): StartedBy | null {
  return row.parent_id === null ? (parse<StartedBy>(row.started_by) ?? UNKNOWN_STARTER) : null
}

/**
 * The key by which the runs of a tree are in order, parents first: three base-36 digits for the phase and six for the
 * item, after the key of the parent.
 */
export function treeKey(parent: string, position: number, item: number): string {
  return branchKey(parent, position) + item.toString(36).padStart(6, '0')
}

/** The prefix of the tree keys of all runs below a phase. */
export function branchKey(parent: string, position: number): string {
  return parent + position.toString(36).padStart(3, '0')
}
