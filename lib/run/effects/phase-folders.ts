// Changes the folders of team and map phases: tasks hand files over, and files of earlier attempts are removed. The
// changes of one folder follow each other, and each has its own error handling.

import type { RunId } from '../../files/run-id.ts'
import type { Log } from '../../log/log.ts'
import type { RunFolders, Tasks } from '../attempt/attempt.ts'
import { dropStale } from '../files/files.ts'
import { type Effect, kindOf, type Machine, type Task, textOf } from '../steps/steps.ts'

interface Parts {
  machine: Machine
  tasks: Tasks
  runFolders: RunFolders
  stopping: AbortSignal
  log: Log
}

export class PhaseFolders {
  readonly #parts: Parts
  /** The last piece of work by lane. */
  readonly #lanes = new Map<string, Promise<void>>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Does a task. If it throws, the phase or run that it was done for fails. */
  runTask(task: Task): void {
    const { machine, tasks, stopping } = this.#parts
    // Files are handed over to a folder that may have to be cleared first.
    const row = task.kind === 'outputs' ? machine.store.runs.get(task.runId) : null
    const folder = row ? folderLane(row.parent_id, row.parent_position ?? -1) : folderLane(task.runId, task.position)
    this.#inLane(`${task.runId}:${task.position}`, async () => {
      await this.#lanes.get(folder)
      if (stopping.aborted) return
      try {
        await tasks.run(task)
      } catch (thrown) {
        if (stopping.aborted) return
        await tasks.fail(task, thrown)
      }
    })
  }

  /**
   * Removes files that earlier attempts of a phase received from sub-runs that run again or are no longer part of the
   * map.
   */
  clearFolder({ runId, position }: Extract<Effect, { kind: 'clear' }>): void {
    this.#inLane(folderLane(runId, position), () => this.#clear(runId, position))
  }

  /** The runs for which something is done now. */
  get busy(): string[] {
    return [...this.#lanes.keys()].map(lane => lane.split(':', 1)[0]!)
  }

  /** Resolves when all current work is done, of the runs for which `of` returns true. */
  async idle(of: (runId: string) => boolean = () => true): Promise<void> {
    const busy = [...this.#lanes].filter(([lane]) => of(lane.split(':', 1)[0]!))
    await Promise.all(busy.map(([, work]) => work))
  }

  async #clear(runId: RunId, position: number): Promise<void> {
    const { machine, runFolders } = this.#parts
    const { store } = machine
    const live = machine.lives.get(runId)
    if (!live) return
    const phase = live.phase(position)
    const keep = new Set<string>()
    // Only a map keeps files of sub-runs when it starts another attempt.
    const total = store.phases.total(runId, position) ?? 0
    for (const child of store.runs.children(runId, position)) {
      if (child.state !== 'completed' || child.item! >= total) continue
      keep.add(kindOf(phase).subRuns!.folderOf(store, live, phase, child))
    }
    await dropStale(runFolders.stateDir(runId), phase.name, keep)
  }

  #inLane(lane: string, work: () => Promise<void>): void {
    const before = this.#lanes.get(lane) ?? Promise.resolve()
    const mine = before.then(work).catch(error => {
      this.#parts.log.error('work on the files of a phase failed', { phase: lane, error: textOf(error) })
    })
    this.#lanes.set(lane, mine)
    void mine.finally(() => this.#lanes.get(lane) === mine && this.#lanes.delete(lane))
  }
}

/** The lane in which the folder of a team or map phase is cleared. */
const folderLane = (runId: RunId | null, position: number): string => `${runId}:${position}:folder`
