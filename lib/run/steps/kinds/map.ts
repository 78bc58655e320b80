// Map phases: one sub-run for each item, up to `concurrency` at once. The items are frozen when they are first
// evaluated. A resume from an earlier phase evaluates them again: a sub-run then stays with its key, under the same run
// id, at whatever index the key has now. A sub-run whose key no longer exists keeps its result, and is placed after the
// current items.

import type { FileRecord } from '../../../agent/agent-context.ts'
import type { Json } from '../../../json.ts'
import type { MapPhase } from '../../../team/team.ts'
import {
  JsonText,
  type LiveRun,
  type MapProgress,
  type NextItem,
  parse,
  phaseEnded,
  type RunError,
  treeKey,
} from '../../core/core.ts'
import { errorOf, failureOf } from '../state/fault.ts'
import { unpark } from '../state/map-slots.ts'
import type { RunEnd } from '../state/run-end.ts'
import type { Work } from '../state/state.ts'
import { startTask } from '../state/task.ts'
import { cancelQueued } from '../state/transition.ts'
import { openWhole } from './reopen.ts'
import { endPhase, failPhase } from './settle.ts'
import { createSubRun, lacksHandOver, reopenSubRun } from './sub-run.ts'

/** Maximum number of items that one step starts, so that other runs get their turn. */
const STARTS_OF_A_STEP = 16
/** Number of items that are read at once. */
const PAGE = 32
/** Added to the index of a sub-run while it is moved. No map has so many items, and it fits six base-36 digits. */
const AWAY_INDEX = 1_000_000_000

/** An item as it is stored: its value as JSON, and the folder of its files below `files/<phase>/`. */
export interface FrozenItem {
  key: string
  value: string
  folder: string
}

/** The result of a map, built from its sub-runs. */
export interface MapResult {
  counts: { completed: number; failed: number; cancelled: number }
  /** JSON text. */
  data: string
  files: readonly FileRecord[]
}

export function startMap(work: Work, live: LiveRun, phase: MapPhase): void {
  // A resume keeps the items, unless it repeats an earlier phase: then they are evaluated again.
  const total = work.store.phases.total(live.id, phase.index)
  if (total === null) return startTask(work, live, phase.index, 'freeze')
  beginItems(work, live, phase, total)
}

/** Continues a map after a restart, from where its rows are. */
export function takeUpMap(work: Work, live: LiveRun, phase: MapPhase): void {
  const total = work.store.phases.total(live.id, phase.index)
  if (total === null) return startTask(work, live, phase.index, 'freeze')
  continueItems(work, live, phase, total)
}

/** Stores a page of evaluated items. The first page replaces what an earlier evaluation left. */
export function freezePage(work: Work, live: LiveRun, phase: MapPhase, from: number, items: readonly FrozenItem[]) {
  if (work.store.phases.total(live.id, phase.index) !== null) return
  if (from === 0) work.store.items.delete(live.id, phase.index)
  work.store.items.insert(live.id, phase.index, from, items)
}

/**
 * Gives sub-runs of an earlier evaluation their new items. Called for all of them with `away` first, which moves them
 * out of the way, because another sub-run may still have the index.
 */
export function moveSubRuns(
  work: Work,
  live: LiveRun,
  phase: MapPhase,
  places: readonly { id: string; item: number; moves: boolean; opens: boolean }[],
  away: boolean,
): void {
  const { phases, runs } = work.store
  if (phases.total(live.id, phase.index) !== null) return
  for (const { id, item, moves, opens } of places) {
    if (moves) {
      const to = treeKey(live.row.tree_key, phase.index, away ? AWAY_INDEX + item : item)
      const moved = runs.move(live.root, id, away ? AWAY_INDEX + item : item, runs.get(id)!.tree_key, to)
      if (!away) work.notes.changedRows(moved, [])
    }
    if (opens && !away) openWhole(work, id)
  }
}

/** Called when all items are stored and sub-runs of an earlier evaluation have their new items. */
export function frozen(work: Work, live: LiveRun, phase: MapPhase, total: number): void {
  if (work.store.phases.total(live.id, phase.index) !== null) return
  work.store.phases.setTotal(live.id, phase.index, total)
  work.notes.changed(live, phase.index)
  beginItems(work, live, phase, total)
}

function beginItems(work: Work, live: LiveRun, phase: MapPhase, total: number): void {
  const { attempt } = live.phases[phase.index]!
  if (attempt > 1) work.notes.after({ kind: 'clear', runId: live.id, position: phase.index })
  work.notes.changedRows(work.store.runs.requeueChildren(live.id, phase.index, total), [])
  continueItems(work, live, phase, total)
}

function continueItems(work: Work, live: LiveRun, phase: MapPhase, total: number): void {
  live.maps.set(phase.index, progressOf(work, live, phase, total))
  sendMissingFiles(work, live, phase, total)
  live.proceeding.add(phase.index)
  work.agenda.add(live)
}

/** Sends tasks for the files of completed sub-runs that were not handed over because of a kill or a fault. */
function sendMissingFiles(work: Work, live: LiveRun, phase: MapPhase, total: number): void {
  if (!live.bundle.team(phase.team).outputs.some(({ type }) => type === 'file')) return
  for (const child of work.store.runs.children(live.id, phase.index)) {
    if (child.item! >= total || child.state !== 'completed' || !lacksHandOver(live, child)) continue
    startTask(work, live, phase.index, 'hand', child.id)
  }
}

