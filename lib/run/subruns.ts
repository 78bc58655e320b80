// Sub-runs of `team` and `map` phases: how they are started, and what their end means for the phase above.

import type { FileRecord } from '../agent/define.ts'
import { CadreError } from '../error.ts'
import type { Json, JsonObject } from '../json.ts'
import type { Field, MapPhase, TeamPhase } from '../team/team.ts'
import { inputsFor } from '../team/team.ts'
import { bounded, jsonBytes, MAX_DATA_BYTES } from './bounded.ts'
import { childOf, childrenOf, childStates, firstFailedChild, itemCount, itemKeys, nextItem } from './children.ts'
import { errorOf, type RunEnd } from './ending.ts'
import { dropStale, handedOver, handOver, writeItems } from './handover.ts'
import { freezeItems } from './items.ts'
import type { LiveRun, MapProgress } from './live.ts'
import type { Machine } from './machine.ts'
import { parse, type RunError, type RunRow } from './records.ts'
import { cancelQueued, openWhole, requeueChildren } from './reopening.ts'
import { scopeOf } from './scope.ts'
import type { RunStore } from './store.ts'

/** Sub-runs nest no deeper than this. */
const MAX_DEPTH = 32
/** What a map's `data` takes besides its items. */
const COUNTS_BYTES = 200

export function startTeam(machine: Machine, live: LiveRun, phase: TeamPhase): void {
  try {
    // A new attempt goes on with the sub-run of the one before, and keeps what that completed.
    requeueChildren(machine, live.id, phase.index, 1)
    const earlier = childOf(machine.store, live.id, phase.index, 0)
    if (!earlier) createSubRun(machine, live, phase, 0, null, undefined)
    else if (earlier.state === 'completed') endTeam(machine, live, phase, earlier, parse(earlier.outputs) ?? {})
    else {
      machine.after(() => dropStale(machine, live, phase))
      reopenSubRun(machine, live, phase, earlier.id, undefined)
    }
  } catch (thrown) {
    machine.failPhase(live, phase.index, errorOf(thrown))
  }
}

export function startMap(machine: Machine, live: LiveRun, phase: MapPhase): void {
  try {
    // After a resume the items are there already, unless it was from a phase before: then they are evaluated anew.
    if (itemCount(machine.store, live.id, phase.index) === 0) freezeItems(machine, live, phase)
    const total = itemCount(machine.store, live.id, phase.index)
    for (const child of childrenOf(machine.store, live.id, phase.index)) {
      if (child.state === 'completed' && child.item! < total)
        handOver(machine, live, phase, child, parse(child.outputs) ?? {})
    }
  } catch (thrown) {
    return machine.failPhase(live, phase.index, errorOf(thrown))
  }
  requeueChildren(machine, live.id, phase.index, itemCount(machine.store, live.id, phase.index))
  const progress = mapProgress(machine.store, live.id, phase)
  live.maps.set(phase.index, progress)
  proceed(machine, live, phase, progress)
}

export function childEnded(machine: Machine, live: LiveRun, position: number, child: LiveRun, end: RunEnd): void {
  const phase = live.phase(position)
  const ok = end.state === 'completed'
  if (phase.type === 'team') {
    if (live.ending && !ok) return machine.endPhase(live, position, 'cancelled', { reason: live.ending.reason })
    const late = ok ? null : parse<RunError>(machine.store.phase(live.id, position)!.error)
    if (late) return machine.failPhase(live, position, late)
    if (end.state === 'cancelled') return machine.endPhase(live, position, 'cancelled', { reason: 'sub_run' })
    if (!ok) return machine.failPhase(live, position, subRunError(child, end))
    return endTeam(machine, live, phase, child.row, end.outputs ?? {})
  }
  if (phase.type !== 'map') return
  const progress = live.maps.get(position)!
  if (ok) {
    try {
      handOver(machine, live, phase, child.row, end.outputs ?? {})
    } catch (thrown) {
      stopMap(machine, live, phase, progress, child.row.item!, child.row.run_name!, thrown)
    }
  } else {
    progress.failed++
    if (phase.onItemFailure === 'stop') progress.stopped = true
  }
  proceed(machine, live, phase, progress)
}

