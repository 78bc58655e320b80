// The teams of a realm's list that no daemon of the realm could run, which is said before a run waits for one or fails.

import { and, eq, isNotNull, isNull } from 'drizzle-orm'
import { isAmong, prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Store } from '../../../db/hub/store.ts'
import { listed } from '../../text/spelling.ts'
import { nameAmong } from '../access/daemons.ts'
import { listedTeams } from '../access/team-list.ts'
import type { Hub } from '../core/hub.ts'
import type { PackageRow } from '../packages/packages.ts'
import { jobNeeds, missingNeeds, type Offer, unreadyAgents } from './job-needs.ts'

type Version = Pick<PackageRow, 'name' | 'version' | 'sha256'>
type Needs = Pick<PackageRow, 'needs' | 'environments'>
type Candidate = Offer & { id: string; name: string }

/**
 * What each of these teams of the list lacks on every daemon of the realm. None lacks anything where no daemon is approved,
 * because then nothing runs and the list of daemons shows it.
 */
export async function lacksOfTeams(
  { store }: Hub,
  realmId: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const offers = await offersOf(store, store.db, { realmId })
  if (offers.length === 0 || names.length === 0) return new Map()
  const newest = new Map<string, Version>()
  for (const each of await versionsOfTeams(store, store.db, { names: JSON.stringify(names) })) {
    const known = newest.get(each.name)
    const isRelease = !each.version.includes('-')
    if (isRelease && (!known || Bun.semver.order(each.version, known.version) > 0)) newest.set(each.name, each)
  }
  const needs = await needsOf(store, [...newest.values()])
  const list = await listedTeams(store, store.db, realmId)
  return new Map(
    list.flatMap(({ team, by, lent }) => {
      if (!names.includes(team)) return []
      const found = newest.get(team)
      const left = `${by ?? 'the person who added it'} as a member of its scope`
      const lacks = lent ? (found ? whatLacks(needs.get(found.sha256), offers) : 'a published version') : left
      return lacks === null ? [] : [[team, lacks] as const]
    }),
  )
}

/** The most versions whose needs are kept. */
const MOST_KEPT = 2_000
/** What versions need, by their digests. It may be large, and never changes. */
const kept = new WeakMap<Store['commits'], Map<string, Needs>>()

/** What these versions need. Only what is not known is read. */
async function needsOf(store: Store, versions: readonly Version[]): Promise<ReadonlyMap<string, Needs>> {
  let known = kept.get(store.commits)
  if (!known || known.size > MOST_KEPT) {
    known = new Map()
    kept.set(store.commits, known)
  }
  const found = new Map<string, Needs>()
  const unknown: Version[] = []
  for (const version of versions) {
    const needs = known.get(version.sha256)
    if (needs) found.set(version.sha256, needs)
    else unknown.push(version)
  }
  if (unknown.length === 0) return found
  const names = JSON.stringify(unknown.map(({ name }) => name))
  const digests = JSON.stringify(unknown.map(({ sha256 }) => sha256))
  for (const { sha256, ...needs } of await needsOfVersions(store, store.db, { names, digests })) {
    found.set(sha256, needs)
    // A version from before they were recorded gets them later.
    if (needs.needs) known.set(sha256, needs)
  }
  return found
}

/** What a team lacks on every daemon, in words; null where one could run it. */
function whatLacks(version: Needs | undefined, offers: readonly Candidate[]): string | null {
  if (!version?.needs) return null
  const { needs, environments } = version
  const wanted = jobNeeds(needs, null, environments?.default ?? null)
  const each = offers.map(offer => {
    const missing = missingNeeds(wanted, offer)
    const unready = unreadyAgents(wanted, offer).map(agent => `agent ${agent} that its doctor finds ready`)
    return { offer, lacks: [...new Set([...missing, ...unready])] }
  })
  const [closest] = each.toSorted((one, other) => one.lacks.length - other.lacks.length)
  if (closest!.lacks.length === 0) return null
  const words = listed(closest!.lacks)
  return offers.length === 1 ? words : `${words} (on ${nameAmong(closest!.offer, offers)}, which lacks least)`
}

const offersOf = prepared(({ daemons }, db, slot: Slot<'realmId'>) => {
  const { id, name, labels, agents, workspaces, environments } = daemons
  return db
    .select({ id, name, labels, agents, workspaces, environments })
    .from(daemons)
    .where(and(eq(daemons.realm_id, slot('realmId')), isNull(daemons.removed_at), isNotNull(daemons.approved_at)))
})

const versionsOfTeams = prepared((store, db, slot: Slot<'names'>) => {
  const { name, version, sha256, yanked_at } = store.packages
  return db
    .select({ name, version, sha256 })
    .from(store.packages)
    .where(and(isAmong(store, name, slot('names')), isNull(yanked_at)))
})

const needsOfVersions = prepared((store, db, slot: Slot<'names' | 'digests'>) => {
  const { name, sha256, needs, environments } = store.packages
  return db
    .select({ sha256, needs, environments })
    .from(store.packages)
    .where(and(isAmong(store, name, slot('names')), isAmong(store, sha256, slot('digests'))))
})
