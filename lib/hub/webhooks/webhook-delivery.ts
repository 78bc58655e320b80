// Sends the messages of webhooks, signed as the Standard Webhooks specification says
// (https://www.standardwebhooks.com). A message is sent until the receiver answers 2xx, at most `DELAYS.length + 1`
// times within about two days. It may arrive more than once, always under the same id. Before an attempt, the time of
// the next one is recorded, so that no two hubs send at once and a killed hub loses nothing. A receiver that is slow or
// away delays the messages of its own webhook only.

import { createHmac } from 'node:crypto'
import { and, asc, eq, isNotNull, lt, lte, notInArray } from 'drizzle-orm'
import { deleteAtMost } from '../../../db/hub/delete-at-most.ts'
import type { Tables } from '../../../db/hub/schema.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { guardedFetch } from '../../agent/fetch.ts'
import { retryAfter } from '../../agent/net/rate-limit.ts'
import { messageOf } from '../../error.ts'
import { SECRET_PREFIX } from '../../wire/records/hooks.ts'
import { delivers } from '../access/owners.ts'
import type { Hub } from '../core/hub.ts'
import { WEBHOOK_TOPIC } from './webhooks.ts'

type Delivery = Tables['webhookDeliveries']['$inferSelect']
type Webhook = Tables['webhooks']['$inferSelect']

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** The pauses between the attempts, to which up to a tenth is added at random. */
const DELAYS = [5_000, MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 6 * HOUR_MS, 14 * HOUR_MS, 24 * HOUR_MS]
/** A receiver may ask by `Retry-After` for a longer pause, up to this one. */
const LONGEST_DELAY_MS = 24 * HOUR_MS
const TIMEOUT_MS = 15_000
/** An attempt that has not been recorded after this time was that of a hub that was killed. */
const CLAIM_MS = 60_000
/** Attempts at a time, of one hub. */
const MOST = 32
const MOST_OF_WEBHOOK = 4
const LOOK_MS = 2_000

/** Signs a message with the secret `whsec_<base64>`. `at` is in seconds. */
export function signatureOf(secret: string, { id, at, body }: { id: string; at: number; body: string }): string {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64')}`
}

