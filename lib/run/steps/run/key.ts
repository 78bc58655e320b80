// The concurrency key of a top run. A run is inserted as `queued` with a place behind those that came before it, and
// begins in the unit in which its key has a place for it. Its end gives the place up; then the effect `key` looks for
// the next run, because a unit changes only one tree.

import { CadreError } from '../../../error.ts'
import type { JsonObject } from '../../../json.ts'
import type { HeldKey } from '../../../team/team.ts'
import { skippedFor, supersededBy, type WhenFull, waitsForKey } from '../../../wire/concurrency.ts'
import { LiveRun, type RunError, type RunRow, untouched } from '../../core/core.ts'
import type { KeyPlace } from '../../store/store.ts'
import { reopenRun } from '../kinds/reopen.ts'
import { stopRun } from '../kinds/stop.ts'
import { giveUpPlace } from '../state/key-place.ts'
import type { Work } from '../state/state.ts'
import { loadTree } from './load.ts'
import { follow } from './step.ts'

/** The key of one run, evaluated. */
export interface Key {
  text: string
  limit: number
  whenFull: WhenFull
}

/** Throws `invalid_request` when the inputs give no key. */
export function keyOf({ of, limit, whenFull }: HeldKey, inputs: JsonObject): Key {
  return { text: of(inputs), limit, whenFull }
}

/** Puts a `queued` top run behind those that want its key, and lets it begin if there is a place. */
export function takePlace(work: Work, runId: string, key: Key, again = false): void {
  const { keyPlaces, runs } = work.store
  keyPlaces.insert(runId, key.text, key.limit, key.whenFull)
  work.queued.add(runId)
  if (admit(work, runId)) return
  if (key.whenFull === 'skip') return turnAway(work, runId, key, again)
  runs.setReason(runId, waitsForKey(key.text))
  if (key.whenFull === 'cancel_oldest') work.notes.after({ kind: 'key', key: key.text })
}

/** Lets a run begin if it is the first that waits for its key and the key has a place. */
export function admit(work: Work, runId: string): boolean {
  const { keyPlaces, runs } = work.store
  const place = keyPlaces.get(runId)
  if (!place || place.holds || nextOf(work, place.key)?.run_id !== runId) return false
  keyPlaces.hold(runId)
  reopenRun(work, runs.get(runId)!)
  work.notes.after({ kind: 'key', key: place.key })
  follow(work, runId)
  return true
}

/** The run that may begin now: the first that waits for the key and that this process continues. */
export function nextOf({ queued, store: { keyPlaces } }: Work, key: string): KeyPlace | null {
  const first = keyPlaces.first(key, runId => queued.has(runId))
  return first && keyPlaces.holders(key) < first.most ? first : null
}

/** The runs that must make room, because one that came later says `cancel_oldest`. */
export function superseded({ store: { keyPlaces } }: Work, key: string): { runId: string; by: string }[] {
  const last = keyPlaces.lastCancelling(key)
  if (!last) return []
  const runs = keyPlaces.upTo(last)
  return runs.slice(0, Math.max(0, runs.length - last.most)).map(runId => ({ runId, by: last.run_id }))
}

/** Cancels a run for a newer one of its key, unless it was asked to end before. */
export function supersede(work: Work, runId: string, by: string): void {
  const row = work.store.runs.get(runId)
  if (!row || row.completed_at !== null || row.ending !== null) return
  const reason = supersededBy(by)
  if (row.state === 'queued') return endQueued(work, row, { reason })
  if (!work.lives.has(runId)) loadTree(work, runId)
  stopRun(work, work.lives.get(runId)!, { state: 'cancelled', reason })
  follow(work, runId)
}

/** Ends a top run that waits for its key. Nothing of it executes, `always` phases included. */
export function endQueued(work: Work, row: RunRow, end: { reason: string; error?: RunError }): void {
  const { notes, store, world } = work
  const at = world.now()
  const below = store.phases.cancelQueued(row.id, '', at)
  const runsBelow = store.runs.cancelQueued(row.id, '', at)
  const phases = store.phases.cancelOf(row.id, end.reason, at)
  store.runs.endQueued(row.id, end.reason, end.error ?? null, at)
  notes.changedRows([row, ...runsBelow], [...phases, ...below])
  const bundle = world.bundle(row.bundle_id)
  const states = bundle.team(row.team_key).phases.map(untouched)
  const ended = new LiveRun(store.runs.get(row.id)!, bundle, null, states, JSON.parse(row.inputs))
  notes.event(ended, 'on_cancel', null)
  giveUpPlace(work, row.id)
  notes.after({ kind: 'ended', runId: row.id, root: row.id, settled: false })
}

/** A new run ends, and one that has ended before is not opened again. */
function turnAway(work: Work, runId: string, { text }: Key, again: boolean): void {
  const { keyPlaces, runs } = work.store
  const holder = [...keyPlaces.of(text, 1), ...keyPlaces.of(text, 0)][0]!.run_id
  const end = skippedFor(text, holder)
  if (again) throw new CadreError('conflict', `${end.error.message}: resume it when that run has ended`)
  endQueued(work, runs.get(runId)!, end)
}
