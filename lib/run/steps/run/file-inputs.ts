// Inputs of type `file`: the rule for files judges each of them before a run starts. Agents and commands judge the path
// once more when they open it, because another file may be there by then.

import { AgentError } from '../../../agent/core/agent-error.ts'
import { type FileScope, settledPath } from '../../../agent/files/file-rule.ts'
import { CadreError } from '../../../error.ts'
import type { JsonObject } from '../../../json.ts'
import type { Field } from '../../../team/team.ts'
import type { RunRow } from '../../core/core.ts'
import type { Store } from '../../store/store.ts'
import type { World } from '../state/world.ts'

/** The values of the inputs of type `file`. */
export function fileInputs(fields: readonly Field[], inputs: JsonObject): string[] {
  const values = fields.filter(({ type }) => type === 'file').map(({ name }) => inputs[name])
  return values.filter(path => typeof path === 'string')
}

/**
 * Which files outside of its own folders a run may name. In a tree that a person has started from a path it may name any,
 * but a package in that tree only the files that it was given. `isOwn`: its team belongs to that path, and not to a
 * package.
 */
export function outsideFilesOf(
  { from_path }: Pick<RunRow, 'from_path'>,
  isOwn: boolean,
  fields: readonly Field[],
  inputs: JsonObject,
): { outside: boolean; given: ReadonlySet<string> } {
  const free = from_path === 1
  return { outside: free && isOwn, given: new Set(free && !isOwn ? fileInputs(fields, inputs) : []) }
}

/** Which files a run may name, its own included. */
export function fileAccessOf(
  { store, world }: { store: Store; world: Pick<World, 'stateDir'> },
  row: Pick<RunRow, 'id' | 'root_id' | 'workspace' | 'from_path'>,
  { outside, given }: Pick<FileScope, 'outside' | 'given'> = { outside: row.from_path === 1 },
): FileScope {
  return {
    stateDir: world.stateDir(row.id),
    workspace: row.workspace ?? `${world.stateDir(row.root_id)}/engine`,
    outside,
    given,
    sameTree: runId => store.runs.get(runId)?.root_id === row.root_id,
  }
}

/** The inputs that a top run starts with, in which each path of a file names the same file as long as the run exists. */
export function resolveFileInputs(fields: readonly Field[], values: JsonObject, access: FileScope): JsonObject {
  return withFiles(fields, values, path => settledPath(path, access))
}

/** `values` with the inputs of type `file` changed. Throws `invalid_request` that names the first that is refused. */
export function withFiles(
  fields: readonly Field[],
  values: JsonObject,
  change: (path: string, name: string) => string,
): JsonObject {
  const changed = { ...values }
  for (const { name, type } of fields) {
    const path = values[name]
    if (type !== 'file' || typeof path !== 'string') continue
    try {
      changed[name] = change(path, name)
    } catch (cause) {
      const why = cause instanceof AgentError ? cause.message : `${JSON.stringify(path)} cannot be resolved`
      const message = `input ${name}: ${why}`
      throw new CadreError('invalid_request', message, { details: [{ path: `/inputs/${name}`, message }], cause })
    }
  }
  return changed
}
