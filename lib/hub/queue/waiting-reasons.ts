// What waiting jobs wait for, as text for people.

import { and, eq, gt, isNotNull, isNull } from 'drizzle-orm'
import { prepared, type Slot } from '../../../db/hub/prepared.ts'
import { listed } from '../../text/spelling.ts'
import { awaitsApproval, type DaemonRow, nameAmong, ONLINE_MS, statusOf, whyIdle } from '../access/daemons.ts'
import type { Hub } from '../core/hub.ts'

import type { JobRow } from '../core/job-rows.ts'
import { describeKeyWait } from './concurrency-keys.ts'
import { describeNeeds, type JobNeeds, missingNeeds } from './job-needs.ts'

/** The daemons that a message names. */
const MOST_NAMED = 5

/**
 * Says of the waiting jobs of a realm what each waits for, as words for people. Null when a daemon that may take the
 * job is online and nothing keeps it from that but other work.
 */
export async function waitingReasons(
  hub: Hub,
  realmId: string,
): Promise<(job: Pick<JobRow, 'kind' | 'daemon_id' | 'needs'>) => string | null> {
  const { store, memo } = hub
  const rows = await memo.get(`daemons of realm ${realmId}`, () => daemonsOf(store, store.db, { realmId }))
  const named = (row: DaemonRow) => nameAmong(row, rows)
  const online = rows.filter(row => statusOf(hub, row) === 'online')
  return ({ kind, daemon_id, needs }) => {
    const meant = online.filter(row => daemon_id === null || row.id === daemon_id)
    const fitting = meant.filter(row => missingNeeds(needs, row).length === 0)
    const approved = fitting.filter(row => row.approved_at !== null)
    // One that a person has paused comes last.
    const reasons = approved
      .toSorted((a, b) => Number(a.paused) - Number(b.paused))
      .map(row => whyIdle(hub, row, kind, named(row)))
    if (reasons.includes(null)) return null
    if (reasons.length > 0) return reasons[0]!
    if (fitting.length > 0) return awaitsApproval(named(fitting[0]!))
    if (daemon_id !== null) {
      const daemon = rows.find(row => row.id === daemon_id)
      if (!daemon) return `daemon ${daemon_id}`
      const missing = missingNeeds(needs, daemon)
      return missing.length > 0
        ? `${listed(missing)} on daemon ${named(daemon)}`
        : `daemon ${named(daemon)}, which is ${statusOf(hub, daemon)}`
    }
    if (needs === null) return 'a daemon that is online'
    const nowhere = describeMissingWorkspace(needs, rows)
    if (online.length === 0) return `a daemon that is online and has ${describeNeeds(needs)}${nowhere}`
    const there = `online ${online.length === 1 ? 'is' : 'are'} ${joinNames(online.map(named))}`
    return `a daemon with ${describeNeeds(needs)}; ${there}${nowhere}`
  }
}

/** What a job waits for that waited in an older copy of the database. */
export function describeHold(
  { lineage }: Hub,
  job: Pick<JobRow, 'copy_id' | 'realm_id' | 'daemon_id' | 'needs'>,
): string {
  const silent = lineage.awaitedDaemons(job)
  if (silent.length === 0) return 'the hub to trust its database again'
  const names = joinNames(silent)
  const [who, they] = silent.length === 1 ? ['daemon', 'it has'] : ['daemons', 'they have']
  return `${who} ${names} to report what ${they} executed since the copy of the database of this hub was made`
}

/** That no daemon, online or not, offers the workspace of a job. Empty where one does, or the job names none. */
function describeMissingWorkspace({ workspace }: JobNeeds, rows: readonly DaemonRow[]): string {
  if (workspace === null || rows.some(row => row.workspaces.includes(workspace))) return ''
  return `; no daemon offers workspace ${workspace}: \`workspaces add FOLDER --offer\` on its machine does`
}

/**
 * The same of one job. Most jobs wait for nothing, which a few daemons show that are ready to take it. All daemons of the
 * realm are read only when none of those is.
 */
export async function waitingReasonOf(
  hub: Hub,
  job: Pick<JobRow, 'realm_id' | 'kind' | 'daemon_id' | 'needs'>,
): Promise<string | null> {
  const { store, memo, lived } = hub
  const since = lived() - ONLINE_MS
  const ready = { realmId: job.realm_id, since, most: MOST_ASKED }
  const some = await memo.get(`ready daemons of realm ${job.realm_id}`, () => readyDaemons(store, store.db, ready))
  const online = some.filter(({ last_seen_at }) => last_seen_at > since)
  const meant = online.filter(({ id }) => job.daemon_id === null || id === job.daemon_id)
  const takes = (row: DaemonRow) =>
    whyIdle(hub, row, job.kind, row.name) === null && missingNeeds(job.needs, row).length === 0
  if (meant.some(takes)) return null
  return (await waitingReasons(hub, job.realm_id))(job)
}

/** What a job waits for by now, in words that follow "waits for"; null when it waits for nothing that is known. */
export async function describeWait(hub: Hub, job: JobRow): Promise<string | null> {
  if (job.state === 'blocked') return describeKeyWait(hub, hub.store.db, job.run_id)
  if (job.state === 'held') return describeHold(hub, job)
  return job.state === 'waiting' ? waitingReasonOf(hub, job) : null
}

/** How many daemons are asked before all of the realm are read. */
const MOST_ASKED = 20

/** Daemons that are online and take jobs. */
const readyDaemons = prepared(({ daemons }, db, slot: Slot<'realmId' | 'since' | 'most'>) =>
  db
    .select()
    .from(daemons)
    .where(
      and(
        eq(daemons.realm_id, slot('realmId')),
        gt(daemons.last_seen_at, slot('since')),
        isNull(daemons.removed_at),
        isNotNull(daemons.approved_at),
        eq(daemons.paused, false),
      ),
    )
    .limit(slot('most')),
)

const daemonsOf = prepared(({ daemons }, db, slot: Slot<'realmId'>) =>
  db
    .select()
    .from(daemons)
    .where(and(eq(daemons.realm_id, slot('realmId')), isNull(daemons.removed_at)))
    .orderBy(daemons.name, daemons.id),
)

function joinNames(names: readonly string[]): string {
  const more = names.length - MOST_NAMED
  return more > 0 ? `${names.slice(0, MOST_NAMED).join(', ')} and ${more} more` : names.join(', ')
}
