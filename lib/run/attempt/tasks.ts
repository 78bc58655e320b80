// Tasks: the work outside a transaction for which a team phase, a map or the end of a run waits. They evaluate items,
// check and hand over files, and build long results, all in small pieces. A task ends with a change that records its
// result, or that fails its phase or run.

import { join } from 'node:path'
import { type FileRecord, MAX_DATA_BYTES } from '../../agent/agent-context.ts'
import type { SmallFile } from '../../agent/files.ts'
import { CadreError } from '../../error.ts'
import type { RunId } from '../../files/run-id.ts'
import type { Json, JsonObject } from '../../json.ts'
import { type MaskedText, maskedJson, maskedText } from '../../secrets/masked.ts'
import { type Bundle, type MapPhase, secretReader, type TeamPhase } from '../../team/team.ts'
import { endTurn } from '../../turns.ts'
import { cut } from '../../wire/budget.ts'
import { type LiveRun, parse, type RunError, type RunRow } from '../core/core.ts'
import { checkOutputs, type FilesBehind, foldersOf, handOver, type Origin, writeItems } from '../files/files.ts'
import {
  awaiting,
  endMap,
  errorOf,
  failPhase,
  fileOutputs,
  isAsked,
  itemsStored,
  kindOf,
  type Machine,
  moveSubRuns,
  type StoredItem,
  scopeOf,
  storeItems,
  type Task,
  taskDone,
} from '../steps/steps.ts'
import { type ChildRow, putSmallFiles } from '../store/store.ts'

/** Maximum number of items in one change. */
const ITEMS_PAGE = 500
/** Maximum number of sub-runs that one change moves. */
const MOVES_PAGE = 100
const CHILDREN_PAGE = 200
/** How often it is looked whether the files of a tree are written by now. */
const LOOK_MS = 200
/** An upper bound for the size of a map's `data` without its items. */
const COUNTS_BYTES = 200
/** What stands of the error of an item in a map's `data`, which has to have room for all items. */
const MESSAGE_BYTES = 500

interface Parts {
  machine: Machine
  /** A small file as the database keeps it. */
  seal(runId: RunId, file: SmallFile): SmallFile
  behind: Pick<FilesBehind, 'flush' | 'has'>
  stopping: AbortSignal
  /** Records a change of a tree. */
  write<T>(root: string, apply: () => T): Promise<T>
}

