// The folders on the machine of a daemon that runs work in.

import type { Static } from 'typebox'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { HERE, READER } from '../access.ts'
import { call } from '../call.ts'
import { AnyText, Name, Path, Time } from '../parts.ts'

const WorkspaceRecord = Type.Object({
  workspace_id: AnyText,
  path: AnyText,
  name: AnyText,
  /** Names of the teams whose top runs used it. */
  teams: Type.Array(AnyText),
  /** Top runs in it that have not ended. */
  active_runs: Type.Integer(),
  created_at: Time,
  offered: Type.Boolean({ description: 'Whether runs that the hub dispatches may work in it.' }),
})
export type WorkspaceRecord = Static<typeof WorkspaceRecord>

export const ListWorkspaces = call('/v1/workspaces/get', {
  summary: 'All workspaces',
  daemon: READER,
  envelope: 'workspace_list',
  body: closed({}),
  data: Type.Object({ workspaces: Type.Array(WorkspaceRecord) }),
})
export const AddWorkspace = call('/v1/workspaces/add', {
  summary: 'Register a folder, and offer it to dispatched runs',
  daemon: HERE,
  body: closed({
    path: Path,
    name: Type.Optional(Name),
    offer: Type.Optional(Type.Boolean({ description: 'Whether dispatched runs may work in it; as it was if absent.' })),
  }),
  data: WorkspaceRecord,
})
export const RemoveWorkspace = call('/v1/workspaces/remove', {
  summary: 'Forget a workspace',
  daemon: HERE,
  body: closed({ workspace_id: Path }),
  data: WorkspaceRecord,
})
