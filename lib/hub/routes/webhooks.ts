// The webhooks of a realm. Its admins add and remove them, and its operators see them and what happened to their
// messages.

import { and, desc, eq, inArray } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { bareHost, isAddress, isAllowed, isMetadataName, judge } from '../../agent/address.ts'
import { CadreError } from '../../error.ts'
import { closed } from '../../schema.ts'
import { Type } from '../../type.ts'
import { HookEvent, Webhook, WebhookDelivery } from '../../wire/hooks.ts'
import { withMore } from '../../wire/hub-records.ts'
import { listBody, listOf, page } from '../../wire/page.ts'
import { Text, Uuid } from '../../wire/parts.ts'
import { record } from '../audit.ts'
import type { Hub } from '../hub.ts'
import { hubKit } from '../kit.ts'
import { countOf } from '../list-total.ts'
import { SECRET_PREFIX } from '../webhook-delivery.ts'

/** Each event of a realm is told to each of its webhooks, so their number multiplies the work of the hub. */
const MOST_OF_REALM = 10

/** `whsec_` and 24 to 64 bytes in base64. */
const Secret = Type.String({
  pattern: `^${SECRET_PREFIX}([A-Za-z0-9+/]{4}){8,21}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`,
})

export function webhooks(hub: Hub) {
  const { store } = hub
  const { webhooks, webhookDeliveries: deliveries } = store

  return new Elysia({ name: 'webhooks', prefix: '/v1/realms' })
    .use(hubKit(hub))
    .post(
      '/add_webhook',
      ({ body: { realm_id, url, events, secret = mintWebhookSecret() }, caller }) =>
        caller.write(async tx => {
          const realm = await caller.realm(realm_id, 'admin', tx)
          checkUrl(hub, url)
          const ofRealm = eq(webhooks.realm_id, realm_id)
          if ((await countOf(tx, webhooks, ofRealm)) >= MOST_OF_REALM) {
            throw new CadreError('conflict', `realm ${realm.slug} has ${MOST_OF_REALM} webhooks, which is the maximum`)
          }
          const id = crypto.randomUUID()
          const told = { id, realm_id, url, events, created_at: hub.now(), created_by: caller.user.id }
          await tx.insert(webhooks).values({ ...told, secret: hub.sealer.seal(secret) })
          await record(hub, tx, caller, { action: 'realms/add_webhook', target: id, org_id: realm.org_id, realm_id })
          return { ...told, secret }
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
          .select()
          .from(webhooks)
          .where(where)
          .orderBy(webhooks.created_at, webhooks.id)
          .limit(limit)
          .offset(offset)
        return {
          webhooks: rows.map(({ secret: _, ...row }) => row),
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
          const deed = { action: 'realms/remove_webhook', target: id, org_id: realm.org_id, realm_id }
          await record(hub, tx, caller, deed)
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
