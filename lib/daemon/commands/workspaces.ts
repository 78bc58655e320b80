// `workspaces`: the folders that runs work in.

import { ListWorkspaces } from '../../wire/daemon-calls.ts'
import { askAboutRuns } from '../calls/run-answers.ts'
import { homeFolder } from '../home.ts'
import { inline } from '../terminal/paint.ts'
import { show } from './print.ts'

export async function workspaces({ home, json }: { home?: string; json?: boolean }): Promise<void> {
  const found = await askAboutRuns(homeFolder(home), runs => runs.call(ListWorkspaces, {}))
  show(json, found, paint =>
    found.workspaces.map(({ workspace_id, name, path, active_runs }) => [
      inline(name),
      inline(path),
      active_runs > 0 ? paint.cyan(`${active_runs} active`) : '',
      paint.dim(workspace_id),
    ]),
  )
}
