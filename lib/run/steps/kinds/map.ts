// Map phases: one sub-run for each item, up to `concurrency` at once. The items are stored when they are first
// evaluated. A resume from an earlier phase evaluates them again: a sub-run then keeps its run id and its key, and gets
// the index that the key has now. A sub-run whose key no longer exists keeps its result, and gets an index after the
// current items.

import type { FileRecord } from '../../../agent/agent-context.ts'
import type { RunId } from '../../../files/run-id.ts'
import { type MaskedText, maskedText, recordedText } from '../../../secrets/masked.ts'
import type { MapPhase } from '../../../team/team.ts'
import {
  JsonText,
  type LiveRun,
  type MapProgress,
  parse,
  phaseEnded,
  type RunError,
  type RunRow,
  treeKey,
} from '../../core/core.ts'
import { foldersOf } from '../../files/files.ts'
import type { Renewal } from '../../store/store.ts'
import { unpark } from '../phase/map-slots.ts'
import { endPhase, failPhase } from '../phase/phase-end.ts'
import { sendTask } from '../phase/tasks.ts'
import { cancelQueuedSubRuns } from '../phase/transition.ts'
import { createRuns } from '../run/create.ts'
import { openPassedOver, openWhole } from '../run/reopen.ts'
import type { Item } from '../run/sub-run-inputs.ts'
import { errorOf, failureOf } from '../state/fault.ts'
import type { EngineState } from '../state/state.ts'
import type { PhaseKind } from './phase-kind.ts'
import { inputsOfSubRun, lacksHandOver, newSubRun, reopenSubRun, stopPhaseWithSubRuns } from './sub-runs.ts'

/** Maximum number of items that one step starts, so that other runs get their turn. */
const STARTS_OF_A_STEP = 16
/** Number of items that are read at once. */
const PAGE = 32
/** Added to the index of a sub-run while it is moved. No map has so many items, and it fits six base-36 digits. */
const AWAY_INDEX = 1_000_000_000

/** An item as it is stored: its value as JSON, and the folder of its files below `files/<phase>/`. */
export interface StoredItem {
  key: MaskedText
  value: MaskedText
  folder: string
}

/** The result of a map, built from its sub-runs. */
export interface MapResult {
  counts: { completed: number; failed: number; cancelled: number }
  /** JSON text. */
  data: string
  files: readonly FileRecord[]
}

export const map: PhaseKind<MapPhase> = {
  start(engine, live, phase) {
    // A resume keeps the items, unless it repeats an earlier phase: then they are evaluated again.
    const total = engine.store.phases.total(live.id, phase.index)
    if (total === null) return sendTask(engine, live, phase.index, 'items')
    startItems(engine, live, phase, total)
  },

  stop: stopPhaseWithSubRuns,
  attempts: null,

  subRuns: {
    continue(engine, live, phase) {
      const total = engine.store.phases.total(live.id, phase.index)
      if (total === null) return sendTask(engine, live, phase.index, 'items')
      continueItems(engine, live, phase, total)
    },

    proceed: startMoreItems,

    ended(engine, live, phase, child, end) {
      const progress = live.maps.get(phase.index)
      if (!progress) return
      if (end.handFault !== null) failMap(engine, live, phase, child.row, errorOf(end.handFault))
      else if (end.state !== 'completed') {
        progress.failed++
        if (phase.onItemFailure === 'stop') progress.stopped = true
      }
      live.proceeding.add(phase.index)
      engine.agenda.add(live)
    },

    handed(engine, live, phase, childId, fault) {
      if (!live.maps.has(phase.index)) return
      if (fault !== null) failMap(engine, live, phase, engine.store.runs.get(childId)!, errorOf(fault))
      live.proceeding.add(phase.index)
      engine.agenda.add(live)
    },

    folderOf({ items }, live, { index }, { item, run_name }) {
      const key = run_name!
      // In databases that are older than the column, the folder follows from the key alone.
      return items.folder(live.id, index, item!) ?? (foldersOf([key])[0] === key ? key : String(item))
    },
  },
}

/** Stores a page of evaluated items. The first page replaces what an earlier evaluation left. */
export function storeItems(
  engine: EngineState,
  live: LiveRun,
  phase: MapPhase,
  from: number,
  items: readonly StoredItem[],
) {
  if (engine.store.phases.total(live.id, phase.index) !== null) return
  if (from === 0) engine.store.items.delete(live.id, phase.index)
  engine.store.items.insert(live.id, phase.index, from, items)
}

/**
 * Gives sub-runs of an earlier evaluation their new items. Called for all of them with `away` first, which moves them
 * out of the way, because another sub-run may still have the index.
 */
