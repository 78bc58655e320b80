// The routes for published teams: publish, find, download and yank; and for the runs that a team had.

import { and, eq, inArray, isNull, like, or, sql } from 'drizzle-orm'
import type { Static } from 'typebox'
import { isDuplicate } from '../../../db/hub/store.ts'
import { together } from '../../../db/hub/together.ts'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import { within } from '../../wire/budget.ts'
import { MIB } from '../../wire/call.ts'
import { GetHubTeamHistory } from '../../wire/calls/hub-runs.ts'
import {
  DownloadTeam,
  GetPackage,
  GetReach,
  ListPackages,
  ListVersions,
  PublishTeam,
  YankPackage,
} from '../../wire/calls/packages.ts'
import { page } from '../../wire/page.ts'
import { type SignedPackage, verifyPackage } from '../../wire/records/package-signature.ts'
import type { Reach } from '../../wire/records/packages.ts'
import { realmFacts } from '../access/access-list.ts'
import { answer } from '../access/answer.ts'
import { record } from '../access/audit.ts'
import type { RealmCaller, UserCaller } from '../access/callers.ts'
import { hubKit } from '../access/kit.ts'
import { callsTeam } from '../access/team-list.ts'
import { realmsReached, scopesReached } from '../access/token-reach.ts'
import type { Hub } from '../core/hub.ts'
import {
  type Found,
  filesOf,
  findPackage,
  type PackageHead,
  type PackageRow,
  scopeSlugOf,
  splitReference,
  versionsOf,
} from '../packages/packages.ts'
import { historyOfTeam } from '../reports/team-runs.ts'

