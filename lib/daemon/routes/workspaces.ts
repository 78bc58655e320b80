// workspaces/*: the folders that runs work in.

import { envelopeFrame } from '../../http/reply.ts'
import { closed } from '../../schema.ts'
import { Type } from '../../type.ts'
import type { Routing } from '../routes.ts'
import { envelope, Name } from './bodies.ts'

const Path = Type.String({ minLength: 1, maxLength: 4_096 })

export function workspaceRoutes({ api, daemon, guard }: Routing): void {
  api.post(
    '/v1/workspaces/get',
    {
      access: guard({ local: 'open', remote: 'access' }),
      body: envelope('workspace_list', closed({})),
      frame: envelopeFrame(() => daemon.instanceId),
      summary: 'All workspaces',
    },
    () => ({ workspaces: daemon.workspaces.list() }),
  )

  const access = guard({ local: 'open', remote: null })
  const Add = closed({ path: Path, name: Type.Optional(Name) })
  api.post('/v1/workspaces/add', { access, body: Add, summary: 'Register a folder' }, ({ body }) =>
    daemon.workspaces.add(body.path, body.name),
  )
  const Remove = closed({ workspace_id: Path })
  api.post('/v1/workspaces/remove', { access, body: Remove, summary: 'Forget a workspace' }, ({ body }) =>
    daemon.workspaces.remove(body.workspace_id),
  )
}
