// workspaces/*: the folders that runs work in.

import { Elysia } from 'elysia'
import { envelopeFrame } from '../../http/reply.ts'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { AddWorkspace, ListWorkspaces, RemoveWorkspace } from '../../wire/calls/daemon-calls.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'
import { inAudit } from '../runs/workspaces.ts'
import { envelope, Name } from './bodies.ts'

const Path = Type.String({ minLength: 1, maxLength: 4_096 })

const HERE = { local: 'open', remote: null } as const

export const workspaces = (daemon: Daemon, kit: DaemonKit) =>
  new Elysia({ name: 'workspaces', prefix: '/v1/workspaces' })
    .use(kit)
    .post('/get', () => ({ workspaces: daemon.workspaces.list() }), {
      access: { local: 'open', remote: 'access' },
      body: envelope('workspace_list', closed({})),
      frame: envelopeFrame(() => daemon.instanceId),
      data: ListWorkspaces.data,
      detail: { summary: 'All workspaces' },
    })
    .post(
      '/add',
      ({ body, caller }) =>
        daemon.audit.during(caller.actor, 'workspaces/add', () => daemon.workspaces.add(body.path, body), inAudit),
      {
        access: HERE,
        body: closed({
          path: Path,
          name: Type.Optional(Name),
          offer: Type.Optional(
            Type.Boolean({ description: 'Whether dispatched runs may work in it; as it was if absent.' }),
          ),
        }),
        data: AddWorkspace.data,
        detail: { summary: 'Register a folder, and offer it to dispatched runs' },
      },
    )
    .post(
      '/remove',
      ({ body, caller }) =>
        daemon.audit.during(
          caller.actor,
          'workspaces/remove',
          () => daemon.workspaces.remove(body.workspace_id),
          inAudit,
        ),
      {
        access: HERE,
        body: closed({ workspace_id: Path }),
        data: RemoveWorkspace.data,
        detail: { summary: 'Forget a workspace' },
      },
    )
