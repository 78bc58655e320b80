// The webhooks of a realm. Its admins add and remove them, and its operators see them and what happened to their
// messages.

import { and, desc, eq, inArray, isNotNull, sql } from 'drizzle-orm'
import { Elysia } from 'elysia'
import type { Db } from '../../../db/hub/store.ts'
import { bareHost, isAddress, isAllowed, isMetadataName, judge } from '../../agent/net/address.ts'
import { CadreError } from '../../error.ts'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { within } from '../../wire/budget.ts'
import { allows } from '../../wire/grants.ts'
import { listBody, listOf, page } from '../../wire/page.ts'
import { Text, Uuid } from '../../wire/parts.ts'
import { isAuditEvent } from '../../wire/records/hook-events.ts'
import { HookEvent, Webhook, WebhookDelivery } from '../../wire/records/hooks.ts'
import { withMore } from '../../wire/records/hub-records.ts'
import { record } from '../access/audit.ts'
import type { UserCaller } from '../access/callers.ts'
import { hubKit } from '../access/kit.ts'
import { delivers } from '../access/owners.ts'
import type { Hub } from '../core/hub.ts'
import { countOf } from '../core/list-total.ts'
import { SECRET_PREFIX } from '../webhooks/webhook-delivery.ts'
import { WEBHOOK_NEWS } from '../webhooks/webhooks.ts'

/** Each event of a realm is told to each of its webhooks, so their number multiplies the work of the hub. */
const MOST_OF_REALM = 10

const ACTIVE = { state: 'active' as const, reason: null }
const STOPPED = { state: 'stopped' as const, reason: 'owner_lost_role' as const }
const BOTH_IDS = '`id` and `webhook_id` name the webhook; give one of them'

/** `whsec_` and 24 to 64 bytes in base64. */
const Secret = Type.String({
  pattern: `^${SECRET_PREFIX}([A-Za-z0-9+/]{4}){8,21}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`,
})

