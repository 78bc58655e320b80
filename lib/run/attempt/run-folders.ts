// What agents get of their run: the state folder, the workspace, the files that they may read, and the log.

import { mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { type TeamFolder, wholePath } from '../../agent/files/file-rule.ts'
import { type RunId, runFolder } from '../../files/run-id.ts'
import { isObject, type Json, type JsonObject } from '../../json.ts'
import { type Bundle, secretReader } from '../../team/team.ts'
import type { LiveRun, RunEnvironment, RunRow } from '../core/core.ts'
import type { FilesBehind } from '../files/files.ts'
import { fileInputs, outsideFilesOf } from '../steps/steps.ts'
import type { Store } from '../store/store.ts'

export class RunFolders {
  readonly #home: string
  readonly #store: Store
  readonly #behind: Pick<FilesBehind, 'flush' | 'flushNow'>
  readonly #logOf: (row: RunRow, phase: string) => Pick<RunEnvironment, 'log' | 'room'>

  /** `logOf` returns the log for the lines of a phase. */
  constructor(
    home: string,
    store: Store,
    behind: Pick<FilesBehind, 'flush' | 'flushNow'>,
    logOf: (row: RunRow, phase: string) => Pick<RunEnvironment, 'log' | 'room'>,
  ) {
    this.#home = home
    this.#store = store
    this.#behind = behind
    this.#logOf = logOf
  }

  stateDir(runId: RunId): string {
    return runFolder(this.#home, runId)
  }

  of(
    { row, bundle, inputs }: Pick<LiveRun, 'row' | 'bundle' | 'inputs'>,
    phase: string,
    attempt: number,
  ): RunEnvironment {
    const stateDir = this.stateDir(row.id)
    const workspace = row.workspace ?? this.#ownWorkspace(row.root_id)
    const team = secretReader(bundle, row.team_key)
    const { outside, given } = outsideFilesOf(row, team.fromPath, bundle.team(row.team_key).inputs, inputs)
    const sameTree = (runId: string) => this.#store.runs.get(runId)?.root_id === row.root_id
    return {
      run: { id: row.id, name: row.run_name, team: row.team, created_at: row.created_at },
      rootId: row.root_id,
      environment: row.environment,
      phase: { name: phase },
      attempt,
      team,
      stateDir,
      rootDir: this.stateDir(row.root_id),
      workspace,
      files: () => {
        const files = fileInputs(bundle.team(row.team_key).inputs, inputs).map(path =>
          wholePath(path, { stateDir, workspace, outside, given, sameTree }),
        )
        return {
          files,
          chosen: files.length > 0 && row.from_path === 1 ? this.#chosen(row, bundle, workspace) : new Set(),
        }
      },
      fromPath: outside,
      given,
      teamFolder: outside ? folderOf(bundle, row.team_key) : null,
      sameTree,
      unwritten: {
        flush: () => this.#behind.flush(row.root_id),
        flushNow: () => this.#behind.flushNow(row.root_id),
      },
      bundle,
      inputs,
      ...this.#logOf(row, phase),
    }
  }

  /**
   * Makes the workspace of a tree that has none of its own, for the first phase that works in it. It is kept as long as
   * the run, because a resume needs the files that completed phases left in it.
   */
  makeWorkspace({ root_id, workspace }: RunRow): void {
    if (workspace === null) mkdirSync(this.#ownWorkspace(root_id), { recursive: true, mode: 0o700 })
  }

  /** Every text in the inputs of the top run that is not a default of its team, as a path. */
  #chosen({ root_id }: RunRow, bundle: Bundle, workspace: string): Set<string> {
    const given = JSON.parse(this.#store.runs.get(root_id)?.inputs ?? '{}') as JsonObject
    const own = bundle
      .team(bundle.root)
      .inputs.filter(({ name, default: usual }) => !Bun.deepEquals(given[name], usual))
      .map(({ name }) => given[name] ?? null)
    return new Set(textsIn(own).map(text => resolve(workspace, text)))
  }

  #ownWorkspace(rootId: RunId): string {
    return `${this.stateDir(rootId)}/work`
  }
}

function folderOf(bundle: Bundle, key: string): TeamFolder | null {
  const path = bundle.folder(key)
  return path === null ? null : { path, isTop: path === bundle.folder(bundle.root) }
}

function textsIn(value: Json): string[] {
  if (typeof value === 'string') return [value]
  return Array.isArray(value) || isObject(value) ? Object.values(value as JsonObject).flatMap(textsIn) : []
}
