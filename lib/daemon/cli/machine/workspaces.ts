// `workspaces`: the folders that runs work in, and which of them runs that the hub dispatches may use.

import { resolve } from 'node:path'
import { createLog } from '../../../log/log.ts'
import { AddWorkspace, ListWorkspaces, RemoveWorkspace, type WorkspaceRecord } from '../../../wire/calls/workspaces.ts'
import { homeFolder } from '../../home/home.ts'
import { localName } from '../../home/local-name.ts'
import { Daemon } from '../../runs/daemon.ts'
import { inAudit, type Workspaces } from '../../runs/workspaces.ts'
import { withHome } from '../backend/home-client.ts'
import { askAboutRuns } from '../backend/run-answers.ts'
import { show } from '../kit/print.ts'

interface Options {
  home?: string
  json?: boolean
}

export async function listWorkspaces({ home, json }: Options): Promise<void> {
  const found = await askAboutRuns(homeFolder(home), runs => runs.call(ListWorkspaces, {}))
  show(json, found, paint =>
    found.workspaces.map(({ workspace_id, name, path, active_runs, offered }) => [
      name,
      path,
      offered ? 'offered' : '',
      active_runs > 0 ? paint.cyan(`${active_runs} active`) : '',
      paint.dim(workspace_id),
    ]),
  )
}

export async function addWorkspace(
  folder: string,
  { home, json, name, offer }: Options & { name?: string; offer?: boolean },
): Promise<void> {
  const path = resolve(folder)
  const changes = { ...(name !== undefined && { name }), ...(offer !== undefined && { offer }) }
  const added = await withHome(
    homeFolder(home),
    daemon => daemon.call(AddWorkspace, { path, ...changes }),
    () => alone(home, 'workspaces/add', workspaces => workspaces.add(path, changes)),
  )
  printWorkspace(added, json)
}

export async function removeWorkspace(workspace_id: string, { home, json }: Options): Promise<void> {
  const removed = await withHome(
    homeFolder(home),
    daemon => daemon.call(RemoveWorkspace, { workspace_id }),
    () => alone(home, 'workspaces/remove', workspaces => workspaces.remove(workspace_id)),
  )
  printWorkspace(removed, json)
}

/** Changes the workspaces of a home that no process holds. */
async function alone(home: string | undefined, action: string, change: (all: Workspaces) => WorkspaceRecord) {
  const log = createLog({ level: 'warn' })
  const daemon = await Daemon.open({ home: homeFolder(home), log, command: 'workspaces' })
  try {
    return daemon.audit.during(localName(), action, () => change(daemon.workspaces), inAudit)
  } finally {
    await daemon.close()
  }
}

function printWorkspace(workspace: WorkspaceRecord, json: boolean | undefined): void {
  const { name, path, offered } = workspace
  show(json, workspace, () => [[name, path, offered ? 'offered' : '']])
}
