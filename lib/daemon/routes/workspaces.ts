// workspaces/*: the folders that runs work in.

import { resource } from '../../http/resource.ts'
import { AddWorkspace, ListWorkspaces, RemoveWorkspace } from '../../wire/calls/workspaces.ts'
import { answer, answerMessage } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { inAudit } from '../runs/workspaces.ts'

export function workspaces(daemon: Daemon, kit: DaemonKit) {
  const { audit, workspaces } = daemon
  return resource('workspaces', kit, [
    answerMessage(
      ListWorkspaces,
      () => daemon.instanceId,
      () => ({ workspaces: workspaces.list() }),
    ),
    answer(AddWorkspace, ({ body, caller }) =>
      audit.during(caller.actor, 'workspaces/add', () => workspaces.add(body.path, body), inAudit),
    ),
    answer(RemoveWorkspace, ({ body, caller }) =>
      audit.during(caller.actor, 'workspaces/remove', () => workspaces.remove(body.workspace_id), inAudit),
    ),
  ])
}