export class Tasks {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Runs a task and records its result. Throws the error with which its phase must fail. */
  async run(task: Task): Promise<void> {
    const live = awaiting(this.#parts.machine, task)
    if (!live) return
    if (task.kind === 'written') return this.#written(task, live)
    if (task.kind === 'outputs') return this.#outputs(task, live)
    const phase = live.phase(task.position)
    if (task.kind === 'files') return this.#handFiles(task, live, phase as TeamPhase | MapPhase)
    if (phase.type !== 'map') return
    if (task.kind === 'items') await this.#storeItems(task, live, phase)
    else await this.#buildResult(task, live, phase)
  }

  /** Records that a task failed: its phase or its run fails with `thrown`. */
  fail(task: Task, thrown: unknown): Promise<void> {
    const { machine } = this.#parts
    return this.#recordEnd(task, live => {
      if (task.kind === 'written') {
        live.filesWritten = true
        return machine.agenda.add(live)
      }
      if (task.kind === 'outputs') {
        live.outputs = { handed: null, fault: { of: 'run', error: thrown } }
        return machine.agenda.add(live)
      }
      const phase = live.phase(task.position)
      if (task.kind === 'files') kindOf(phase).subRuns!.handed(machine, live, phase, task.child!, thrown)
      else failPhase(machine, live, task.position, errorOf(thrown))
    })
  }

  /** Applies a change, if its run still awaits the task. */
  #record(task: Task, change: (live: LiveRun) => void): Promise<void> {
    const { machine } = this.#parts
    const root = machine.lives.get(task.runId)?.root
    if (root === undefined) return Promise.resolve()
    return this.#parts.write(root, () => {
      const live = awaiting(machine, task)
      if (!live) return
      change(live)
      machine.takeSteps(root)
    })
  }

  /** Applies the change with which a task ends. */
  #recordEnd(task: Task, change: (live: LiveRun) => void): Promise<void> {
    return this.#record(task, live => {
      taskDone(live, task)
      change(live)
    })
  }

  // Items of a map

  async #storeItems(task: Task, live: LiveRun, phase: MapPhase): Promise<void> {
    const { machine } = this.#parts
    const items = await evaluateItems(machine, live, phase)
    for (let from = 0; from === 0 || from < items.length; from += ITEMS_PAGE) {
      const page = items.slice(from, from + ITEMS_PAGE)
      await this.#record(task, now => storeItems(machine, now, phase, from, page))
    }
    const moves = movesOf(machine, live, phase, items)
    for (const away of [true, false]) {
      for (let from = 0; from < moves.length; from += MOVES_PAGE) {
        const page = moves.slice(from, from + MOVES_PAGE)
        await this.#record(task, now => moveSubRuns(machine, now, phase, page, away))
      }
    }
    await this.#recordEnd(task, now => itemsStored(machine, now, phase, items.length))
  }

  // Files

  /** Writes the files of a tree that were to be written later, before its top run ends. */
  async #written(task: Task, live: LiveRun): Promise<void> {
    const { machine, stopping } = this.#parts
    await this.#untilWritten(task, live.root)
    // The next process goes on.
    if (stopping.aborted) return
    await this.#recordEnd(task, now => {
      now.filesWritten = true
      machine.agenda.add(now)
    })
  }

  /**
   * Resolves when the files of a tree are written. A full disk is waited for, except by a run that is asked to end: its
   * files follow when there is space.
   */
  async #untilWritten(task: Task, root: RunId): Promise<void> {
    const { behind, machine, stopping } = this.#parts
    await behind.flush(root)
    while (behind.has(root) && !stopping.aborted) {
      const live = awaiting(machine, task)
      if (!live || isAsked(live)) return
      await Bun.sleep(LOOK_MS)
    }
  }

  /** Checks the file outputs of a run and hands them to the run above. The recorded result lets the run end. */
  async #outputs(task: Task, live: LiveRun): Promise<void> {
    const { machine } = this.#parts
    const outputs = machine.world.mask(live.root, Object.fromEntries(live.evaluated))
    const files = fileOutputs(live, outputs)
    const origin = this.#originOf(live.row, live.bundle)
    if (files.length > 0) await this.#untilWritten(task, live.root)
    await checkOutputs(origin, files)
    let handed: string | null = null
    let fault: { of: 'phase'; error: unknown } | null = null
    const small: SmallFile[] = []
    if (live.parent && awaiting(machine, task)) {
      try {
        const phase = live.parent.phase(live.row.parent_position!)
        handed = await this.#handOver(live.parent, phase as TeamPhase | MapPhase, live.row, outputs, small)
      } catch (error) {
        fault = { of: 'phase', error }
      }
    }
    await this.#recordEnd(task, now => {
      now.outputs = { handed, fault }
      if (now.parent) putSmallFiles(machine.store.db, now.parent.id, small, machine.world.lived())
      machine.agenda.add(now)
    })
  }

  /** Hands the files of an already completed sub-run to the run above. */
  async #handFiles(task: Task, live: LiveRun, phase: TeamPhase | MapPhase): Promise<void> {
    const { machine } = this.#parts
    const child = machine.store.runs.get(task.child!)!
    const small: SmallFile[] = []
    await this.#untilWritten(task, live.root)
    const handed = await this.#handOver(live, phase, child, parse<JsonObject>(child.outputs) ?? {}, small)
    await this.#recordEnd(task, now => {
      machine.store.runs.setHanded(child.id, handed)
      putSmallFiles(machine.store.db, now.id, small, machine.world.lived())
      kindOf(phase).subRuns!.handed(machine, now, phase, child.id, null)
    })
  }

  /** The JSON that the run above receives: the outputs with paths in its own folder, and the records of the files. */
  async #handOver(
    live: LiveRun,
    phase: TeamPhase | MapPhase,
    child: RunRow,
    outputs: JsonObject,
    small: SmallFile[],
  ): Promise<string> {
    const { machine } = this.#parts
    const team = live.bundle.team(child.team_key)
    const files = fileOutputs({ team }, outputs)
    const stateDir = machine.world.stateDir(live.id)
    const folder = kindOf(phase).subRuns!.folderOf(machine.store, live, phase, child)
    const into = {
      stateDir,
      folder: ['files', phase.name, folder].filter(Boolean).join('/'),
      phase: phase.name,
      small: (file: SmallFile) => void small.push(this.#parts.seal(live.id, file)),
    }
    const handed = await handOver(this.#originOf(child, live.bundle), files, into)
    return JSON.stringify({ outputs: { ...outputs, ...handed.paths }, files: handed.files })
  }

  #originOf(row: RunRow, bundle: Bundle): Origin {
    const { machine } = this.#parts
    const { store, world } = machine
    return {
      stateDir: world.stateDir(row.id),
      workspace: row.workspace ?? join(world.stateDir(row.root_id), 'work'),
      fromPath: row.from_path === 1 && secretReader(bundle, row.team_key).fromPath,
      sameTree: runId => store.runs.get(runId)?.root_id === row.root_id,
      known: path => store.phases.fileRecord(row.id, path),
    }
  }

  // The result of a map

  async #buildResult(task: Task, live: LiveRun, phase: MapPhase): Promise<void> {
    const { machine } = this.#parts
    const total = machine.store.phases.total(live.id, phase.index)!
    const none = JSON.stringify(
      Object.fromEntries(live.bundle.team(phase.team).outputs.map(({ name }) => [name, null])),
    )
    const counts = { completed: 0, failed: 0, cancelled: 0 }
    const files: FileRecord[] = []
    const texts: string[] = []
    let bytes = COUNTS_BYTES
    let kept = 0
    for await (const { key, child } of this.#itemsWithChildren(live, phase)) {
      if (child && child.state in counts) counts[child.state as keyof typeof counts]++
      const done = child?.state === 'completed'
      const handed = done ? parse<{ outputs: JsonObject; files: FileRecord[] }>(child.handed) : null
      if (handed) files.push(...handed.files)
      const outputs = handed ? JSON.stringify(handed.outputs) : done ? (child.outputs ?? '{}') : none
      const name = JSON.stringify(key)
      const state = child?.state ?? 'pending'
      const text = `{"key":${name},"run_id":${JSON.stringify(child?.id ?? null)},"state":"${state}","outputs":${outputs}${errorField(child)}}`
      bytes += Buffer.byteLength(text) + 1
      if (bytes <= MAX_DATA_BYTES) kept = texts.length + 1
      texts.push(text)
    }
    const head = `"total":${total},"completed":${counts.completed},"failed":${counts.failed},"cancelled":${counts.cancelled}`
    let data = `{${head},"items":[${texts.slice(0, kept).join(',')}]}`
    if (kept < texts.length) {
      data = `${data.slice(0, -1)},"truncated":true}`
      files.push(await writeItems(machine.world.stateDir(live.id), phase.name, linesOf(texts)))
    }
    await this.#recordEnd(task, now => endMap(machine, now, phase, { counts, data, files }))
  }

  /** The items of a map in order, each with its sub-run if it has one. Reads a page at a time. */
  async *#itemsWithChildren(
    live: LiveRun,
    phase: MapPhase,
  ): AsyncGenerator<{ key: string; child: ChildRow | undefined }> {
    const { store } = this.#parts.machine
    for (let from = 0; ; from += CHILDREN_PAGE) {
      const keys = store.items.keys(live.id, phase.index, from, CHILDREN_PAGE)
      const rows = store.runs.children(live.id, phase.index, from, CHILDREN_PAGE)
      const children = new Map(rows.map(row => [row.item, row]))
      for (const { item, key } of keys) yield { key, child: children.get(item) }
      if (keys.length < CHILDREN_PAGE) return
      await endTurn()
    }
  }
}

