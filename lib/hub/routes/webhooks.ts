// The webhooks of a realm. Its admins add and remove them, and its operators see them and what happened to their
// messages.

import { and, desc, eq, inArray, isNotNull, sql } from 'drizzle-orm'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db } from '../../../db/hub/store.ts'
import { bareHost, isAddress, isAllowed, isMetadataName, judge } from '../../agent/net/address.ts'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import { within } from '../../wire/budget.ts'
import {
  AddWebhook,
  ListDeliveries,
  ListWebhooks,
  RedeliverMessage,
  RemoveWebhook,
  TakeOverWebhook,
} from '../../wire/calls/webhooks.ts'
import { allows } from '../../wire/grants.ts'
import { page } from '../../wire/page.ts'
import { LACKS_GRANT } from '../../wire/reasons.ts'
import { isAuditEvent } from '../../wire/records/hook-events.ts'
import { SECRET_PREFIX } from '../../wire/records/hooks.ts'
import { answer } from '../access/answer.ts'
import { record } from '../access/audit.ts'
import type { UserCaller } from '../access/callers.ts'
import { hubKit } from '../access/kit.ts'
import { delivers } from '../access/owners.ts'
import type { Hub } from '../core/hub.ts'
import { timeOf } from '../core/hub-clock.ts'
import { countOf } from '../core/list-total.ts'
import { WEBHOOK_TOPIC } from '../webhooks/webhooks.ts'

/** Each event of a realm is sent to each of its webhooks, so their number multiplies the work of the hub. */
const MOST_OF_REALM = 10

type DeliveryRow = Tables['webhookDeliveries']['$inferSelect']

const ACTIVE = { state: 'active' as const, reason: null }
const STOPPED = { state: 'stopped' as const, reason: 'owner_lost_role' as const }

