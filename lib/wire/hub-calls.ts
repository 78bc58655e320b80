// The calls of the hub's API that daemons and the command line make for people, with a user token.

import type { Static } from 'typebox'
import { nullable } from '../schema.ts'
import { Type } from '../type.ts'
import { call } from './call.ts'
import { Dispatched, Line, LOG_STATE, Phase, Realm, TreeEntry } from './hub-records.ts'
import { Download, PackageFile, PackageSignature } from './packages.ts'
import { listOf, PAGE } from './page.ts'
import { AnyObject, AnyText } from './parts.ts'

/** The data of replies that nobody reads. */
const Anything = Type.Unknown()

export const CreateSession = call(
  '/v1/session/create',
  Type.Object({ username: AnyText, password: AnyText }),
  Type.Object({ token: AnyText }),
)
export const DeleteSession = call('/v1/session/delete', Type.Object({}), Anything)

export const GenerateToken = call(
  '/v1/auth/generate_token',
  Type.Object({ type: Type.Enum(['user', 'realm']), name: AnyText, realm_ids: Type.Optional(Type.Array(AnyText)) }),
  Type.Object({ token: AnyText }),
)

/**
 * Whom a token belongs to. `realm_role` is its owner's live role in the given realm from memberships alone, so a site
 * admin who is not a member has none. It is null when the token does not reach the realm.
 */
export const Whoami = call(
  '/v1/auth/whoami',
  Type.Object({ realm_id: Type.Optional(nullable(AnyText)) }),
  Type.Object({
    type: AnyText,
    kind: AnyText,
    user: nullable(Type.Object({ id: Type.Integer(), username: AnyText })),
    permissions: Type.Object({ access: Type.Record(Type.String(), Type.Array(AnyText)) }),
    realm_role: Type.Optional(nullable(AnyText)),
  }),
)

export type Identity = Static<typeof Whoami.data>

export const ListRealms = call('/v1/realms/list', Type.Object(PAGE), listOf('realms', Realm))
export const AddTeam = call('/v1/realms/add_team', Type.Object({ realm_id: AnyText, team: AnyText }), Anything)

export const PublishTeam = call(
  '/v1/teams/publish',
  Type.Object({
    scope: Type.Optional(AnyText),
    files: Type.Array(PackageFile),
    signature: Type.Optional(PackageSignature),
  }),
  Type.Object({ name: AnyText, version: AnyText, sha256: AnyText }),
)
export const DownloadTeam = call('/v1/teams/download', Type.Object({ team: AnyText }), Download)

export const DispatchRun = call(
  '/v1/dispatch/run',
  Type.Object({
    realm_id: AnyText,
    team: AnyText,
    inputs: Type.Optional(AnyObject),
    run_name: Type.Optional(AnyText),
    workspace: Type.Optional(AnyText),
  }),
  Dispatched,
)

/** Lines of a log, and how much of it the hub has. */
export const GetHubLogs = call(
  '/v1/runs/logs',
  Type.Object({
    run_id: AnyText,
    phase: Type.Optional(AnyText),
    after_seq: Type.Optional(Type.Integer()),
    limit: Type.Optional(Type.Integer()),
  }),
  Type.Object({ lines: Type.Array(Line), next: Type.Integer(), ...LOG_STATE }),
)
export const GetHubPhases = call(
  '/v1/runs/phases',
  Type.Object({ run_id: AnyText }),
  Type.Object({ phases: Type.Array(Phase) }),
)

export const GetTree = call(
  '/v1/runs/tree',
  Type.Object({ run_id: AnyText }),
  Type.Object({ root_run_id: AnyText, runs: Type.Array(TreeEntry) }),
)