export function moveSubRuns(
  engine: EngineState,
  live: LiveRun,
  phase: MapPhase,
  moved: readonly { id: RunId; item: number; moves: boolean; opens: boolean }[],
  away: boolean,
): void {
  const { phases, runs } = engine.store
  if (phases.total(live.id, phase.index) !== null) return
  const renewal = phases.renewal(live.id, phase.index)
  for (const { id, item, moves, opens } of moved) {
    if (moves) {
      const to = treeKey(live.row.tree_key, phase.index, away ? AWAY_INDEX + item : item)
      const rows = runs.move(live.root, id, away ? AWAY_INDEX + item : item, runs.get(id)!.tree_key, to)
      if (!away) engine.notes.changedRows(rows, [])
    }
    if (!opens || away) continue
    if (renewal === null) openWhole(engine, id)
    else renewSubRun(engine, live, phase, id, renewal)
  }
}

/**
 * The items are evaluated again because of something before the map, and a sub-run has one of them. What completed stays
 * if its inputs are the same. Files are other files when their phase was repeated, although their paths are the same.
 */
function renewSubRun(engine: EngineState, live: LiveRun, phase: MapPhase, id: RunId, renewal: Renewal): void {
  const { items, runs } = engine.store
  const row = runs.get(id)!
  if (row.completed_at === null) return
  const { item, value } = items.get(live.id, phase.index, row.item!)!
  const isSame = hasInputs(engine, live, phase, { value: JSON.parse(value), index: item }, row.inputs)
  if (row.state === 'completed' && !isSame) return openWhole(engine, id)
  if (renewal === 'failed') openPassedOver(engine, row)
  // The folder of its files may have another name now.
  if (row.state === 'completed' && row.handed !== null) runs.setHanded(id, null)
}

function hasInputs(engine: EngineState, live: LiveRun, phase: MapPhase, item: Item, inputs: string): boolean {
  if (live.bundle.team(phase.team).inputs.some(({ type }) => type === 'file')) return false
  try {
    return inputsOfSubRun(engine, live, phase, item) === inputs
  } catch {
    // The map fails with this error when it starts the item.
    return false
  }
}

/** All items are stored, and sub-runs of an earlier evaluation have their new items. */
export function itemsStored(engine: EngineState, live: LiveRun, phase: MapPhase, total: number): void {
  if (engine.store.phases.total(live.id, phase.index) !== null) return
  engine.store.phases.setTotal(live.id, phase.index, total)
  engine.notes.changed(live, phase.index)
  startItems(engine, live, phase, total)
}

function startItems(engine: EngineState, live: LiveRun, phase: MapPhase, total: number): void {
  const { attempt } = live.phases[phase.index]!
  if (attempt > 1) engine.notes.after({ kind: 'clear', runId: live.id, position: phase.index })
  engine.notes.changedRows(engine.store.runs.requeueChildren(live.id, phase.index, total), [])
  continueItems(engine, live, phase, total)
}

function continueItems(engine: EngineState, live: LiveRun, phase: MapPhase, total: number): void {
  live.maps.set(phase.index, progressOf(engine, live, phase, total))
  sendMissingFiles(engine, live, phase, total)
  live.proceeding.add(phase.index)
  engine.agenda.add(live)
}

/** Sends tasks for the files of completed sub-runs that were not handed over because of a kill or a fault. */
function sendMissingFiles(engine: EngineState, live: LiveRun, phase: MapPhase, total: number): void {
  if (!live.bundle.team(phase.team).outputs.some(({ type }) => type === 'file')) return
  for (const child of engine.store.runs.children(live.id, phase.index)) {
    if (child.item! >= total || child.state !== 'completed' || !lacksHandOver(live, child)) continue
    sendTask(engine, live, phase.index, 'files', child.id)
  }
}

function progressOf({ store }: EngineState, live: LiveRun, phase: MapPhase, total: number): MapProgress {
  const failed = store.runs
    .childStates(live.id, phase.index, total)
    .filter(({ state }) => state === 'failed' || state === 'cancelled')
    .reduce((sum, { count }) => sum + count, 0)
  const isBroken = store.phases.error(live.id, phase.index) !== null
  const stopped = (failed > 0 && phase.onItemFailure === 'stop') || isBroken
  return { total, next: 0, failed, stopped, page: [], ending: false }
}

