// The calls of the hub's API that daemons and the command line make for people, with a user token: who somebody is, and
// packages. hub-admin-calls.ts and hub-run-calls.ts have the others.

import type { Static } from 'typebox'
import { nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { Permissions } from '../grants.ts'
import { listOf, PAGE } from '../page.ts'
import { AnyText } from '../parts.ts'
import { Realm } from '../records/hub-records.ts'
import { Download, PackageFile, PackageSignature } from '../records/packages.ts'

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
  Type.Object({
    type: Type.Enum(['user', 'realm']),
    name: AnyText,
    permissions: Type.Optional(Permissions),
    realm_ids: Type.Optional(Type.Array(AnyText)),
    expires_in_days: Type.Optional(Type.Integer()),
  }),
  Type.Object({ id: Type.Integer(), name: AnyText, token: AnyText, expires_at: nullable(AnyText) }),
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
    realm_ids: Type.Optional(Type.Array(AnyText)),
    permissions: Type.Object({ access: Type.Record(Type.String(), Type.Array(AnyText)) }),
    realm_role: Type.Optional(nullable(AnyText)),
    /** Epoch milliseconds. */
    expires_at: Type.Optional(nullable(Type.Number())),
  }),
)

export type Identity = Static<typeof Whoami.data>

export const ListRealms = call(
  '/v1/realms/list',
  Type.Object({ ...PAGE, org_id: Type.Optional(Type.Integer()) }),
  listOf('realms', Realm),
)
export const GetRealm = call('/v1/realms/get', Type.Object({ realm_id: AnyText }), Realm)
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
