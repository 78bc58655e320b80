// The concurrency key of a top run, which a limited number of runs hold at once. A run is inserted as `queued`, behind
// the runs that came before it, and starts in the unit in which it gets the key. Its end releases the key; then the
// effect `key` looks for the next run, because a unit changes only one tree.

import { CadreError } from '../../../error.ts'
import type { JsonObject } from '../../../json.ts'
import type { HeldKey } from '../../../team/team.ts'
import { skippedFor, supersededBy, type WhenFull, waitsForKey } from '../../../wire/concurrency.ts'
import { LiveRun, type RunError, type RunRow, untouched } from '../../core/core.ts'
import type { KeyClaim } from '../../store/store.ts'
import { reopenRun } from '../run/reopen.ts'
import type { EngineState } from '../state/state.ts'
import { loadTree } from './load.ts'
import { releaseKey } from './release-key.ts'
import { takeSteps } from './step.ts'
import { stopRun } from './stop.ts'

/** The key of one run, evaluated. */
export interface Key {
  text: string
  limit: number
  whenFull: WhenFull
}

/** Throws `invalid_request` when the inputs and the environment give no key. */
export function keyOf({ of, limit, whenFull }: HeldKey, inputs: JsonObject, environment: string | null): Key {
  return { text: of(inputs, environment), limit, whenFull }
}

/** Puts a `queued` top run behind the runs that wait for its key, and starts it if the key is free. */
export function queueForKey(engine: EngineState, runId: string, key: Key, again = false): void {
  const { concurrencyKeys, runs } = engine.store
  concurrencyKeys.insert(runId, key.text, key.limit, key.whenFull)
  engine.queued.add(runId)
  if (startIfAdmitted(engine, runId)) return
  if (key.whenFull === 'skip') return skipRun(engine, runId, key, again)
  runs.setReason(runId, waitsForKey(key.text))
  if (key.whenFull === 'cancel_oldest') engine.notes.after({ kind: 'key', key: key.text })
}

/** Gives a run its key and starts it, if it is the first that waits for the key and the key is free. */
export function startIfAdmitted(engine: EngineState, runId: string): boolean {
  const { concurrencyKeys, runs } = engine.store
  const claim = concurrencyKeys.get(runId)
  if (!claim || claim.holds || nextForKey(engine, claim.key)?.run_id !== runId) return false
  concurrencyKeys.hold(runId)
  reopenRun(engine, runs.get(runId)!)
  engine.notes.after({ kind: 'key', key: claim.key })
  takeSteps(engine, runId)
  return true
}

/** The run that may have the key now: the first that waits for it and that this process continues. */
export function nextForKey({ queued, store: { concurrencyKeys } }: EngineState, key: string): KeyClaim | null {
  const first = concurrencyKeys.first(key, runId => queued.has(runId))
  return first && concurrencyKeys.holders(key) < first.most ? first : null
}

/** The runs that are cancelled because a later run of their key says `cancel_oldest`. */
export function superseded({ store: { concurrencyKeys } }: EngineState, key: string): { runId: string; by: string }[] {
  const last = concurrencyKeys.lastCancelling(key)
  if (!last) return []
  const runs = concurrencyKeys.upTo(last)
  return runs.slice(0, Math.max(0, runs.length - last.most)).map(runId => ({ runId, by: last.run_id }))
}

/** Cancels a run for a newer one of its key, unless it was asked to end before. */
export function supersede(engine: EngineState, runId: string, by: string): void {
  const row = engine.store.runs.get(runId)
  if (!row || row.completed_at !== null || row.ending !== null) return
  const reason = supersededBy(by)
  if (row.state === 'queued') return endQueued(engine, row, { reason })
  if (!engine.lives.has(runId)) loadTree(engine, runId)
  stopRun(engine, engine.lives.get(runId)!, { state: 'cancelled', reason })
  takeSteps(engine, runId)
}

/** Ends a top run that waits for its key. None of its phases executes, `always` phases included. */
export function endQueued(engine: EngineState, row: RunRow, end: { reason: string; error?: RunError }): void {
  const { notes, store, world } = engine
  const at = world.now()
  const below = store.phases.cancelQueued(row.id, '', at)
  const runsBelow = store.runs.cancelQueued(row.id, '', at)
  const phases = store.phases.cancelOf(row.id, end.reason, at)
  store.runs.endQueued(row.id, end.reason, end.error ? world.mask(row.root_id, end.error) : null, at)
  notes.changedRows([row, ...runsBelow], [...phases, ...below])
  const bundle = world.bundle(row.bundle_id)
  const states = bundle.team(row.team_key).phases.map(untouched)
  const ended = new LiveRun(store.runs.get(row.id)!, bundle, null, states, JSON.parse(row.inputs))
  notes.event(ended, 'on_cancel', null)
  releaseKey(engine, row.id)
  notes.after({ kind: 'ended', runId: row.id, root: row.id, settled: false })
}

/** The key is taken: a new run ends, and a run that has ended before stays as it is. */
function skipRun(engine: EngineState, runId: string, { text }: Key, again: boolean): void {
  const { concurrencyKeys, runs } = engine.store
  const holder = [...concurrencyKeys.of(text, 1), ...concurrencyKeys.of(text, 0)][0]!.run_id
  const end = skippedFor(text, holder)
  if (again) throw new CadreError('conflict', `${end.error.message}: resume it when that run has ended`)
  endQueued(engine, runs.get(runId)!, end)
}