export function webhooks(hub: Hub) {
  const { store } = hub
  const { webhooks, webhookDeliveries: deliveries, users } = store

  return new Elysia({ name: 'webhooks', prefix: '/v1/realms' })
    .use(hubKit(hub))
    .post(
      '/add_webhook',
      ({ body: { realm_id, url, events, secret = mintWebhookSecret() }, caller }) =>
        caller.write(async tx => {
          const realm = await caller.realm(realm_id, 'admin', tx)
          checkUrl(hub, url)
          if (events.some(isAuditEvent)) await mayReadAudit(caller, realm.org_id, tx)
          const ofRealm = eq(webhooks.realm_id, realm_id)
          if ((await countOf(tx, webhooks, ofRealm)) >= MOST_OF_REALM) {
            throw new CadreError('conflict', `realm ${realm.slug} has ${MOST_OF_REALM} webhooks, which is the maximum`)
          }
          const id = crypto.randomUUID()
          const told = { id, realm_id, url, events, created_at: hub.now(), created_by: caller.user.id }
          await tx.insert(webhooks).values({ ...told, secret: hub.sealer.seal(secret) })
          await record(hub, tx, caller, { action: 'realms/add_webhook', target: id, org_id: realm.org_id, realm_id })
          return { ...told, owner: caller.user.username, ...ACTIVE, secret }
        }),
      {
        user: { grant: { realms: 'admin' }, realm: 'admin' },
        body: closed({
          realm_id: Uuid,
          url: Text(2_000, 1),
          events: Type.Array(HookEvent, { minItems: 1, uniqueItems: true }),
          secret: Type.Optional(Secret),
        }),
        data: withMore(Webhook, { secret: Type.String() }),
        detail: { summary: 'Add a webhook to a realm; only this reply shows its secret' },
      },
    )
    .post(
      '/webhooks',
      async ({ body, caller }) => {
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
      },
      {
        user: { grant: { realms: 'read' }, realm: 'operator' },
        body: listBody({ realm_id: Uuid }),
        data: listOf('webhooks', Webhook),
        detail: { summary: 'List the webhooks of a realm' },
      },
    )
    .post(
      '/remove_webhook',
      ({ body: { realm_id, id }, caller }) =>
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
      {
        user: { grant: { realms: 'admin' }, realm: 'admin' },
        body: closed({ realm_id: Uuid, id: Uuid }),
        data: Type.Object({ id: Type.String(), realm_id: Type.String() }),
        detail: { summary: 'Remove a webhook with the log of its deliveries' },
      },
    )
    .post(
      '/webhook_take_over',
      async ({ body: { realm_id, webhook_id, id = webhook_id ?? '' }, caller }) => {
        if (webhook_id !== undefined && id !== webhook_id) throw new CadreError('invalid_request', BOTH_IDS)
        const taken = await caller.write(async tx => {
          const [found] = await tx.select().from(webhooks).where(eq(webhooks.id, id))
          // Without the realm in the body, the error for a webhook that the caller may not see is that for a missing one.
          const realm = await caller.realm(realm_id ?? found?.realm_id ?? '', 'admin', tx).catch(error => {
            if (realm_id !== undefined || !(error instanceof CadreError && error.code === 'not_found')) throw error
            throw new CadreError('not_found', `no webhook ${id} that you may see`)
          })
          if (found?.realm_id !== realm.id)
            throw new CadreError('not_found', `realm ${realm.slug} has no webhook ${id}`)
          if (found.events.some(isAuditEvent)) await mayReadAudit(caller, realm.org_id, tx)
          await tx.update(webhooks).set({ created_by: caller.user.id }).where(eq(webhooks.id, id))
          const entry = { action: 'realms/webhook_take_over', target: id, org_id: realm.org_id, realm_id: realm.id }
          await record(hub, tx, caller, entry)
          const { secret: _, ...webhook } = found
          return { ...webhook, created_by: caller.user.id, owner: caller.user.username, ...ACTIVE }
        })
        hub.notifier.notify(WEBHOOK_NEWS)
        return taken
      },
      {
        user: { grant: { realms: 'admin' }, realm: 'admin' },
        body: closed({
          realm_id: Type.Optional(Uuid),
          id: Type.Optional(Uuid),
          webhook_id: Type.Optional(Uuid),
        }),
        data: Webhook,
        detail: { summary: 'Become the owner of a webhook, which then delivers again' },
      },
    )
    .post(
      '/redeliver_webhook',
      async ({ body: { realm_id, id }, caller }) => {
        const sent = await caller.write(async tx => {
          const realm = await caller.realm(realm_id, 'operator', tx)
          const ids = tx.select({ id: webhooks.id }).from(webhooks).where(eq(webhooks.realm_id, realm_id))
          const again = { state: 'waiting' as const, attempts: 0, next_at: hub.now(), finished_at: null, error: null }
          const over = and(
            eq(deliveries.id, id),
            inArray(deliveries.webhook_id, ids),
            isNotNull(deliveries.finished_at),
          )
          const [row] = await tx.update(deliveries).set(again).where(over).returning()
          if (!row) throw new CadreError('not_found', `realm ${realm.slug} has no message ${id} that has ended`)
          const entry = { action: 'realms/redeliver_webhook', target: id, org_id: realm.org_id, realm_id }
          await record(hub, tx, caller, entry)
          const { body: _, ...told } = row
          return told
        })
        hub.notifier.notify(WEBHOOK_NEWS)
        return sent
      },
      {
        user: { grant: { realms: 'write' }, realm: 'operator' },
        body: closed({ realm_id: Uuid, id: Text(200, 1) }),
        data: WebhookDelivery,
        detail: { summary: 'Send a message of a webhook again, under the same id' },
      },
    )
    .post(
      '/webhook_deliveries',
      async ({ body, caller }) => {
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
          deliveries: rows.map(({ body: _, ...row }) => row),
          total: await countOf(store.db, deliveries, where),
        }
      },
      {
        user: { grant: { realms: 'read' }, realm: 'operator' },
        body: listBody({ realm_id: Uuid, webhook_id: Type.Optional(Uuid) }),
        data: listOf('deliveries', WebhookDelivery),
        detail: { summary: 'What happened to the messages of a realm’s webhooks, newest first' },
      },
    )
}

function mintWebhookSecret(): string {
  return SECRET_PREFIX + Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64')
}

/** Entries of the audit log are told only where the caller could read them (audit/list). */
async function mayReadAudit(caller: UserCaller, orgId: number, tx: Db): Promise<void> {
  if (!allows(caller.token.grant, { orgs: 'admin' })) {
    throw new CadreError('forbidden', 'the events of the audit log take orgs admin, which the grant lacks')
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