/** Sends what is due until the returned function is called, which waits until the last attempt is recorded. */
export function sendWebhooks(hub: Hub): () => Promise<void> {
  const { store } = hub
  const { webhooks, webhookDeliveries: deliveries } = store
  const stop = new AbortController()
  /** The attempts that are being made, by webhook. */
  const sending = new Map<string, Set<Promise<void>>>()
  const underWay = () => [...sending.values()].flatMap(those => [...those])

  /** Starts the attempts that are due. Returns false when nothing more is due, or nothing more can be started. */
  async function startDue(): Promise<boolean> {
    const busy = [...sending].filter(([, those]) => those.size >= MOST_OF_WEBHOOK).map(([id]) => id)
    const free = MOST - underWay().length
    if (free <= 0) return false
    const due = await store.db
      .select({ delivery: deliveries, webhook: webhooks })
      .from(deliveries)
      .innerJoin(webhooks, eq(webhooks.id, deliveries.webhook_id))
      // Messages of a webhook whose owner has lost the role wait until somebody takes it over.
      .where(and(lte(deliveries.next_at, hub.lived()), notInArray(deliveries.webhook_id, busy), delivers(store)))
      .orderBy(asc(deliveries.next_at))
      .limit(free)
    for (const { delivery, webhook } of due) {
      if ((sending.get(webhook.id)?.size ?? 0) >= MOST_OF_WEBHOOK) continue
      if (await claim(delivery)) start(delivery, webhook)
    }
    return due.length > 0
  }

  /** Records the attempt before it is made, and forgets what came of the former one. Returns false when another hub makes it. */
  async function claim({ id, attempts, next_at }: Delivery): Promise<boolean> {
    const unclaimed = and(eq(deliveries.id, id), eq(deliveries.attempts, attempts), eq(deliveries.next_at, next_at!))
    const rows = await store.write(tx =>
      tx
        .update(deliveries)
        .set({ attempts: attempts + 1, next_at: hub.lived() + CLAIM_MS, status: null, error: null })
        .where(unclaimed)
        .returning({ id: deliveries.id }),
    )
    return rows.length > 0
  }

  function start(delivery: Delivery, webhook: Webhook): void {
    const those = sending.get(webhook.id) ?? new Set()
    sending.set(webhook.id, those)
    const attempt = deliver({ ...delivery, attempts: delivery.attempts + 1 }, webhook)
      .catch(error => hub.log.warn('a webhook could not be sent', { webhook: webhook.id, error: brief(error) }))
      .finally(() => {
        those.delete(attempt)
        if (those.size === 0) sending.delete(webhook.id)
        hub.notifier.notify(WEBHOOK_TOPIC)
      })
    those.add(attempt)
  }

  /** Makes one attempt and records what came of it. */
  async function deliver(delivery: Delivery, webhook: Webhook): Promise<void> {
    const result = await attempt(delivery, webhook)
    const { status, error, wait } = result
    const delay = DELAYS[delivery.attempts - 1]
    const finished_at = hub.clock.keptSince()
    const now = hub.lived()
    const outcome =
      error === null
        ? { state: 'delivered' as const, next_at: null, finished_at }
        : stop.signal.aborted
          ? // The hub stops. The attempt does not count, and the next hub makes it at once.
            { attempts: delivery.attempts - 1, next_at: now }
          : delay === undefined || status === 410
            ? { state: 'failed' as const, next_at: null, finished_at }
            : { next_at: now + Math.max(delay * (1 + Math.random() / 10), Math.min(wait, LONGEST_DELAY_MS)) }
    const mine = and(eq(deliveries.id, delivery.id), eq(deliveries.attempts, delivery.attempts))
    const row = { ...outcome, ...(outcome.next_at && { next_at: Math.round(outcome.next_at) }), status, error }
    await store.write(tx => tx.update(deliveries).set(row).where(mine))
    if (!('attempts' in outcome)) hub.counts.webhooks.add(1, { result: 'state' in outcome ? outcome.state : 'retried' })
  }

  interface Result {
    status: number | null
    /** Null when the message was delivered. */
    error: string | null
    /** What the receiver asked for, in milliseconds. */
    wait: number
  }

  async function attempt({ id, body }: Delivery, { url, secret }: Webhook): Promise<Result> {
    const at = Math.floor(hub.now() / 1_000)
    try {
      const signature = signatureOf(hub.sealer.open(secret), { id, at, body })
      const reply = await send(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': String(at),
          'webhook-signature': signature,
        },
        body,
        attempts: 1,
        follow: false,
        timeout: TIMEOUT_MS,
      })
      await reply.body?.cancel()
      const { status } = reply
      // A time that the receiver names is one of its own clock.
      const theirs = Date.parse(reply.headers.get('date') ?? '') || hub.now()
      const wait = retryAfter(reply.headers.get('retry-after'), theirs) ?? 0
      return { status, error: reply.ok ? null : refusal(status), wait }
    } catch (error) {
      return { status: null, error: explained(error, url), wait: 0 }
    }
  }

  const send = guardedFetch({
    settings: null,
    network: { allow: hub.webhookAllow, literalOrigins: [] },
    effect: 'once',
    signal: stop.signal,
    log: () => {},
  })

  async function work(): Promise<void> {
    using notifications = hub.notifier.subscribe(WEBHOOK_TOPIC)
    while (!stop.signal.aborted) {
      try {
        while (!stop.signal.aborted && (await startDue())) {
          // Attempts that were started are not due any more.
        }
      } catch (error) {
        hub.log.warn('due webhooks could not be read', { error: brief(error) })
      }
      await notifications.wait(LOOK_MS, stop.signal)
    }
    await Promise.all(underWay())
  }

  const done = work()
  return () => {
    stop.abort()
    return done
  }
}

/** Deletes at most `most` deliveries that ended before `before`. Returns how many. */
export async function deleteOldDeliveries({ store }: Hub, before: number, most: number): Promise<number> {
  const { webhookDeliveries: deliveries } = store
  const where = and(isNotNull(deliveries.finished_at), lt(deliveries.finished_at, before))
  return store.write(tx => deleteAtMost(store, tx, deliveries, { where, most }))
}

function refusal(status: number): string {
  if (status >= 300 && status < 400) return `the receiver answered ${status}, and redirects are not followed`
  return `the receiver answered ${status}`
}

/**
 * Why nothing was delivered, for members of the realm. It does not say which address a name has, or whether it has one,
 * because that would show people outside the network of the hub.
 */
function explained(error: unknown, url: string): string {
  const { code } = error as { code?: string }
  if (code === 'refused' || code === 'dns') return `${new URL(url).host} has no public address`
  return error instanceof AgentError ? error.message : brief(error)
}

const brief = (error: unknown): string => messageOf(error).split('\n', 1)[0]!
