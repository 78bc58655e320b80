// Published teams: publish, find, download, yank.

import { and, eq, inArray, isNull, like, or, sql } from 'drizzle-orm'
import { type Db, isDuplicate } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import type { Api } from '../../http/api.ts'
import { MIB } from '../../http/body.ts'
import { closed } from '../../schema.ts'
import type { TeamPackage } from '../../team/team.ts'
import { Type } from '../../type.ts'
import { realmFacts } from '../acl.ts'
import { record } from '../audit.ts'
import { listBody, page, Slug, TeamName, TeamRef, Text } from '../bodies.ts'
import type { Callers, RealmCaller, UserCaller } from '../callers.ts'
import type { Hub } from '../hub.ts'
import {
  checkPackage,
  filesOf,
  findPackage,
  type PackageRow,
  reachable,
  scopeOf,
  splitReference,
  versionsOf,
} from '../packages.ts'
import { scopesReached } from '../reach.ts'
import { Download, listOf, Package, withMore } from '../records.ts'

const READ = { grant: { teams: 'read' }, scope: 'org' } as const
const WRITE = { grant: { teams: 'write' }, scope: 'member' } as const

export function teamRoutes(api: Api, hub: Hub, { user, either }: Callers): void {
  const { store } = hub
  const { packages, packageFiles, scopes } = store

  api.post(
    '/v1/teams/publish',
    {
      access: user(WRITE),
      body: closed({
        scope: Type.Optional(Slug),
        files: Type.Array(closed({ path: Type.String({ maxLength: 400 }), content_base64: Type.String() }), {
          minItems: 1,
        }),
      }),
      data: Package,
      limit: 16 * MIB,
      summary: 'Publish a version of a team',
    },
    async ({ body, caller }) => {
      if (body.scope) await caller.scope({ slug: body.scope })
      const checked = await checkPackage(body.files, body.scope, {
        agents: await hub.agents(),
        resolve: reference => visiblePackage(caller, reference),
      })
      const { name, version } = checked.team
      return store.write(async tx => {
        const scope = await caller.scope({ slug: scopeOf(name) }, 'member', tx)
        const [row] = await tx
          .insert(packages)
          .values({
            scope_id: scope.id,
            name,
            version,
            description: checked.team.description,
            sha256: checked.sha256,
            bytes: checked.bytes,
            inputs: [...checked.team.inputs],
            dependencies: checked.dependencies,
            published_at: hub.now(),
            published_by: caller.user.id,
          })
          .returning()
          .catch(error => {
            if (!isDuplicate(error)) throw error
            throw new CadreError('conflict', `${name}@${version} is published already; give it another version`)
          })
        await tx.insert(packageFiles).values({ package_id: row!.id, files: checked.files })
        const deed = { action: 'teams/publish', target: `${name}@${version}`, org_id: scope.org_id }
        await record(hub, tx, caller, deed)
        return packageRecord(row!)
      })
    },
  )

  api.post(
    '/v1/teams/list',
    {
      access: user(READ),
      body: listBody({ scope: Type.Optional(Slug), query: Type.Optional(Text(200)) }),
      data: listOf('teams', Package),
      summary: 'Published teams, each with its newest version',
    },
    async ({ body, caller }) => {
      if (body.scope) await caller.scope({ slug: body.scope })
      const reached = store.db.select({ id: scopes.id }).from(scopes).where(scopesReached(store, caller))
      const pattern = body.query && `%${body.query.toLowerCase().replaceAll(/[\\%_]/g, '\\$&')}%`
      const where = and(
        isNull(packages.yanked_at),
        inArray(packages.scope_id, reached),
        body.scope ? like(packages.name, `@${body.scope}/%`) : undefined,
        pattern
          ? or(
              sql`lower(${packages.name}) LIKE ${pattern} ESCAPE '\\'`,
              sql`lower(${packages.description}) LIKE ${pattern} ESCAPE '\\'`,
            )
          : undefined,
      )
      const { limit, offset } = page(body)
      const names = await store.db
        .selectDistinct({ name: packages.name })
        .from(packages)
        .where(where)
        .orderBy(packages.name)
      const shown = names.slice(offset, offset + limit)
      const newest = await Promise.all(shown.map(({ name }) => newestOf(name)))
      return { teams: newest.map(packageRecord), total: names.length }
    },
  )

  api.post(
    '/v1/teams/get',
    {
      access: user(READ),
      body: closed({ team: TeamRef }),
      data: withMore(Package, {
        inputs: Type.Array(Type.Record(Type.String(), Type.Unknown())),
        dependencies: Type.Array(Type.String()),
      }),
      summary: 'A version of a team, and its inputs',
    },
    async ({ body, caller }) => {
      const row = await readable(caller, body.team)
      return { ...packageRecord(row), inputs: row.inputs, dependencies: row.dependencies }
    },
  )

  api.post(
    '/v1/teams/versions',
    {
      access: user(READ),
      body: listBody({ team: TeamName }),
      data: listOf('versions', Package),
      summary: 'The versions of a team that may be chosen, newest first',
    },
    async ({ body, caller }) => {
      await caller.scope({ slug: scopeOf(body.team) }).catch(asMissing(body.team))
      const all = await versionsOf(store, store.db, body.team)
      if (all.length === 0) throw missing(body.team)
      const rows = all.filter(row => row.yanked_at === null)
      const { limit, offset } = page(body)
      return { versions: rows.slice(offset, offset + limit).map(packageRecord), total: rows.length }
    },
  )

  api.post(
    '/v1/teams/download',
    { access: either(READ), body: closed({ team: TeamRef }), data: Download, summary: 'The files of a version' },
    async ({ body, caller }) => {
      const row = caller.kind === 'user' ? await readable(caller, body.team) : await listed(caller, body.team)
      const { name, version, sha256 } = row
      return { name, version, sha256, files: await filesOf(store, store.db, row.id) }
    },
  )

  api.post(
    '/v1/teams/yank',
    {
      access: user(WRITE),
      body: closed({ team: TeamRef }),
      data: Package,
      summary: 'Hide a version; what is pinned to it still works',
    },
    ({ body: { team }, caller }) =>
      store.write(async tx => {
        const { name, range } = splitReference(team)
        if (range === null) throw new CadreError('invalid_request', 'name one version: @scope/name@version')
        const scope = await caller.scope({ slug: scopeOf(name) }, 'member', tx).catch(asMissing(team))
        const [row] = await tx
          .update(packages)
          .set({ yanked_at: hub.now() })
          .where(and(eq(packages.name, name), eq(packages.version, range)))
          .returning()
        if (!row) throw missing(team)
        await record(hub, tx, caller, { action: 'teams/yank', target: team, org_id: scope.org_id })
        return packageRecord(row)
      }),
  )

  async function newestOf(name: string): Promise<PackageRow> {
    const rows = await versionsOf(store, store.db, name)
    return rows.find(row => row.yanked_at === null && !row.version.includes('-')) ?? rows.find(row => !row.yanked_at)!
  }

  /** Throws 404 for a package of a scope that the caller does not belong to, as for a missing one. */
  async function readable(caller: UserCaller, reference: string): Promise<PackageRow> {
    await caller.scope({ slug: scopeOf(reference) }, 'org').catch(asMissing(reference))
    const row = await findPackage(store, store.db, reference)
    if (!row) throw missing(reference)
    return row
  }

  async function visiblePackage(caller: UserCaller, reference: string): Promise<TeamPackage | null> {
    try {
      return await packageFilesOf(store.db, await readable(caller, reference))
    } catch (error) {
      if (error instanceof CadreError && error.code === 'not_found') return null
      throw error
    }
  }

  async function packageFilesOf(db: Db, { id, name, version }: PackageRow): Promise<TeamPackage> {
    const files = await filesOf(store, db, id)
    return { name, version, files: new Map(files.map(file => [file.path, Buffer.from(file.content_base64, 'base64')])) }
  }

  /** A realm token downloads what its realms' lists need. */
  async function listed(caller: RealmCaller, reference: string): Promise<PackageRow> {
    const { name } = splitReference(reference)
    for (const { realm_id } of caller.token.live) {
      const { teams } = await realmFacts(hub, realm_id)
      if (!(await reachable(store, store.db, teams, name))) continue
      const row = await findPackage(store, store.db, reference)
      if (row) return row
    }
    throw missing(reference)
  }
}

function packageRecord({ scope_id: _, published_by: __, inputs: ___, dependencies: ____, ...row }: PackageRow) {
  return row
}

const missing = (reference: string) => new CadreError('not_found', `no team ${reference} that you may see`)

const asMissing =
  (reference: string) =>
  (error: unknown): never => {
    throw error instanceof CadreError && error.code === 'not_found' ? missing(reference) : error
  }