/** Starts items up to the map's concurrency. When none is left, sends the task that builds the result. */
function startMoreItems(engine: EngineState, live: LiveRun, phase: MapPhase): void {
  const { index } = phase
  const progress = live.maps.get(index)
  if (!progress || progress.ending || phaseEnded(live.phases[index]!.state)) return
  const below = live.below(index)
  for (const child of below.wanting.keys()) if (!unpark(engine, child)) break
  const ending = live.cancelRequest(index)
  // What is left in a drain starts when the tree is read again.
  if (!ending && mayStart(progress) && engine.world.draining()) return
  if (!ending && !startNextItems(engine, live, phase, progress)) {
    live.proceeding.add(index)
    return engine.agenda.add(live)
  }
  if (below.runs.size > 0 || live.tasks.has(index)) return
  if (ending) return endPhase(engine, live, index, 'cancelled', { reason: ending.reason })
  progress.ending = true
  // Sub-runs that still wait for a new attempt will not get one. They are cancelled and counted as cancelled.
  cancelQueuedSubRuns(engine, live, index)
  sendTask(engine, live, index, 'result')
}

const mayStart = ({ stopped, next, total }: MapProgress): boolean => !stopped && next < total

/**
 * Starts the next items in their order. The new sub-runs among them are created together. False when more may start than
 * one step does.
 */
function startNextItems(engine: EngineState, live: LiveRun, phase: MapPhase, progress: MapProgress): boolean {
  const { index } = phase
  const below = live.below(index)
  const created: ReturnType<typeof newSubRun>[] = []
  const create = () => createRuns(engine, created.splice(0))
  const isRoom = () => below.runs.size + created.length - below.parked < phase.concurrency
  let isAll = true
  for (let started = 0; mayStart(progress) && isRoom(); started++) {
    isAll = started < STARTS_OF_A_STEP && engine.agenda.hasTime()
    if (!isAll) break
    if (progress.page.length === 0) {
      progress.page.push(...engine.store.items.next(live.id, index, progress.next, PAGE))
    }
    const next = progress.page.shift()
    progress.next = next ? next.item + 1 : progress.total
    if (!next) continue
    const item: Item = { value: JSON.parse(next.value), index: next.item }
    try {
      if (next.sub_run === null) created.push(newSubRun(engine, live, phase, next.key, item))
      else {
        create()
        reopenSubRun(engine, live, phase, next.sub_run, item)
      }
    } catch (thrown) {
      failMap(engine, live, phase, { item: next.item, run_name: next.key }, failureOf(thrown))
    }
  }
  create()
  return isAll
}

/** Records a fault of the map itself, which belongs to no sub-run: no more items start, and the phase fails with it. */
function failMap(
  engine: EngineState,
  live: LiveRun,
  phase: MapPhase,
  { item, run_name: key }: Pick<RunRow, 'item' | 'run_name'>,
  fault: RunError,
): void {
  live.maps.get(phase.index)!.stopped = true
  const name = key === String(item) ? `item ${item}` : `item ${item} (${key})`
  const error = engine.world.mask(live.root, { ...fault, message: `${name}: ${fault.message}` })
  engine.store.phases.setError(live.id, phase.index, error)
}

/** The result is built: the phase ends with it. */
export function endMap(engine: EngineState, live: LiveRun, phase: MapPhase, result: MapResult): void {
  const { index } = phase
  const progress = live.maps.get(index)
  if (!progress) return
  const { counts, files } = result
  const ending = live.cancelRequest(index)
  if (ending) return endPhase(engine, live, index, 'cancelled', { reason: ending.reason })
  const text = maskedText`${counts.completed} of ${progress.total} completed`
  const change = { text, data: new JsonText(recordedText(result.data)), files }
  const broken = parse<RunError>(engine.store.phases.error(live.id, index))
  if (!broken && !progress.stopped) return endPhase(engine, live, index, 'completed', change)
  const error = broken ?? {
    code: 'item_failed',
    message: `${incompleteText(counts, progress.total)}: ${firstFailure(engine, live, phase)}`,
  }
  failPhase(engine, live, index, error, change)
}

/** How many items did not complete. Of a map that stopped, there may be some that have no sub-run. */
function incompleteText({ completed, failed, cancelled }: MapResult['counts'], total: number): string {
  const notBegun = total - completed - failed - cancelled
  const verb = notBegun === 1 ? 'was' : 'were'
  return `${total - completed} of ${total} items did not complete${notBegun > 0 ? `, ${notBegun} of which ${verb} not begun` : ''}`
}

function firstFailure({ store }: EngineState, live: LiveRun, phase: MapPhase): string {
  const row = store.runs.firstFailedChild(live.id, phase.index)
  if (!row) return 'see its sub-runs'
  const error = parse<RunError>(row.error)
  return `${row.run_name} ${row.state}${error ? ` (${error.phase ? `phase ${error.phase}: ` : ''}${error.message})` : ''}`
}