function progressOf({ store }: Work, live: LiveRun, phase: MapPhase, total: number): MapProgress {
  const failed = store.runs
    .childStates(live.id, phase.index, total)
    .filter(({ state }) => state === 'failed' || state === 'cancelled')
    .reduce((sum, { count }) => sum + count, 0)
  const isBroken = store.phases.error(live.id, phase.index) !== null
  const stopped = (failed > 0 && phase.onItemFailure === 'stop') || isBroken
  return { total, next: 0, failed, stopped, page: [], ending: false }
}

/** Starts items up to the map's concurrency. When none is left, sends the task that builds the result. */
export function proceed(work: Work, live: LiveRun, phase: MapPhase): void {
  const { index } = phase
  const progress = live.maps.get(index)
  if (!progress || progress.ending || phaseEnded(live.phases[index]!.state)) return
  const below = live.below(index)
  for (const child of below.wanting.keys()) if (!unpark(work, child)) break
  const ending = live.callsOff(index)
  const mayStart = () =>
    !ending && !progress.stopped && progress.next < progress.total && below.runs.size - below.parked < phase.concurrency
  for (let started = 0; mayStart(); started++) {
    if (started === STARTS_OF_A_STEP || !work.agenda.mayBegin()) {
      live.proceeding.add(index)
      return work.agenda.add(live)
    }
    if (progress.page.length === 0) {
      progress.page.push(...work.store.items.next(live.id, index, progress.next, PAGE))
    }
    const next = progress.page.shift()
    progress.next = next ? next.item + 1 : progress.total
    if (next) startItem(work, live, phase, progress, next)
  }
  if (below.runs.size > 0 || live.tasks.has(index)) return
  if (ending) return endPhase(work, live, index, 'cancelled', { reason: ending.reason })
  progress.ending = true
  // Sub-runs that still wait for a new attempt will not get one. They are cancelled and counted as cancelled.
  cancelQueued(work, live, index)
  startTask(work, live, index, 'conclude')
}

/** Starts an item: creates its sub-run, or begins the new attempt of the one that it has. */
function startItem(work: Work, live: LiveRun, phase: MapPhase, progress: MapProgress, next: NextItem): void {
  const { item: index, key, sub_run } = next
  const value: Json = JSON.parse(next.value)
  try {
    if (sub_run === null) createSubRun(work, live, phase, key, { value, index })
    else reopenSubRun(work, live, phase, sub_run, { value, index })
  } catch (thrown) {
    stopMap(work, live, phase, progress, index, key, failureOf(thrown))
  }
}

export function mapChildEnded(
  work: Work,
  live: LiveRun,
  phase: MapPhase,
  child: LiveRun,
  end: RunEnd,
  fault: unknown,
): void {
  const progress = live.maps.get(phase.index)
  if (!progress) return
  if (fault !== null) stopMap(work, live, phase, progress, child.row.item!, child.row.run_name!, errorOf(fault))
  else if (end.state !== 'completed') {
    progress.failed++
    if (phase.onItemFailure === 'stop') progress.stopped = true
  }
  live.proceeding.add(phase.index)
  work.agenda.add(live)
}

/** Called when the files of an already completed sub-run were handed over, or could not be (`fault`). */
export function mapHanded(work: Work, live: LiveRun, phase: MapPhase, childId: string, fault: unknown): void {
  const progress = live.maps.get(phase.index)
  if (!progress) return
  if (fault !== null) {
    const child = work.store.runs.get(childId)!
    stopMap(work, live, phase, progress, child.item!, child.run_name!, errorOf(fault))
  }
  live.proceeding.add(phase.index)
  work.agenda.add(live)
}

/** Records a fault of the map itself, which belongs to no sub-run: no more items start, and the phase fails with it. */
function stopMap(
  work: Work,
  live: LiveRun,
  phase: MapPhase,
  progress: MapProgress,
  item: number,
  key: string,
  fault: RunError,
): void {
  progress.stopped = true
  const error = work.world.mask(live.root, fault)
  const place = key === String(item) ? `item ${item}` : `item ${item} (${key})`
  work.store.phases.setError(live.id, phase.index, { ...error, message: `${place}: ${error.message}` })
}

/** Called when the result is built. The phase ends with it. */
export function mapConcluded(work: Work, live: LiveRun, phase: MapPhase, result: MapResult): void {
  const { index } = phase
  const progress = live.maps.get(index)
  if (!progress) return
  const { counts, files } = result
  const ending = live.callsOff(index)
  if (ending) return endPhase(work, live, index, 'cancelled', { reason: ending.reason })
  const change = { text: `${counts.completed} of ${progress.total} completed`, data: new JsonText(result.data), files }
  const broken = parse<RunError>(work.store.phases.error(live.id, index))
  if (!broken && !progress.stopped) return endPhase(work, live, index, 'completed', change)
  const error = broken ?? {
    code: 'item_failed',
    message: `${counts.failed + counts.cancelled} of ${progress.total} items did not complete: ${firstFailure(work, live, phase)}`,
  }
  failPhase(work, live, index, error, change)
}

function firstFailure({ store }: Work, live: LiveRun, phase: MapPhase): string {
  const row = store.runs.firstFailedChild(live.id, phase.index)
  if (!row) return 'see its sub-runs'
  const error = parse<RunError>(row.error)
  return `${row.run_name} ${row.state}${error ? ` (${error.phase ? `phase ${error.phase}: ` : ''}${error.message})` : ''}`
}
