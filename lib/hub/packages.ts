// Published teams: immutable packages `@scope/name@version`, checked by the daemon's own validator before they are kept.

import { eq, like, type SQL } from 'drizzle-orm'
import type { Tables } from '../../db/hub/schema.ts'
import type { Db, Store } from '../../db/hub/store.ts'
import type { FileContent } from '../../db/hub/work.ts'
import { CadreError } from '../error.ts'
import type { AgentLookup, Team } from '../team/team.ts'
import { loadBundle, type ResolvePackage } from '../team/team.ts'
import type { Hub } from './hub.ts'

export type PackageRow = Tables['packages']['$inferSelect']

const MAX_FILES = 2_000
const MAX_BYTES = 10 * 1024 * 1024
const SAFE_PATH = /^(?!\.\.?(\/|$))[A-Za-z0-9._@+ -]+(\/(?!\.\.?(\/|$))[A-Za-z0-9._@+ -]+)*$/

/** `@scope/name` and, after another `@`, a version or a range. */
export function splitReference(reference: string): { name: string; range: string | null } {
  const at = reference.indexOf('@', 1)
  return at === -1 ? { name: reference, range: null } : { name: reference.slice(0, at), range: reference.slice(at + 1) }
}

export const scopeOf = (name: string): string => name.slice(1, name.indexOf('/'))

/** The newest version that fits; a yanked one only when it is named exactly, for pins do not break. */
export async function findPackage({ packages }: Store, db: Db, reference: string): Promise<PackageRow | null> {
  const { name, range } = splitReference(reference)
  const rows = await db.select().from(packages).where(eq(packages.name, name))
  const exact = rows.find(row => row.version === range)
  if (exact) return exact
  const fitting = rows
    .filter(row => row.yanked_at === null && fits(row.version, range))
    .sort((a, b) => Bun.semver.order(b.version, a.version))
  return fitting[0] ?? null
}

/** Without a range the newest release, and prereleases only where there is nothing else to want. */
function fits(version: string, range: string | null): boolean {
  if (range === null || range === 'latest' || range === '*') return !version.includes('-')
  return Bun.semver.satisfies(version, range)
}

export async function filesOf({ packageFiles }: Store, db: Db, id: number): Promise<FileContent[]> {
  const [row] = await db.select().from(packageFiles).where(eq(packageFiles.package_id, id))
  return row!.files
}

/** Every version, newest first; those that were yanked too. */
export async function versionsOf({ packages }: Store, db: Db, name: string): Promise<PackageRow[]> {
  const rows = await db.select().from(packages).where(eq(packages.name, name))
  return rows.sort((a, b) => Bun.semver.order(b.version, a.version))
}

/** Whether a realm with these teams on its list needs `name`: it is listed, or called by one that is. */
export async function reachable(
  { packages }: Store,
  db: Db,
  listed: readonly string[],
  name: string,
): Promise<boolean> {
  const seen = new Set<string>()
  for (let next = [...listed]; next.length > 0; ) {
    const current = next.pop()!
    if (current === name) return true
    if (seen.has(current)) continue
    seen.add(current)
    const rows = await db
      .select({ dependencies: packages.dependencies })
      .from(packages)
      .where(eq(packages.name, current))
    next = [...next, ...rows.flatMap(row => row.dependencies)]
  }
  return false
}

/**
 * Takes the teams of scopes that are to be deleted off every realm's list: the next owner of such a slug would run there
 * without having been asked for.
 */
export async function delist({ store }: Hub, tx: Db, of: SQL): Promise<void> {
  const { scopes, realmTeams } = store
  const gone = await tx.select({ slug: scopes.slug }).from(scopes).where(of)
  for (const { slug } of gone) await tx.delete(realmTeams).where(like(realmTeams.team, `@${slug}/%`))
}

export interface Checked {
  team: Team
  files: FileContent[]
  sha256: string
  bytes: number
  dependencies: string[]
}

/**
 * Reads and checks the files of a package. `scope`, when given, takes the place of `@local` in every team.yml.
 * Throws `invalid_request` with every problem, `too_large` above 10 MiB.
 */
export async function checkPackage(
  given: readonly FileContent[],
  scope: string | undefined,
  { agents, resolve }: { agents: AgentLookup; resolve: ResolvePackage },
): Promise<Checked> {
  const files = decodeFiles(given)
  if (scope !== undefined) {
    for (const [path, content] of files) {
      if (!/(^|\/)team\.ya?ml$/.test(path)) continue
      const text = Buffer.from(content).toString('latin1').replaceAll('@local/', `@${scope}/`)
      files.set(path, Buffer.from(text, 'latin1'))
    }
  }
  const bundle = await loadBundle(files, { agents, resolve, closed: true })
  const team = bundle.team(bundle.root)
  if (team.name.startsWith('@local/')) {
    throw new CadreError(
      'invalid_request',
      `${team.name} cannot be published: give its name a scope, or publish with one`,
    )
  }
  const sorted = [...files].sort(([a], [b]) => (a < b ? -1 : 1))
  const stored = sorted.map(([path, content]) => ({ path, content_base64: Buffer.from(content).toString('base64') }))
  const refs = Object.values(bundle.json().teams).flatMap(({ refs }) => Object.keys(refs))
  return {
    team,
    files: stored,
    sha256: new Bun.CryptoHasher('sha256').update(JSON.stringify(stored)).digest('hex'),
    bytes: sorted.reduce((sum, [, content]) => sum + content.length, 0),
    dependencies: [...new Set(refs.filter(ref => ref.startsWith('@')).map(ref => splitReference(ref).name))].sort(),
  }
}

function decodeFiles(given: readonly FileContent[]): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>()
  let total = 0
  for (const [index, { path, content_base64 }] of given.entries()) {
    const problem = (field: string, message: string) =>
      new CadreError('invalid_request', `file ${index}: ${message}`, {
        details: [{ path: `/files/${index}/${field}`, message }],
      })
    if (!SAFE_PATH.test(path) || path.length > 400) throw problem('path', 'must be a relative path inside the package')
    if (files.has(path)) throw problem('path', 'is in the package twice')
    if (!/^[A-Za-z0-9+/]*={0,2}$/.test(content_base64)) throw problem('content_base64', 'must be base64')
    const content = Buffer.from(content_base64, 'base64')
    total += content.length
    if (total > MAX_BYTES) throw new CadreError('too_large', 'the package is larger than 10 MiB')
    files.set(path, content)
  }
  if (files.size > MAX_FILES) throw new CadreError('too_large', `the package has more than ${MAX_FILES} files`)
  return files
}
