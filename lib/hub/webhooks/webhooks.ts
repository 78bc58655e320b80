// Webhooks of a realm: what happened in the realm becomes a message to each of its webhooks that asks for that event.
// The messages are written in the transaction of the change, so that none is lost and none is written twice. A webhook whose
// owner is no admin of the realm any more gets none until another admin takes it over.
// webhook-delivery.ts sends them. A message names what changed; whoever wants more asks the hub with a token.

import { createHash } from 'node:crypto'
import { and, eq, inArray, isNotNull, isNull, like, lt, not, or, sql } from 'drizzle-orm'
import { prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Tables } from '../../../db/hub/schema.ts'
import { afterCommit, type Db } from '../../../db/hub/store.ts'
import { together } from '../../../db/hub/together.ts'
import type { JsonObject } from '../../json.ts'
import type { HookEvent } from '../../wire/records/hooks.ts'
import { UNKNOWN_STARTER } from '../../wire/records/started-by.ts'
import { isOnline } from '../access/daemons.ts'
import { delivers } from '../access/owners.ts'
import type { Hub } from '../core/hub.ts'
import { tellOfRuns } from '../tells/tells.ts'

type RunRow = Tables['runs']['$inferSelect']

/** The topic that wakes the senders of all hubs. */
export const WEBHOOK_TOPIC = 'webhooks'

interface RealmEvent {
  event: HookEvent
  /** The run, the daemon or the trigger. */
  subject: string
  data: JsonObject
  /** Of a run: the attempt, and when it happened as far as that is known. */
  attempt?: number
  at?: number | null
}

/** Writes the messages to the webhooks of a realm about what happened in it. */
export async function queueMessages(
  hub: Hub,
  tx: Db,
  realmId: string,
  happenings: readonly RealmEvent[],
): Promise<void> {
  if (happenings.length === 0) return
  const hooks = await hooksOf(hub.store, tx, { realmId })
  const now = hub.now()
  const next_at = hub.lived()
  const rows = happenings.flatMap(({ event, subject, data, attempt, at }) => {
    const asking = hooks.filter(({ events }) => events.includes(event))
    const body = JSON.stringify({ type: event, timestamp: new Date(now).toISOString(), data })
    const message = { event, subject, body, state: 'waiting' as const, attempts: 0, next_at, created_at: now }
    const doubt = doubtOf(hub, realmId, at ?? null)
    return asking.map(({ id }) => ({
      ...{ webhook_id: id, ...message, ...doubt },
      id: attempt === undefined ? `msg_${crypto.randomUUID()}` : messageIdOf(id, subject, event, attempt),
    }))
  })
  await insertDeliveries(hub, tx, await withoutDuplicates(hub, tx, rows))
}

/** The same id for each message about one event of a run, so that a receiver recognizes one that came from a lost commit. */
function messageIdOf(...of: [webhook: string, run: string, event: string, attempt: number]): string {
  return `msg_${createHash('sha256').update(of.join(' ')).digest('hex').slice(0, 32)}`
}

type NewDelivery = Tables['webhookDeliveries']['$inferInsert']

/**
 * Leaves out messages that exist. A run that waits for a person again in the same attempt gets another message, with an id
 * of its own.
 */
async function withoutDuplicates({ store }: Hub, tx: Db, rows: NewDelivery[]): Promise<NewDelivery[]> {
  const { webhookDeliveries: deliveries } = store
  if (rows.length === 0) return rows
  const ids = rows.map(({ id }) => id)
  const found = await tx.select({ id: deliveries.id }).from(deliveries).where(inArray(deliveries.id, ids))
  const known = new Set(found.map(({ id }) => id))
  return rows.flatMap(row => {
    const isNew = !known.has(row.id)
    known.add(row.id)
    if (isNew) return [row]
    return row.event === 'run.awaiting_input' ? [{ ...row, id: `${row.id}_${crypto.randomUUID().slice(0, 8)}` }] : []
  })
}

/** A message about an event before an older copy was found may have been sent: it is recorded, and sent only on request. */
function doubtOf({ lineage, clock }: Hub, realmId: string, at: number | null) {
  const doubt = at === null ? null : lineage.doubtAt(realmId, at)
  if (doubt === null) return {}
  return doubt === 'unclear'
    ? { next_at: null }
    : { state: 'unknown' as const, next_at: null, finished_at: clock.keptSince() }
}

async function insertDeliveries(hub: Hub, tx: Db, rows: readonly Tables['webhookDeliveries']['$inferInsert'][]) {
  const { webhookDeliveries } = hub.store
  if (rows.length === 0) return
  for (let at = 0; at < rows.length; at += 500) await tx.insert(webhookDeliveries).values(rows.slice(at, at + 500))
  afterCommit(tx, () => hub.notifier.notify(WEBHOOK_TOPIC))
}

/** The webhooks of a realm whose owners may still have one. */
const hooksOf = prepared((store, db, slot: Slot<'realmId'>) => {
  const { webhooks } = store
  return db
    .select({ id: webhooks.id, events: webhooks.events })
    .from(webhooks)
    .where(and(eq(webhooks.realm_id, slot('realmId')), delivers(store)))
})

const RUN_EVENTS: Readonly<Record<string, HookEvent>> = {
  completed: 'run.completed',
  failed: 'run.failed',
  awaiting_input: 'run.awaiting_input',
}

