// What people see of the triggers of a realm: what they did and will do.

import { inArray, type SQL } from 'drizzle-orm'
import type { Static } from 'typebox'
import type { Db } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { chainWords } from '../../firing/chain-kind.ts'
import { previewOfHook } from '../../firing/hook-preview.ts'
import {
  firingRecord,
  named,
  SHOWN,
  scheduleIn,
  scheduleOf,
  triggerRecord,
  type Which,
  withDelivery,
} from '../../firing/shown.ts'
import { bareTeam } from '../../firing/trigger.ts'
import { previewOf } from '../../triggers/schedule/preview.ts'
import { within } from '../../wire/budget.ts'
import type { ListRealmFirings, ListRealmTriggers, PreviewRealmTrigger } from '../../wire/calls/triggers.ts'
import { page } from '../../wire/page.ts'
import type { FiringRecord, PreviewRecord, RealmTriggerRecord } from '../../wire/records/triggers.ts'
import type { RunState } from '../../wire/states.ts'
import { record } from '../access/audit.ts'
import type { UserCaller } from '../access/callers.ts'
import { realmsReached } from '../access/token-reach.ts'
import type { Hub } from '../core/hub.ts'
import { countOf, countUpTo } from '../core/list-total.ts'
import { listedPackage } from '../queue/dispatch.ts'
import { firingsBeginning, firingsThat, listFirings, newestFirings } from './firing-table.ts'
import { sentWith } from './hook-table.ts'
import { inRealm } from './in-realm.ts'
import { ownerText } from './problem.ts'
import {
  byId,
  byName,
  findTrigger,
  type Look,
  listTriggers,
  ofKind,
  ofRealm,
  ofTeam,
  type RealmTrigger,
  takeTrigger,
  thoseThere,
} from './trigger-table.ts'

/** Where no zone is written. */
export const ZONE = 'UTC'

/** By its id, or by its realm and name. */
export interface RealmWhich extends Which {
  realm_id?: string | undefined
}

/** Which trigger a body names, as a condition. Throws `invalid_request` unless it is one of the two ways. */
function whichOf({ store }: Hub, { realm_id, ...which }: RealmWhich): SQL {
  const { trigger_id, name } = named(which)
  if (trigger_id !== undefined) return byId(store, trigger_id)
  return byName(store, realmGiven({ realm_id }).realm_id, name!)
}

/** A body that names a trigger. Throws `invalid_request` unless it says the realm. */
export function realmGiven<B extends { realm_id?: string | undefined }>(body: B): B & { realm_id: string } {
  const { realm_id } = body
  if (realm_id !== undefined) return { ...body, realm_id }
  throw new CadreError('invalid_request', '`name` needs `realm_id`', {
    details: [{ path: '/realm_id', message: 'is required beside `name`' }],
  })
}

const missing = ({ trigger_id, name }: Which): CadreError =>
  new CadreError('not_found', `no trigger ${trigger_id ?? name} that you may see`)

/** Whether a body names another realm than that of the trigger. */
const isElsewhere = ({ realm_id }: RealmTrigger, which: RealmWhich): boolean =>
  which.realm_id !== undefined && which.realm_id !== realm_id

/** The trigger that a body names, if the caller may see it. Throws `not_found`. */
async function visible(hub: Hub, caller: UserCaller, which: RealmWhich, evenRemoved = false): Promise<RealmTrigger> {
  const { store } = hub
  if (which.realm_id !== undefined) await caller.realm(which.realm_id)
  const found = await findTrigger(store, store.db, whichOf(hub, which), {
    evenRemoved: evenRemoved && which.trigger_id !== undefined,
  })
  if (!found || isElsewhere(found, which) || (await caller.realmRole(found.realm_id)) === null) throw missing(which)
  return found
}

/** The trigger that a body names, which the caller may change, in a transaction. Throws `not_found` and `forbidden`. */
export async function changeable(hub: Hub, caller: UserCaller, which: RealmWhich, tx: Db): Promise<Look> {
  if (which.realm_id !== undefined) await caller.realm(which.realm_id, 'operator', tx)
  const found = await findTrigger(hub.store, tx, whichOf(hub, which))
  if (!found || isElsewhere(found, which)) throw missing(which)
  await caller.realm(found.realm_id, 'operator', tx).catch(error => {
    throw error instanceof CadreError && error.code === 'not_found' ? missing(which) : error
  })
  return { ...(await takeTrigger(hub, tx, found.id))!, hub, tx }
}

/** Writes what was done to a trigger into the audit log. */
export function auditTrigger({ hub, tx, trigger, realm }: Look, caller: UserCaller, action: string, of?: string) {
  const target = `${trigger.name}: ${of ?? trigger.spec.team}`
  return record(hub, tx, caller, { action, target, org_id: realm.org_id, realm_id: realm.id })
}

export async function getTrigger(hub: Hub, caller: UserCaller, which: RealmWhich): Promise<RealmTriggerRecord> {
  const { id } = await visible(hub, caller, which)
  const [found] = await listTriggers(hub.store, hub.store.db, byId(hub.store, id), { limit: 1, offset: 0 })
  if (!found) throw missing(which)
  return recordOf(hub, found)
}

