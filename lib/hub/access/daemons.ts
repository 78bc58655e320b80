// Daemons as the hub sees them. A daemon is bound to the token that registered it, and counts as alive while it calls.

import { and, eq, gt, isNull, type SQL, sql } from 'drizzle-orm'
import type { Static } from 'typebox'
import { prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import type { Start } from '../../wire/calls/daemon-link.ts'
import {
  type Bulletin,
  movedDaemon,
  PROTOCOL,
  type Remembered,
  removedDaemon,
  unknownDaemon,
} from '../../wire/protocol.ts'
import type { Daemon } from '../../wire/records/hub-records.ts'
import type { JobKind } from '../../wire/records/jobs.ts'
import type { Hub } from '../core/hub.ts'
import { isBelieved } from '../core/hub-clock.ts'
import type { RealmFacts } from './access-list.ts'
import type { RealmCaller } from './callers.ts'

export type DaemonRow = Tables['daemons']['$inferSelect']

export const ONLINE_MS = 45_000
const STALE_MS = 86_400_000
/** The runs of a daemon that is silent for this long are shown as `crashed` until it calls again. */
export const CRASHED_MS = 300_000

export type DaemonStatus = Static<typeof Daemon>['status']

export function statusOf({ lastSeen, lived }: Hub, daemon: DaemonRow): DaemonStatus {
  if (daemon.removed_at !== null) return 'removed'
  const silent = lived() - lastSeen.lastCallOf(daemon).lived
  return silent < ONLINE_MS ? 'online' : silent < STALE_MS ? 'stale' : 'offline'
}

/** The condition that a daemon was heard of at `now`, in lived time, by what its row says. */
export const isOnline = ({ daemons }: Pick<Store, 'daemons'>, now: number): SQL =>
  gt(daemons.last_seen_at, now - ONLINE_MS)

/** The same as `statusOf` for daemons that were not removed. */
export const statusColumn = (store: Pick<Store, 'daemons'>, now: number): SQL<DaemonStatus> =>
  sql`CASE WHEN ${isOnline(store, now)} THEN 'online'
    WHEN ${gt(store.daemons.last_seen_at, now - STALE_MS)} THEN 'stale' ELSE 'offline' END`

/** `tokenEnd`: when its realm token expires. */
export function daemonRecord(hub: Hub, daemon: DaemonRow, tokenEnd?: number | null) {
  const {
    id,
    token_id: _,
    epoch: __,
    acked_seq: ___,
    stale_at: ____,
    start: _____,
    called_at: ______,
    kinds: _______,
    ...rest
  } = daemon
  const { approved_at, ...row } = rest
  const standing = hub.lastSeen.standingOf(daemon)
  return {
    id,
    daemon_id: id,
    ...row,
    labels: row.labels ?? {},
    accounts: row.accounts ?? [],
    environments: row.environments ?? [],
    status: statusOf(hub, daemon),
    approved: approved_at !== null,
    standing,
    ...(tokenEnd !== undefined && { token_expires_at: tokenEnd }),
    clock_offset: hub.clocks.get(id) ?? standing?.clock_ms ?? null,
    last_seen_at: hub.lastSeen.lastCallOf(daemon).at,
  }
}

/** Refuses a protocol version that this hub does not speak. The error says which side to upgrade. */
export function checkProtocol(protocol: number | undefined): void {
  if (protocol === undefined || protocol === PROTOCOL) return
  const side = protocol > PROTOCOL ? 'hub' : 'daemon'
  throw new CadreError(
    'conflict',
    `the daemon speaks protocol ${protocol}, but this hub speaks ${PROTOCOL}: upgrade the ${side}`,
  )
}

/** The daemon that calls. Throws 404 when it is unknown, and 403 when it is bound to another token. */
export async function callingDaemon(
  hub: Hub,
  caller: RealmCaller,
  // Taking the rest of a body as another object would cost each heartbeat a copy of it.
  body: { daemon_id: string; memory?: Remembered | undefined } & Start,
): Promise<DaemonRow> {
  const { daemon_id: id, memory } = body
  const row = await (caller.daemonNamed(id) ?? knownDaemon(hub, id))
  refuseAbsent(id, row)
  if (row.token_id !== caller.token.id) {
    throw new CadreError('forbidden', `daemon ${id} is registered with another token; register it with this one`)
  }
  caller.within(row.realm_id)
  refuseMoved(hub, row, body)
  const last = hub.lastSeen.lastCallOf(row)
  const wasSilent = hub.lastSeen.noteDaemonCall(id).lived - last.lived >= ONLINE_MS
  // Other hubs read this from the database. That a daemon is back is written at once; that it is still there, every few
  // seconds.
  if (wasSilent) await hub.lastSeen.flush()
  const comparing = hub.lineage.compareCount(row, memory)
  if (comparing) await comparing
  return row
}

/**
 * Throws 409 for a start of the home that is not the latest. Of two with one number, the one that called first goes on. A
 * daemon that does not say which start it is is never refused.
 */
export function refuseMoved({ log }: Hub, { id, name, hostname, ...known }: DaemonRow, given: Start): void {
  if (known.starts === null || given.starts === undefined || given.starts > known.starts) return
  const isOther = known.start !== null && given.start !== undefined && given.start !== known.start
  if (given.starts >= known.starts && !isOther) return
  log.warn('a daemon is refused, because its home was started at another place since', {
    ...{ daemon: id, name, host: hostname, starts: known.starts, refused: given.starts },
  })
  throw movedDaemon(id, hostname)
}

/** Whether this start of the home is later than the one that the hub knows. */
export const isLaterStart = ({ starts: known }: DaemonRow, { starts }: Start): boolean =>
  starts !== undefined && (known === null || starts > known)

/** Throws 404 when a daemon is unknown or was removed. */
export function refuseAbsent(id: string, row: DaemonRow | undefined): asserts row is DaemonRow {
  if (!row) throw unknownDaemon(id)
  if (row.removed_at !== null) throw removedDaemon(id)
}

/** The daemon, from the memo if it is there. */
export const knownDaemon = (hub: Hub, id: string) =>
  hub.memo.get(`daemon ${id}`, () => findDaemon(hub, hub.store.db, id))

export async function findDaemon({ store }: Hub, db: Db, id: string): Promise<DaemonRow | undefined> {
  const [row] = await daemonOf(store, db, { id })
  return row
}

const daemonOf = prepared(({ daemons }, db, slot: Slot<'id'>) =>
  db
    .select()
    .from(daemons)
    .where(eq(daemons.id, slot('id'))),
)

/** The name of a daemon for people, with the beginning of its id where another one of its realm has the same name. */
export function nameAmong(
  daemon: Pick<DaemonRow, 'id' | 'name'>,
  realm: readonly Pick<DaemonRow, 'id' | 'name'>[],
): string {
  const { id, name } = daemon
  return realm.some(other => other.name === name && other.id !== id) ? `${name} (${id.slice(0, 8)})` : name
}

/** Like `nameAmong`, for one daemon. */
export async function uniqueName({ store: { daemons } }: Hub, db: Db, daemon: DaemonRow): Promise<string> {
  const { realm_id, name } = daemon
  const same = and(eq(daemons.realm_id, realm_id), eq(daemons.name, name), isNull(daemons.removed_at))
  return nameAmong(daemon, await db.select({ id: daemons.id, name: daemons.name }).from(daemons).where(same))
}

/**
 * What register and heartbeat both return: the keys, whether the daemon gets jobs, and the team list if it has changed.
 */
export function bulletin(
  hub: Hub,
  facts: RealmFacts,
  { approved_at, paused, examine, examined }: Pick<DaemonRow, 'approved_at' | 'paused' | 'examine' | 'examined'>,
  knownTeams: unknown,
): Bulletin {
  const reply: Bulletin = {
    approved: approved_at !== null,
    paused,
    artifacts: hub.artifacts !== null,
    dispatch_public_key: facts.keys[0]!.pem,
    dispatch_keys: facts.keys,
    acl_version: facts.aclVersion,
    teams_version: facts.teamsVersion,
    clock_believed: isBelieved(hub.clock),
  }
  if (examine !== null && examine !== examined) reply.examine = examine
  if (knownTeams !== facts.teamsVersion) reply.teams = facts.teams
  return reply
}

/** What has to happen before a daemon that is not approved gets jobs. It completes a sentence that says what waits. */
export const awaitsApproval = (name: string): string =>
  `daemon ${name} to be approved by an operator of its realm (daemons/approve)`

/** What has to happen before a paused daemon gets runs. It completes a sentence that says what waits. */
const awaitsEndOfPause = (name: string): string =>
  `daemon ${name}, which an operator has paused (daemons/update with \`paused: false\`)`

/** A daemon whose disk is full polls at least every second. A poll that is older than this shows nothing any more. */
const FULL_DISK_MS = 10_000

/**
 * What keeps an online and approved daemon from taking a job; null when nothing does. It completes a sentence that says
 * what waits. Orders come to a daemon that takes no runs, too.
 */
export function whyIdle(hub: Hub, daemon: DaemonRow, kind: JobKind, name: string): string | null {
  if (daemon.stuck) return `daemon ${name}, whose process stands still`
  if (kind === 'cancel' || kind === 'decide') return null
  if (daemon.paused) return awaitsEndOfPause(name)
  const fullSince = hub.fullDisks.get(daemon.id) ?? Number.NEGATIVE_INFINITY
  return hub.lived() - fullSince < FULL_DISK_MS ? `daemon ${name}, whose disk is full` : null
}

/** The only realm of a token, for bodies that name no realm. Throws when the token grants none or several. */
export function onlyRealm(realmIds: string[]): string {
  if (realmIds.length === 1) return realmIds[0]!
  if (realmIds.length === 0) throw new CadreError('forbidden', 'the realm of this token was deleted; mint a new one')
  throw new CadreError('invalid_request', 'set `realm_id`: this token grants several realms', {
    details: [{ path: '/realm_id', message: 'is required' }],
  })
}