function endTeam(machine: Machine, live: LiveRun, phase: TeamPhase, child: RunRow, given: JsonObject): void {
  try {
    handOver(machine, live, phase, child, given)
    const { outputs, files } = handedOver(machine, live, phase, child, given)
    const data = bounded(outputs, phase.name, files)
    machine.endPhase(live, phase.index, 'completed', { text: `${child.team} completed`, data, files })
  } catch (thrown) {
    machine.failPhase(live, phase.index, errorOf(thrown))
  }
}

/** A fault of the map itself, which no sub-run can carry: no more items start, and the phase fails with it. */
function stopMap(
  machine: Machine,
  live: LiveRun,
  phase: MapPhase,
  progress: MapProgress,
  item: number,
  key: string,
  thrown: unknown,
): void {
  progress.stopped = true
  const error = machine.mask(live, errorOf(thrown))
  machine.store.setPhaseError(live.id, phase.index, { ...error, message: `item ${item} (${key}): ${error.message}` })
}

/** A map as far as its rows say. */
export function mapProgress(store: RunStore, runId: string, phase: MapPhase): MapProgress {
  const total = itemCount(store, runId, phase.index)
  const failed = childStates(store, runId, phase.index, total)
    .filter(({ state }) => state === 'failed' || state === 'cancelled')
    .reduce((sum, { count }) => sum + count, 0)
  const stopped = (failed > 0 && phase.onItemFailure === 'stop') || store.phase(runId, phase.index)!.error !== null
  return { total, next: 0, failed, stopped }
}

/** Starts items up to the map's concurrency, and ends the phase when none is left. */
function proceed(machine: Machine, live: LiveRun, phase: MapPhase, progress: MapProgress): void {
  const running = live.below(phase.index)
  while (!live.ending && !progress.stopped && running.size < phase.concurrency && progress.next < progress.total) {
    startNext(machine, live, phase, progress)
  }
  if (running.size > 0) return
  live.maps.delete(phase.index)
  endMap(machine, live, phase, progress)
}

/** Starts the next item that has no sub-run, or whose sub-run waits for its new attempt. */
function startNext(machine: Machine, live: LiveRun, phase: MapPhase, progress: MapProgress): void {
  const next = nextItem(machine.store, live.id, phase.index, progress.next)
  progress.next = next ? next.item + 1 : progress.total
  if (!next) return
  const { item: index, key, sub_run } = next
  const value: Json = JSON.parse(next.value)
  try {
    if (sub_run === null) createSubRun(machine, live, phase, index, key, value)
    else reopenSubRun(machine, live, phase, sub_run, { value, index })
  } catch (thrown) {
    stopMap(machine, live, phase, progress, index, key, thrown)
  }
}

function endMap(machine: Machine, live: LiveRun, phase: MapPhase, progress: MapProgress): void {
  cancelQueued(machine, live.row, phase.index)
  const { data, files } = mapData(machine, live, phase, progress.total)
  if (live.ending) return machine.endPhase(live, phase.index, 'cancelled', { reason: live.ending.reason })
  const text = `${data.completed} of ${data.total} completed`
  const broken = parse<{ code: string; message: string }>(machine.store.phase(live.id, phase.index)!.error)
  if (broken || progress.stopped) {
    const error = broken ?? {
      code: 'item_failed',
      message: `${Number(data.failed) + Number(data.cancelled)} of ${data.total} items did not complete: ${firstFailure(machine, live, phase)}`,
    }
    return machine.failPhase(live, phase.index, error, { text, data, files })
  }
  machine.endPhase(live, phase.index, 'completed', { text, data, files })
}

function firstFailure(machine: Machine, live: LiveRun, phase: MapPhase): string {
  const row = firstFailedChild(machine.store, live.id, phase.index)
  if (!row) return 'see its sub-runs'
  const error = parse<{ message: string; phase?: string }>(row.error)
  return `${row.run_name} ${row.state}${error ? ` (${error.phase ? `phase ${error.phase}: ` : ''}${error.message})` : ''}`
}