type RunOfMessage = Pick<RunRow, 'run_id' | 'realm_id' | 'daemon_id' | 'run_name' | 'team' | 'version' | 'error'> &
  Pick<
    RunRow,
    'state' | 'reason' | 'attempt' | 'started_by' | 'created_at' | 'started_at' | 'completed_at' | 'deliveries'
  >

/** Writes the messages about new states of top runs of a realm, to webhooks and accounts. Sub-runs have none: their outcome shows in the run above. */
export async function queueRunMessages(
  hub: Hub,
  tx: Db,
  realmId: string,
  runs: readonly RunOfMessage[],
): Promise<void> {
  const happenings = runs.flatMap(run => {
    const event = RUN_EVENTS[run.state]
    if (!event) return []
    const { run_id, realm_id, daemon_id, run_name, team, version, state, reason, attempt, started_by } = run
    const { created_at, started_at, completed_at } = run
    const data = {
      run_id,
      realm_id,
      daemon_id,
      run_name,
      team,
      version,
      state,
      reason,
      attempt,
      started_by: started_by ?? UNKNOWN_STARTER,
    }
    const times = { created_at, started_at, completed_at }
    return [{ event, subject: run_id, data: { ...data, ...times }, attempt, at: completed_at ?? started_at }]
  })
  await together([queueMessages(hub, tx, realmId, happenings), tellOfRuns(hub, tx, realmId, runs)])
}

/** An entry of the audit log with its position in the chain of its org. */
type SealedEntry = Pick<Tables['audit']['$inferSelect'], 'at' | 'org_id' | 'realm_id' | 'action'> &
  Record<'chain' | 'hash', string> & { seq: number; position: number }

/**
 * Writes the messages about entries of the audit log to the webhooks that ask for them: those of the realm, and of an org those that belong
 * to none of its realms. Only people who administer the org may read its log, so a webhook gets messages as long as the person
 * who added it may.
 */
export async function queueAuditMessages(hub: Hub, tx: Db, entries: readonly SealedEntry[]): Promise<void> {
  const { webhooks, realms, users, orgMembers } = hub.store
  const orgs = [...new Set(entries.flatMap(({ org_id }) => (org_id === null ? [] : [org_id])))]
  if (orgs.length === 0) return
  const leads = inArray(orgMembers.role, ['owner', 'admin'])
  const membership = and(eq(orgMembers.org_id, realms.org_id), eq(orgMembers.user_id, users.id), leads)
  const hooks = await tx
    .select({ ...hookColumns(webhooks), org_id: realms.org_id })
    .from(webhooks)
    .innerJoin(realms, eq(realms.id, webhooks.realm_id))
    .innerJoin(users, eq(users.id, webhooks.created_by))
    .leftJoin(orgMembers, membership)
    .where(
      and(
        like(sql`${webhooks.events}`, '%"audit.%'),
        inArray(realms.org_id, orgs),
        isNull(users.suspended_at),
        or(eq(users.site_admin, true), isNotNull(orgMembers.role)),
      ),
    )
  const now = hub.now()
  const next_at = hub.lived()
  const timestamp = new Date(now).toISOString()
  const rows = entries.flatMap(({ position: _, ...entry }) => {
    const event = `audit.${entry.action}` as const
    const asking = hooks.filter(
      ({ events, realm_id, org_id, created_at }) =>
        (events.includes('audit.*') || events.includes(event)) &&
        (entry.realm_id === null ? entry.org_id === org_id : entry.realm_id === realm_id) &&
        created_at <= entry.at,
    )
    if (asking.length === 0) return []
    const body = JSON.stringify({ type: event, timestamp, data: entry })
    const subject = `${entry.chain} ${entry.seq}`
    const message = { event, subject, body, state: 'waiting' as const, attempts: 0, next_at, created_at: now }
    return asking.map(({ id }) => ({ id: `msg_${crypto.randomUUID()}`, webhook_id: id, ...message }))
  })
  await insertDeliveries(hub, tx, rows)
}

const hookColumns = ({ id, realm_id, events, created_at }: Tables['webhooks']) => ({ id, realm_id, events, created_at })

const STALE_AT_ONCE = 50

/** Finds the daemons that have become silent since the last look, and writes one message about each. */
export async function* queueStaleDaemonMessages(hub: Hub): AsyncGenerator<void> {
  const { daemons, db } = hub.store
  const silent = and(
    isNull(daemons.removed_at),
    not(isOnline(hub.store, hub.lived())),
    or(isNull(daemons.stale_at), lt(daemons.stale_at, daemons.last_seen_at)),
  )
  for (;;) {
    const some = await db.select({ id: daemons.id }).from(daemons).where(silent).limit(STALE_AT_ONCE)
    if (some.length === 0) return
    const ids = some.map(({ id }) => id)
    await hub.store.write(async tx => {
      const found = await tx
        .update(daemons)
        .set({ stale_at: hub.lived() })
        .where(and(silent, inArray(daemons.id, ids)))
        .returning()
      for (const daemon of found) {
        const { id, realm_id, name, hostname } = daemon
        const last_seen_at = hub.lastSeen.lastCallOf(daemon).at
        const data = { daemon_id: id, realm_id, name, hostname, last_seen_at }
        await queueMessages(hub, tx, realm_id, [{ event: 'daemon.stale', subject: id, data }])
      }
    })
    yield
  }
}
