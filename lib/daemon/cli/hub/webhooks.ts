// `webhooks`: the servers that hear what happens in a realm, and what became of the messages to them.

import { line } from '../../../text/printable.ts'
import { listed } from '../../../text/spelling.ts'
import {
  AddWebhook,
  ListDeliveries,
  ListWebhooks,
  RedeliverMessage,
  RemoveWebhook,
  TakeOverWebhook,
} from '../../../wire/calls/webhooks.ts'
import { HOOK_EVENTS } from '../../../wire/records/hook-events.ts'
import type { HookEvent, Webhook, WebhookDelivery } from '../../../wire/records/hooks.ts'
import type { HubClient } from '../../link/hub-client.ts'
import { type Entry, option } from '../kit/command-table.ts'
import { realmOf, webhookOf } from '../kit/names.ts'
import { collect } from '../kit/options.ts'
import { typedSecret } from '../kit/typed-secret.ts'
import { doing, inRealm } from './entry.ts'
import { changing, listing } from './forms.ts'
import { done, relative, secret } from './output.ts'

interface InRealm {
  realm?: string
}

export const ENTRIES: readonly Entry[] = [
  listing('list', 'list the webhooks of a realm', '--realm prod', {
    options: [inRealm],
    call: ListWebhooks,
    where: inThatRealm,
    rows: 'webhooks',
    row: ({ id, url, events, owner, state }, paint) => [
      paint.bold(url),
      events.join(' '),
      state === 'active' ? `of ${owner}` : paint.yellow(`stopped: ${owner} is no admin of the realm any more`),
      paint.dim(id),
    ],
  }),
  doing('add <url>', 'add a webhook, and print the secret that signs its messages', 'https://example.com/hook', {
    more: `The events are ${listed([...HOOK_EVENTS])}, and audit. with an action, such as audit.daemons/approve.`,
    options: [
      inRealm,
      option('--event <event>', 'what it is told; may be repeated (run.failed)').argParser(collect),
      option('--own-secret', 'sign with a secret that you have, which is read from stdin'),
    ],
    run: async (hub, { event: events = ['run.failed'], ownSecret, ...options }, url: string) => {
      const { id: realm_id, slug } = await realmOf(hub, options.realm)
      const own = ownSecret ? { secret: await typedSecret('secret (whsec_…): ') } : {}
      const made = await hub.call(AddWebhook, { realm_id, url, events: events as HookEvent[], ...own })
      if (ownSecret) return done(options, made, `added webhook ${made.id} to realm ${slug}`)
      secret(options, { ...made, token: made.secret }, `the secret of webhook ${made.id} of realm ${slug}`)
    },
  }),
  changing('remove <webhook>', 'remove a webhook with the log of its messages', 'https://example.com/hook --yes', {
    options: [inRealm],
    find: found,
    question: ({ url }) => `Remove the webhook to ${url}? Its messages that were not delivered are not sent any more.`,
    call: (hub, { id, realm_id }) => hub.call(RemoveWebhook, { id, realm_id }),
    confirmation: ({ url }) => `removed the webhook to ${url}`,
  }),
  changing(
    'take-over <webhook>',
    'become the owner of a webhook, which then delivers again',
    'https://example.com/hook',
    {
      options: [inRealm],
      find: found,
      call: (hub, { id, realm_id }) => hub.call(TakeOverWebhook, { id, realm_id }),
      confirmation: ({ url }, { owner }) => `the webhook to ${url} belongs to ${owner}`,
    },
  ),
  listing('deliveries [webhook]', 'list what became of the messages, newest first', '--realm prod', {
    options: [inRealm],
    call: ListDeliveries,
    where: async (hub, options, wanted) => {
      const { realm_id } = await inThatRealm(hub, options)
      return wanted === undefined ? { realm_id } : { realm_id, webhook_id: (await webhookOf(hub, realm_id, wanted)).id }
    },
    rows: 'deliveries',
    row: (message, paint) => [
      line`${paint.bold(message.event)}  ${message.subject}`,
      outcomeOf(message),
      relative(message.created_at),
      paint.dim(message.id),
    ],
  }),
  changing('redeliver <message>', 'send a message again that has ended, under the same id', 'msg_6f1c… --realm prod', {
    options: [inRealm],
    find: async (hub, delivery_id, options) => ({ ...(await inThatRealm(hub, options)), delivery_id }),
    call: (hub, message) => hub.call(RedeliverMessage, message),
    confirmation: ({ delivery_id }) => `message ${delivery_id} is sent again`,
  }),
]

async function inThatRealm(hub: HubClient, { realm }: InRealm): Promise<{ realm_id: string }> {
  return { realm_id: (await realmOf(hub, realm)).id }
}

async function found(hub: HubClient, wanted: string, options: InRealm): Promise<Webhook> {
  const { realm_id } = await inThatRealm(hub, options)
  return webhookOf(hub, realm_id, wanted)
}

/** `delivered, 200`, `failed after 9 attempts: the receiver answered 500`, `waiting, next in 5m: …`. */
function outcomeOf({ state, attempts, status, error, next_at }: WebhookDelivery): string {
  const reply = error ?? (status === null ? '' : `${status}`)
  const said = (text: string) => (reply === '' ? text : `${text}${error === null ? ', ' : ': '}${reply}`)
  if (state === 'delivered') return said('delivered')
  if (state === 'failed') return said(`failed after ${attempts === 1 ? 'an attempt' : `${attempts} attempts`}`)
  if (state === 'unknown') return 'unknown: it may have been sent before the hub’s data was restored'
  return said(next_at === null ? 'waiting' : `waiting, next ${relative(next_at)}`)
}