export function webhooks(hub: Hub) {
  const { store } = hub
  const { webhooks, webhookDeliveries: deliveries, users } = store

  /** A message for people: without its body. */
  const deliveryRecord = ({ body: _, next_at, finished_at, ...row }: DeliveryRow) => ({
    ...row,
    next_at: timeOf(hub, next_at),
    // A message is kept from this time, which is ahead of the clock if that was far ahead shortly before.
    finished_at: finished_at && Math.min(finished_at, hub.now()),
  })

  return resource('webhooks', hubKit(hub), [
    answer(AddWebhook, ({ body: { realm_id, url, events, secret = mintWebhookSecret() }, caller }) =>
      caller.write(async tx => {
        const realm = await caller.realm(realm_id, 'admin', tx)
        checkUrl(hub, url)
        if (events.some(isAuditEvent)) await mayReadAudit(caller, realm.org_id, tx)
        const ofRealm = eq(webhooks.realm_id, realm_id)
        if ((await countOf(tx, webhooks, ofRealm)) >= MOST_OF_REALM) {
          throw new CadreError('conflict', `realm ${realm.slug} has ${MOST_OF_REALM} webhooks, which is the maximum`)
        }
        const id = crypto.randomUUID()
        const webhook = { id, realm_id, url, events, created_at: hub.now(), created_by: caller.user.id }
        await tx.insert(webhooks).values({ ...webhook, secret: hub.sealer.seal(secret) })
        await record(hub, tx, caller, { action: 'realms/add_webhook', target: id, org_id: realm.org_id, realm_id })
        return { ...webhook, owner: caller.user.username, ...ACTIVE, secret }
      }),
    ),
    answer(ListWebhooks, async ({ body, caller }) => {
      await caller.realm(body.realm_id)
      const where = eq(webhooks.realm_id, body.realm_id)
      const { limit, offset } = page(body)
      const rows = await store.db
        .select({ webhook: webhooks, owner: users.username, active: sql<number | boolean>`${delivers(store)}` })
        .from(webhooks)
        .innerJoin(users, eq(users.id, webhooks.created_by))
        .where(where)
        .orderBy(webhooks.created_at, webhooks.id)
        .limit(limit)
        .offset(offset)
      return {
        webhooks: within(
          rows.map(({ webhook: { secret: _, ...row }, owner, active }) => ({
            ...row,
            owner,
            ...(active ? ACTIVE : STOPPED),
          })),
        ),
        total: await countOf(store.db, webhooks, where),
      }
    }),
    answer(RemoveWebhook, ({ body: { realm_id, id }, caller }) =>
      caller.write(async tx => {
        const realm = await caller.realm(realm_id, 'admin', tx)
        const gone = await tx
          .delete(webhooks)
          .where(and(eq(webhooks.id, id), eq(webhooks.realm_id, realm_id)))
          .returning({ id: webhooks.id })
        if (gone.length === 0) throw new CadreError('not_found', `realm ${realm.slug} has no webhook ${id}`)
        const entry = { action: 'realms/remove_webhook', target: id, org_id: realm.org_id, realm_id }
        await record(hub, tx, caller, entry)
        return { id, realm_id }
      }),
    ),
    answer(TakeOverWebhook, async ({ body: { realm_id, webhook_id, ...body }, caller }) => {
      const id = namedId(body.id, webhook_id, '`id` and `webhook_id` name the webhook')
      const taken = await caller.write(async tx => {
        const [found] = await tx.select().from(webhooks).where(eq(webhooks.id, id))
        // Without the realm in the body, the error for a webhook that the caller may not see is that for a missing one.
        const realm = await caller.realm(realm_id ?? found?.realm_id ?? '', 'admin', tx).catch(error => {
          if (realm_id !== undefined || !(error instanceof CadreError && error.code === 'not_found')) throw error
          throw new CadreError('not_found', `no webhook ${id} that you may see`)
        })
        if (found?.realm_id !== realm.id) throw new CadreError('not_found', `realm ${realm.slug} has no webhook ${id}`)
        if (found.events.some(isAuditEvent)) await mayReadAudit(caller, realm.org_id, tx)
        await tx.update(webhooks).set({ created_by: caller.user.id }).where(eq(webhooks.id, id))
        const entry = { action: 'realms/webhook_take_over', target: id, org_id: realm.org_id, realm_id: realm.id }
        await record(hub, tx, caller, entry)
        const { secret: _, ...webhook } = found
        return { ...webhook, created_by: caller.user.id, owner: caller.user.username, ...ACTIVE }
      })
      hub.notifier.notify(WEBHOOK_TOPIC)
      return taken
    }),
    answer(RedeliverMessage, async ({ body: { realm_id, delivery_id, ...body }, caller }) => {
      const id = namedId(body.id, delivery_id, '`id` and `delivery_id` name the message')
      const sent = await caller.write(async tx => {
        const realm = await caller.realm(realm_id, 'operator', tx)
        const ids = tx.select({ id: webhooks.id }).from(webhooks).where(eq(webhooks.realm_id, realm_id))
        const again = { state: 'waiting' as const, attempts: 0, next_at: hub.lived(), finished_at: null, error: null }
        const over = and(eq(deliveries.id, id), inArray(deliveries.webhook_id, ids), isNotNull(deliveries.finished_at))
        const [row] = await tx.update(deliveries).set(again).where(over).returning()
        if (!row) throw new CadreError('not_found', `realm ${realm.slug} has no message ${id} that has ended`)
        const entry = { action: 'realms/redeliver_webhook', target: id, org_id: realm.org_id, realm_id }
        await record(hub, tx, caller, entry)
        return deliveryRecord(row)
      })
      hub.notifier.notify(WEBHOOK_TOPIC)
      return sent
    }),
    answer(ListDeliveries, async ({ body, caller }) => {
      await caller.realm(body.realm_id)
      const one = body.webhook_id === undefined ? undefined : eq(webhooks.id, body.webhook_id)
      const ofRealm = and(eq(webhooks.realm_id, body.realm_id), one)
      const ids = store.db.select({ id: webhooks.id }).from(webhooks).where(ofRealm)
      const where = inArray(deliveries.webhook_id, ids)
      const { limit, offset } = page(body)
      const rows = await store.db
        .select()
        .from(deliveries)
        .where(where)
        .orderBy(desc(deliveries.created_at), desc(deliveries.id))
        .limit(limit)
        .offset(offset)
      return {
        deliveries: rows.map(deliveryRecord),
        total: await countOf(store.db, deliveries, where),
      }
    }),
  ])
}

/** What two fields of a body name, one of which is given. */
function namedId(id: string | undefined, other: string | undefined, both: string): string {
  const given = id ?? other
  if (given === undefined || (other !== undefined && given !== other)) {
    throw new CadreError('invalid_request', `${both}; give one of them`)
  }
  return given
}

function mintWebhookSecret(): string {
  return SECRET_PREFIX + Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64')
}

/** Entries of the audit log are sent only if the caller could read them (audit/list). */
async function mayReadAudit(caller: UserCaller, orgId: number, tx: Db): Promise<void> {
  if (!allows(caller.token.grant, { orgs: 'admin' })) {
    const message = 'the events of the audit log take orgs admin, which the grant lacks'
    throw new CadreError('forbidden', message, { reason: LACKS_GRANT })
  }
  await caller.org(orgId, 'admin', tx)
}

/** Refuses what no attempt could reach. The addresses of a name are judged at each attempt, because they may change. */
function checkUrl({ webhookAllow }: Hub, text: string): void {
  const refuse = (message: string) =>
    new CadreError('invalid_request', `the webhook’s url ${message}`, { details: [{ path: '/url', message }] })
  const url = URL.parse(text)
  if (!url || !['http:', 'https:'].includes(url.protocol)) throw refuse('must be an http or https URL')
  if (url.username || url.password) throw refuse('must not contain credentials; messages are signed with the secret')
  const host = bareHost(url.hostname)
  const isPublic = isAddress(host) ? judge(host) === 'public' : !isMetadataName(host)
  if (!isPublic && !isAllowed(host, host, webhookAllow)) {
    throw refuse('must have a public address; an operator of the hub may allow others (CADRE_WEBHOOK_ALLOW)')
  }
}
