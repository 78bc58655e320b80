// Where the agents of a run work: the state folder, the workspace and the log of the run.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { LiveRun, RunPlace, RunRow } from '../core/core.ts'
import type { Store } from '../store/store.ts'

export class Places {
  readonly #runs: string
  readonly #store: Store
  readonly #say: (row: RunRow, phase: string, line: Parameters<RunPlace['log']>[0]) => void

  /** `say` receives the lines for the log. */
  constructor(
    home: string,
    store: Store,
    say: (row: RunRow, phase: string, line: Parameters<RunPlace['log']>[0]) => void,
  ) {
    this.#runs = join(home, 'runs')
    this.#store = store
    this.#say = say
  }

  stateDir(runId: string): string {
    return `${this.#runs}/${runId}`
  }

  of({ row, bundle, inputs }: Pick<LiveRun, 'row' | 'bundle' | 'inputs'>, phase: string, attempt: number): RunPlace {
    const stateDir = this.stateDir(row.id)
    return {
      run: { id: row.id, name: row.run_name, team: row.team },
      rootId: row.root_id,
      phase: { name: phase },
      attempt,
      stateDir,
      workspace: row.workspace ?? this.#ownWorkspace(row.root_id),
      fromPath: row.from_path === 1,
      sameTree: runId => this.#store.runs.get(runId)?.root_id === row.root_id,
      bundle,
      inputs,
      log: line => this.#say(row, phase, line),
    }
  }

  /**
   * Makes the workspace of a tree that has none of its own, for the first phase that works in it. It is kept as long as
   * the run, because a resume needs the files that completed phases left in it.
   */
  makeWorkspace({ root_id, workspace }: RunRow): void {
    if (workspace === null) mkdirSync(this.#ownWorkspace(root_id), { recursive: true, mode: 0o700 })
  }

  #ownWorkspace(rootId: string): string {
    return `${this.stateDir(rootId)}/work`
  }
}