function mapData(machine: Machine, live: LiveRun, phase: MapPhase, total: number) {
  const children = new Map(childrenOf(machine.store, live.id, phase.index).map(child => [child.item, child]))
  const counts = { completed: 0, failed: 0, cancelled: 0 }
  const items: JsonObject[] = []
  const files: FileRecord[] = []
  for (const { item, key } of itemKeys(machine.store, live.id, phase.index)) {
    const child = children.get(item)
    if (child && child.state in counts) counts[child.state as keyof typeof counts]++
    const handed =
      child?.state === 'completed'
        ? handedOver(machine, live, phase, child, parse<JsonObject>(child.outputs) ?? {})
        : null
    items.push({ key, run_id: child?.id ?? null, state: child?.state ?? 'pending', outputs: handed?.outputs ?? null })
    if (handed) files.push(...handed.files)
  }
  const data: JsonObject = { total, ...counts, items }
  const most = MAX_DATA_BYTES - COUNTS_BYTES
  if (jsonBytes(items) <= most) return { data, files }
  const record = writeItems(machine, live, phase, items)
  let bytes = 0
  const kept = items.findIndex(item => {
    bytes += jsonBytes(item) + 1
    return bytes > most
  })
  return { data: { total, ...counts, items: items.slice(0, kept), truncated: true }, files: [...files, record] }
}

function createSubRun(
  machine: Machine,
  live: LiveRun,
  phase: TeamPhase | MapPhase,
  index: number,
  key: string | null,
  value: Json | undefined,
): void {
  const team = live.bundle.team(phase.team)
  if (live.row.call_depth + 1 > MAX_DEPTH) {
    throw new CadreError(
      'invalid_request',
      `${phase.place}: sub-runs nest ${MAX_DEPTH} deep at most (${team.name} would go further); end the recursion with \`when\``,
    )
  }
  const inputs = subRunInputs(machine, live, phase, value === undefined ? undefined : { value, index })
  const run = {
    id: Bun.randomUUIDv7(),
    bundle: live.bundle,
    teamKey: phase.team,
    inputs,
    recordedInputs: maskInputs(team.inputs, inputs),
    runName: null,
    workspace: live.row.workspace,
    fromPath: live.row.from_path === 1,
    synced: live.row.synced === 1,
  }
  machine.create(run, { live, position: phase.index }, index, key)
}

/** Begins the new attempt of a sub-run. What it completed stays, unless it did so with other inputs than it has now. */
function reopenSubRun(
  machine: Machine,
  live: LiveRun,
  phase: TeamPhase | MapPhase,
  id: string,
  item: { value: Json; index: number } | undefined,
): void {
  const { inputs: fields } = live.bundle.team(phase.team)
  const inputs = JSON.stringify(maskInputs(fields, subRunInputs(machine, live, phase, item)))
  if (inputs !== machine.store.run(id)!.inputs) {
    machine.store.setInputs(id, inputs)
    openWhole(machine, id)
  }
  machine.reopen(machine.store.run(id)!)
}

/** The inputs of a sub-run. They follow from what is recorded, so secret ones need no storing of their own. */
export function subRunInputs(
  machine: Machine,
  live: LiveRun,
  phase: TeamPhase | MapPhase,
  item: { value: Json; index: number } | undefined,
): JsonObject {
  const team = live.bundle.team(phase.team)
  const given = phase.inputs.evaluate(scopeOf(machine, live, item))
  const { values, problems } = inputsFor(team.inputs, given as JsonObject)
  if (problems.length > 0) {
    const list = problems.map(({ message }) => message).join('; ')
    throw new CadreError('invalid_request', `${phase.inputs.place}: inputs of ${team.name}: ${list}`)
  }
  return resolveFiles(machine, live, team.inputs, values)
}

/** Inputs as they are stored and shown. */
export function maskInputs(fields: readonly Field[], values: JsonObject): JsonObject {
  const masked = { ...values }
  for (const { name, secret } of fields) if (secret && name in masked) masked[name] = '***'
  return masked
}

/** A file of this run is named by its absolute path below, where `files/…` means the sub-run's own. */
function resolveFiles(machine: Machine, live: LiveRun, fields: readonly Field[], values: JsonObject): JsonObject {
  const resolved = { ...values }
  for (const { name, type } of fields) {
    const value = values[name]
    if (type === 'file' && typeof value === 'string' && value.startsWith('files/')) {
      resolved[name] = `${machine.host.stateDir(live.id)}/${value}`
    }
  }
  return resolved
}

/** Through any number of levels: the team of the sub-run that failed by itself, and its reason. */
function subRunError(child: LiveRun, end: RunEnd) {
  const inner = end.error
  const own = `${child.row.team} ${end.reason === 'timeout' ? 'timed out' : 'failed'}${inner ? `: ${inner.message}` : ''}`
  return {
    code: 'sub_run_failed',
    message: inner?.code === 'sub_run_failed' ? inner.message : own,
    run_id: inner?.run_id ?? child.id,
    ...(inner?.phase && { phase: inner.phase }),
  }
}