/** Why an item failed, as a further field of its JSON. The row has the text already masked. */
function errorField(child: ChildRow | undefined): string {
  const error = child?.state === 'failed' ? parse<RunError>(child.error) : null
  return error ? `,"error":${JSON.stringify({ code: error.code, message: cut(error.message, MESSAGE_BYTES) })}` : ''
}

function* linesOf(texts: readonly string[]): Generator<string> {
  yield '[\n'
  for (const [index, text] of texts.entries()) yield `${index > 0 ? ',\n' : ''} ${text}`
  yield '\n]\n'
}

/** Evaluates the items of a map and their keys, one after the other, and yields the event loop in between. */
async function evaluateItems(machine: Machine, live: LiveRun, phase: MapPhase): Promise<StoredItem[]> {
  const list = machine.world.mask(live.root, phase.items.evaluate(scopeOf(machine, live)))
  if (!Array.isArray(list)) {
    const shown = (JSON.stringify(list) ?? '').slice(0, 80)
    const instead = list === null ? ': `or(a.b, [])` gives an empty one instead' : ''
    throw new CadreError('invalid_request', `${phase.items.place}: items must give a list, got ${shown}${instead}`)
  }
  const seen = new Map<string, number>()
  const items: Omit<StoredItem, 'folder'>[] = []
  for (const [index, value] of list.entries()) {
    await endTurn()
    const key = phase.key ? keyOf(machine, live, phase, value, index) : maskedText`${index}`
    const first = seen.get(key)
    if (first !== undefined) {
      throw new CadreError(
        'invalid_request',
        `${phase.key?.place ?? phase.place}: items ${first} and ${index} have the same key ${JSON.stringify(key)}; a key names one sub-run`,
      )
    }
    seen.set(key, index)
    items.push({ key, value: maskedJson(value) })
  }
  const folders = foldersOf(items.map(({ key }) => key))
  return items.map((item, index) => ({ ...item, folder: folders[index]! }))
}

function keyOf(machine: Machine, live: LiveRun, phase: MapPhase, item: Json, index: number): MaskedText {
  const value = machine.world.mask(live.root, phase.key!.evaluate(scopeOf(machine, live, { value: item, index })))
  if (typeof value === 'string' && value !== '') return value
  if (typeof value === 'number' || typeof value === 'boolean') return maskedJson(value)
  throw new CadreError(
    'invalid_request',
    `${phase.key!.place}: the key of item ${index} must be a number or a text that is not empty, got ${JSON.stringify(value)}`,
  )
}

/**
 * The new items of sub-runs from an earlier evaluation. A sub-run whose key no longer exists is placed after the
 * current items.
 */
function movesOf(machine: Machine, live: LiveRun, phase: MapPhase, items: readonly StoredItem[]) {
  const earlier = machine.store.runs.children(live.id, phase.index)
  const indexes = new Map<string, number>(items.map(({ key }, index) => [key, index]))
  let behind = items.length
  return earlier.map(({ id, run_name, item: before }) => {
    const index = indexes.get(run_name!)
    const item = index ?? behind++
    return { id, item, moves: item !== before, opens: index !== undefined }
  })
}
