// The calls of the hub's API that daemons and the command line make for people, with a user token: who somebody is, and
// packages. hub-admin-calls.ts and hub-run-calls.ts have the others.

import { Type } from '../../schema/type.ts'
import { bareCall } from '../call.ts'
import { AnyText } from '../parts.ts'
import { Download, PackageFile, PackageSignature } from '../records/packages.ts'

export const PublishTeam = bareCall(
  '/v1/teams/publish',
  Type.Object({
    scope: Type.Optional(AnyText),
    files: Type.Array(PackageFile),
    signature: Type.Optional(PackageSignature),
  }),
  Type.Object({ name: AnyText, version: AnyText, sha256: AnyText }),
)
export const DownloadTeam = bareCall('/v1/teams/download', Type.Object({ team: AnyText }), Download)
