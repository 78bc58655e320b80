// How published teams are stored and found: `@scope/name@version`, immutable.

import { eq } from 'drizzle-orm'
import { prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import type { PackageFile } from '../../wire/records/packages.ts'
import { splitReference } from './reference.ts'

export type PackageRow = Tables['packages']['$inferSelect']

/**
 * The newest version that fits. A yanked version is found only by its exact number, because pins to it must keep
 * working.
 */
export async function findPackage(store: Store, db: Db, reference: string): Promise<PackageRow | null> {
  const { name, range } = splitReference(reference)
  const rows = await versionsNamed(store, db, { name })
  const exact = rows.find(row => row.version === range)
  const fitting = rows
    .filter(row => row.yanked_at === null && fits(row.version, range))
    .sort((a, b) => Bun.semver.order(b.version, a.version))
  const found = exact ?? fitting[0]
  return found ? (await packageById(store, db, { id: found.id }))[0]! : null
}

/** What lists show of a version. What its team declares may be large. */
export type PackageHead = Omit<
  PackageRow,
  'scope_id' | 'published_by' | 'inputs' | 'dependencies' | 'needs' | 'concurrency' | 'environments' | 'triggers'
>

const versionsNamed = prepared(({ packages }, db, slot: Slot<'name'>) => {
  const { id, name, version, description, sha256, bytes, signature, published_at, yanked_at } = packages
  return db
    .select({ id, name, version, description, sha256, bytes, signature, published_at, yanked_at })
    .from(packages)
    .where(eq(name, slot('name')))
})

const packageById = prepared(({ packages }, db, slot: Slot<'id'>) =>
  db
    .select()
    .from(packages)
    .where(eq(packages.id, slot('id'))),
)

/** Whether a version fits a range. Without a range only releases fit. */
function fits(version: string, range: string | null): boolean {
  if (range === null || range === 'latest' || range === '*') return !version.includes('-')
  return Bun.semver.satisfies(version, range)
}

export async function filesOf({ packageFiles }: Store, db: Db, id: number): Promise<PackageFile[]> {
  const [row] = await db.select().from(packageFiles).where(eq(packageFiles.package_id, id))
  return row!.files
}

/** Every version, newest first, including yanked ones. */
export async function versionsOf(store: Store, db: Db, name: string): Promise<PackageHead[]> {
  const rows = await versionsNamed(store, db, { name })
  return rows.sort((a, b) => Bun.semver.order(b.version, a.version))
}
