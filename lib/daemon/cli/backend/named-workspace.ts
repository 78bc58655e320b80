// The argument of `--workspace`: a folder, or the name of a workspace of this home.

import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { CadreError } from '../../../error.ts'
import { ListWorkspaces } from '../../../wire/calls/workspaces.ts'
import { databaseFile } from '../../home/home.ts'
import { askAboutRuns } from './run-answers.ts'

/** `reference` is the name of a workspace, or the path. */
interface Workspace {
  reference: string
  path: string
}

/**
 * What looks like a path is one. A name is that of a workspace, or else of a folder here, as for `run FOLDER`. Throws
 * `invalid_request` where there is neither.
 */
export async function workspaceOf(reference: string, home: string): Promise<Workspace> {
  const here = resolve(reference)
  if (/^\.{1,2}$|\//.test(reference)) return { reference: here, path: here }
  const { workspaces } = existsSync(databaseFile(home))
    ? await askAboutRuns(home, runs => runs.call(ListWorkspaces, {}))
    : { workspaces: [] }
  const found = workspaces.find(({ workspace_id, name }) => workspace_id === reference || name === reference)
  if (found) return { reference, path: found.path }
  if (statSync(here, { throwIfNoEntry: false })?.isDirectory()) return { reference: here, path: here }
  const known = workspaces.map(({ name }) => name).join(', ') || 'none'
  throw new CadreError(
    'invalid_request',
    `there is no workspace ${reference} (known are ${known}), and no folder ${reference} in ${process.cwd()}`,
  )
}