export async function listTriggersFor(hub: Hub, caller: UserCaller, body: Static<(typeof ListRealmTriggers)['body']>) {
  const { store } = hub
  if (body.realm_id) await caller.realm(body.realm_id)
  const reached = store.db.select({ id: store.realms.id }).from(store.realms).where(realmsReached(store, caller))
  const inRealm = body.realm_id ? ofRealm(store, body.realm_id) : inArray(store.triggers.realm_id, reached)
  const where = thoseThere(
    store,
    inRealm,
    body.kind && ofKind(store, body.kind),
    body.team === undefined ? undefined : ofTeam(store, bareTeam(body.team)),
  )
  const rows = await listTriggers(store, store.db, where, page(body))
  const records = await Promise.all(rows.map(row => recordOf(hub, row)))
  return { triggers: within(records), total: await countOf(store.db, store.triggers, where) }
}

/** `mayStart`: whether the owner may. Without, the trigger is broken before an occasion says so. */
export async function recordOf(
  hub: Hub,
  { trigger, owner, mayStart }: { trigger: RealmTrigger; owner: string; mayStart: boolean },
  db = hub.store.db,
): Promise<RealmTriggerRecord> {
  const { store, now } = hub
  const last = await newestFirings(store, db, firingsThat(store, trigger.id, {}), SHOWN)
  const isOrphan = !mayStart && trigger.problem === null
  const problem = isOrphan ? { reason: 'owner', text: ownerText(owner), since: now() } : trigger.problem
  const { requires, priority, queue_timeout } = trigger.spec
  const record = triggerRecord({ ...trigger, problem }, last, now())
  return {
    ...record,
    last: await withRuns(store, db, record.last),
    ...(await inRealm(trigger).shown?.(hub, db, trigger)),
    ...{ realm_id: trigger.realm_id, owner, requires, priority, queue_timeout },
  }
}

/** With what became of their runs. */
async function withRuns(
  store: Hub['store'],
  db: Hub['store']['db'],
  records: readonly FiringRecord[],
): Promise<FiringRecord[]> {
  const { runs } = store
  const ids = records.flatMap(({ run_ids }) => run_ids)
  const of = { id: runs.run_id, state: runs.state }
  const rows = ids.length === 0 ? [] : await db.select(of).from(runs).where(inArray(runs.run_id, ids))
  const states = new Map(rows.map(({ id, state }) => [id as string, state as RunState]))
  return records.map(record => ({ ...record, run_state: states.get(record.run_id ?? '') ?? null }))
}

/** The slots of a trigger, or of a schedule that is not added yet; or what a hook would do with a delivery. */
export async function previewFor(
  hub: Hub,
  caller: UserCaller,
  body: Static<(typeof PreviewRealmTrigger)['body']>,
): Promise<PreviewRecord> {
  const { trigger_id, name, realm_id, after = hub.now(), until = Infinity, limit = 10, ...fields } = body
  const isAdded = trigger_id !== undefined || name !== undefined
  const known = isAdded ? await visible(hub, caller, { trigger_id, name, realm_id }) : null
  const realmId = known?.realm_id ?? realm_id
  const realm = realmId === undefined ? null : await caller.realm(realmId)
  if (known?.kind === 'hook' || fields.scheme !== undefined) {
    const declaredBy = async (team: string) =>
      realm && (await listedPackage(hub, hub.store.db, realm, team, caller)).inputs
    return previewOfHook(known, fields, { declaredBy, now: hub.now() })
  }
  if (typeof after === 'string') return { slots: [], notes: [], words: chainWords({ ...fields, after }) }
  const schedule = known ? scheduleIn(known) : scheduleOf(fields, { tz: ZONE, now: hub.now() })
  return previewOf(schedule, after, until, limit)
}

/** Of one trigger, or those of all triggers that the caller may see whose id begins so. */
export async function firingsFor(hub: Hub, caller: UserCaller, body: Static<(typeof ListRealmFirings)['body']>) {
  const { store } = hub
  const { state, reason, since, until, begins, trigger_id, name, realm_id } = body
  if (begins !== undefined) {
    const found = await firingsBeginning(store, begins.toLowerCase(), realmsReached(store, caller), page(body))
    const records = found.map(row => firingRecord(row.firing, row.name))
    return { firings: await withRuns(store, store.db, records), total: found.length }
  }
  const trigger = await visible(hub, caller, { trigger_id, name, realm_id }, true)
  const where = firingsThat(store, trigger.id, {
    ...(state !== undefined && { state }),
    ...(reason !== undefined && { reason }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  })
  const rows = await listFirings(store, store.db, where, page(body))
  const mask = body.with_body && (await inRealm(trigger).mask?.(hub, store.db, trigger))
  const firings = await Promise.all(
    rows.map(async (firing): Promise<FiringRecord> => {
      const record = firingRecord(firing, trigger.name)
      return mask ? withDelivery(record, firing, await sentWith(hub, store.db, firing.id), mask) : record
    }),
  )
  return {
    firings: within(await withRuns(store, store.db, firings)),
    ...(await countUpTo(store.db, store.firings, where)),
  }
}