const NAMED_SCOPES = /\bname["']?\s*:\s*["']?@[a-z0-9-]{1,63}\//g
const scopeIn = (named: string) => named.slice(named.indexOf('@') + 1, -1)
/** The maximum number of names that are looked up of those that team.yml seems to contain. */
const MOST_NAMED = 10

export function teams(hub: Hub) {
  const { store } = hub
  const { packages, packageFiles, scopes } = store
  const reading = new Map<string, Promise<Reach>>()

  return resource('teams', hubKit(hub), [
    answer(GetHubTeamHistory, async ({ body, caller }) => {
      const { realm_id, team, upto, ...asked } = body
      const where = realm_id ? { realm: realm_id } : { reached: realmsReached(store, caller) }
      const reading = historyOfTeam(hub, where, { team, ...(upto !== undefined && { upto }) }, page(asked))
      const [{ runs, ...totals }] = await together([reading, realm_id && caller.realm(realm_id)])
      return { runs: within(runs), ...totals }
    }),
    answer(PublishTeam, async ({ body, caller, request, server }) => {
      await mayPublish(caller, body)
      // Other packages may wait before this one, and a large one takes long, so this request has no time limit.
      server?.timeout(request, 0)
      const { files, scope, signature } = body
      const checked = await hub.checker.check(caller.user.id, { files, scope }, ref => visiblePackage(caller, ref))
      const { name, version } = checked
      // Daemons verify signatures themselves. The check here only prevents a version from being published with a
      // signature that no daemon would accept.
      if (signature && !verifyPackage(checked, signature)) throw unfitting(checked)
      return caller.write(async tx => {
        const scope = await caller.scope({ slug: scopeSlugOf(name) }, 'member', tx)
        const [row] = await tx
          .insert(packages)
          .values({
            scope_id: scope.id,
            name,
            version,
            description: checked.description,
            sha256: checked.sha256,
            bytes: checked.bytes,
            signature: signature ?? null,
            inputs: checked.inputs,
            needs: checked.needs,
            concurrency: checked.concurrency,
            environments: checked.environments,
            triggers: checked.triggers,
            dependencies: checked.dependencies,
            published_at: hub.now(),
            published_by: caller.user.id,
          })
          .returning()
          .catch(error => {
            if (!isDuplicate(error)) throw error
            throw new CadreError('conflict', `${name}@${version} is already published; give it another version`)
          })
        await tx.insert(packageFiles).values({ package_id: row!.id, files: checked.files })
        const entry = { action: 'teams/publish', target: `${name}@${version}`, org_id: scope.org_id }
        await record(hub, tx, caller, entry)
        return packageRecord(row!)
      })
    }),
    answer(ListPackages, async ({ body, caller }) => {
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
      return { teams: within(newest), total: names.length }
    }),
    answer(GetPackage, async ({ body, caller }) => {
      const row = await readable(caller, body.team)
      const { inputs, environments, dependencies } = row
      const [publisher] = await store.db
        .select({ username: store.users.username })
        .from(store.users)
        .where(eq(store.users.id, row.published_by))
      const published_by = publisher?.username ?? null
      return { ...packageRecord(row), published_by, inputs, ...(environments && { environments }), dependencies }
    }),
    answer(ListVersions, async ({ body, caller }) => {
      await caller.scope({ slug: scopeSlugOf(body.team) }).catch(asMissing(body.team))
      const all = await versionsOf(store, store.db, body.team)
      if (all.length === 0) throw missing(body.team)
      const rows = all.filter(row => row.yanked_at === null)
      const { limit, offset } = page(body)
      return { versions: within(rows.slice(offset, offset + limit)), total: rows.length }
    }),
    answer(DownloadTeam, async ({ body, caller }) => {
      const row = caller.kind === 'user' ? await readable(caller, body.team) : await listed(caller, body.team)
      const { name, version, sha256, signature } = row
      return { name, version, sha256, signature, files: await filesOf(store, store.db, row.id) }
    }),
    answer(GetReach, async ({ body, caller, request, server }) => {
      const row = await readable(caller, body.team)
      // The thread may be busy with packages that are being published.
      server?.timeout(request, 0)
      return reachOf(caller, row.id)
    }),
    answer(YankPackage, ({ body: { team }, caller }) =>
      caller.write(async tx => {
        const { name, range } = splitReference(team)
        if (range === null) throw new CadreError('invalid_request', '`team` must name one version: @scope/name@version')
        const scope = await caller.scope({ slug: scopeSlugOf(name) }, 'member', tx).catch(asMissing(team))
        const [row] = await tx
          .update(packages)
          .set({ yanked_at: hub.now() })
          .where(and(eq(packages.name, name), eq(packages.version, range)))
          .returning()
        if (!row) throw missing(team)
        await record(hub, tx, caller, { action: 'teams/yank', target: team, org_id: scope.org_id })
        return packageRecord(row)
      }),
    ),
  ])

  /** Those who ask for the same at the same time wait for one reading, because a user may have few of them at once. */
  function reachOf(caller: UserCaller, id: number): Promise<Reach> {
    const key = `${caller.user.id} ${id}`
    const read = async () => {
      const candidate = { files: await filesOf(store, store.db, id), scope: undefined }
      return (await hub.checker.check(caller.user.id, candidate, ref => visiblePackage(caller, ref))).reach
    }
    const found = reading.get(key) ?? read().finally(() => reading.delete(key))
    reading.set(key, found)
    return found
  }

  async function newestOf(name: string): Promise<PackageHead> {
    const rows = await versionsOf(store, store.db, name)
    return rows.find(row => row.yanked_at === null && !row.version.includes('-')) ?? rows.find(row => !row.yanked_at)!
  }

  /** The package, if the caller belongs to its scope. Otherwise throws 404, as for a missing package. */
  async function readable(caller: UserCaller, reference: string): Promise<PackageRow> {
    await caller.scope({ slug: scopeSlugOf(reference) }, 'org').catch(asMissing(reference))
    const row = await findPackage(store, store.db, reference)
    if (!row) throw missing(reference)
    return row
  }

  /**
   * Throws when the caller may not publish this package, before the expensive reading begins. It looks only at names in
   * the form in which team.yml usually has them. The real name of the package is checked again before it is stored.
   */
  async function mayPublish(caller: UserCaller, { scope, files }: Static<typeof PublishTeam.body>): Promise<void> {
    if (scope) return void (await caller.scope({ slug: scope }))
    const root = files.find(({ path }) => path === 'team.yml')?.content_base64.slice(0, 2 * MIB) ?? ''
    const slugs = new Set(Buffer.from(root, 'base64').toString().match(NAMED_SCOPES)?.map(scopeIn))
    slugs.delete('local')
    const [first, ...others] = [...slugs].slice(0, MOST_NAMED)
    if (first === undefined) return publishesSomewhere(caller)
    let refused: unknown
    for (const slug of [first, ...others]) {
      try {
        return void (await caller.scope({ slug }))
      } catch (error) {
        refused ??= error
      }
    }
    throw refused
  }

  /**
   * The check for a package that seems to name no scope: a caller who cannot publish anywhere must not cause the work
   * of reading it.
   */
  async function publishesSomewhere({ user }: UserCaller): Promise<void> {
    if (user.siteAdmin) return
    const { scopeMembers, orgMembers, db } = store
    const own = db
      .select({ id: scopes.id })
      .from(scopes)
      .leftJoin(scopeMembers, and(eq(scopeMembers.scope_id, scopes.id), eq(scopeMembers.user_id, user.id)))
      .leftJoin(orgMembers, and(eq(orgMembers.org_id, scopes.org_id), eq(orgMembers.user_id, user.id)))
      .where(or(eq(scopeMembers.user_id, user.id), inArray(orgMembers.role, ['owner', 'admin'])))
    if ((await own.limit(1)).length > 0) return
    throw new CadreError('forbidden', 'you may not publish in any scope: ask an owner to add you to a scope')
  }

  async function visiblePackage(caller: UserCaller, reference: string): Promise<Found | null> {
    try {
      const { id, name, version } = await readable(caller, reference)
      return { name, version, files: await filesOf(store, store.db, id) }
    } catch (error) {
      if (error instanceof CadreError && error.code === 'not_found') return null
      throw error
    }
  }

  /** The package, if the list of one of the token's realms needs it. */
  async function listed(caller: RealmCaller, reference: string): Promise<PackageRow> {
    const { name } = splitReference(reference)
    for (const { realm_id } of caller.token.live) {
      const { teams } = await realmFacts(hub, realm_id)
      if (!(await callsTeam(store, store.db, teams, name))) continue
      const row = await findPackage(store, store.db, reference)
      if (row) return row
    }
    throw missing(reference)
  }
}

/** A version as it is listed, from its row. */
function packageRecord(row: PackageHead): PackageHead {
  const { id, name, version, description, sha256, bytes, signature, published_at, yanked_at } = row
  return { id, name, version, description, sha256, bytes, signature, published_at, yanked_at }
}

function unfitting({ name, version, sha256 }: SignedPackage): CadreError {
  const message = `is not for ${name}@${version} with the SHA-256 ${sha256}; sign what is published, byte for byte`
  return new CadreError('invalid_request', `the signature ${message}`, { details: [{ path: '/signature', message }] })
}

const missing = (reference: string) => new CadreError('not_found', `there is no team ${reference} that you may see`)

const asMissing =
  (reference: string) =>
  (error: unknown): never => {
    throw error instanceof CadreError && error.code === 'not_found' ? missing(reference) : error
  }
