// Published teams: publish, find, download and yank.

import { closed, nullable } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call, MIB } from '../call.ts'
import type { Environments } from '../needs.ts'
import { listBody, listOf } from '../page.ts'
import { AnyText, Slug, TeamName, TeamRef, Text } from '../parts.ts'
import type { Field } from '../records/forms.ts'
import { withMore } from '../records/hub-records.ts'
import { Download, Package, Reach } from '../records/packages.ts'

const READ = { grant: { teams: 'read' }, scope: 'org' } as const
const WRITE = { grant: { teams: 'write' }, scope: 'member' } as const

export const PublishTeam = call('/v1/teams/publish', {
  summary: 'Publish a version of a team',
  hub: { user: WRITE },
  body: closed({
    scope: Type.Optional(Slug),
    signature: Type.Optional(
      closed({
        key: Type.String({ pattern: '^ed25519:[\\w-]{43}$', 'x-expected': 'a key such as ed25519:…' }),
        value: Type.String({ pattern: '^[\\w-]{86}$', 'x-expected': 'a signature' }),
      }),
    ),
    files: Type.Array(closed({ path: Type.String({ maxLength: 400 }), content_base64: Type.String() }), {
      minItems: 1,
    }),
  }),
  data: Package,
  limit: 16 * MIB,
})
export const ListPackages = call('/v1/teams/list', {
  summary: 'Search published teams, each shown with its newest version',
  hub: { user: READ },
  body: listBody({ scope: Type.Optional(Slug), query: Type.Optional(Text(200)) }),
  data: listOf('teams', Package),
})
export const GetPackage = call('/v1/teams/get', {
  summary: 'Get a version of a team, and its inputs',
  hub: { user: READ },
  body: closed({ team: TeamRef }),
  data: withMore(Package, {
    published_by: Type.Optional(
      nullable(AnyText, { description: 'The user name of who published it. Null when the account is gone.' }),
    ),
    inputs: Type.Unsafe<Field[]>(Type.Array(Type.Record(Type.String(), Type.Unknown()))),
    environments: Type.Optional(
      Type.Unsafe<Environments>(
        Type.Object(
          {
            allow: Type.Array(AnyText, { description: 'The environments of settings.yml in which it may run.' }),
            default: nullable(AnyText, { description: 'The one in which it runs if nobody says.' }),
          },
          {
            description: 'In which environments it runs; absent when it runs in any, or when that was not stored yet.',
          },
        ),
      ),
    ),
    dependencies: Type.Array(Type.String()),
  }),
})
export const ListVersions = call('/v1/teams/versions', {
  summary: 'List the versions of a team that are not yanked, newest first',
  hub: { user: READ },
  body: listBody({ team: TeamName }),
  data: listOf('versions', Package),
})
export const DownloadTeam = call('/v1/teams/download', {
  summary: 'Download the files of a version',
  hub: { either: READ },
  body: closed({ team: TeamRef }),
  data: Download,
})
export const GetReach = call('/v1/teams/reach', {
  summary: 'What a version writes and reaches, and with which credentials',
  hub: { user: READ },
  body: closed({ team: TeamRef }),
  data: Reach,
})
export const YankPackage = call('/v1/teams/yank', {
  summary: 'Hide a version; runs and teams that are pinned to it still work',
  hub: { user: WRITE },
  body: closed({ team: TeamRef }),
  data: Package,
})
