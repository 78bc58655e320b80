// What a home does with a request to a hook. Nothing is answered with success before the firing is on the disk, with the
// run that it starts: the sender comes again with everything else.

import { CadreError, messageOf } from '../../error.ts'
import { pausedText } from '../../firing/changes.ts'
import { hookAnswer } from '../../firing/hook-answer.ts'
import { deliveryValue, hookSpec } from '../../firing/hook-kind.ts'
import type { Firing, Trigger } from '../../firing/trigger.ts'
import { readBytes } from '../../http/body.ts'
import type { JsonObject } from '../../json.ts'
import { Recent } from '../../recent.ts'
import { sizeText } from '../../size.ts'
import { fieldsOf, type ParsedBody } from '../../triggers/hook/body.ts'
import type { Delivery } from '../../triggers/hook/delivery.ts'
import type { Hook } from '../../triggers/hook/fields.ts'
import { type Handshake, unsignedHandshake } from '../../triggers/hook/handshake.ts'
import { HookLimits } from '../../triggers/hook/limits.ts'
import { receive } from '../../triggers/hook/receive.ts'
import type { HookSpec } from '../../triggers/hook/spec.ts'
import { storedHeaders } from '../../triggers/hook/stored-headers.ts'
import type { HookRequest } from '../../triggers/hook/verify.ts'
import type { FiringReason } from '../../wire/records/trigger-words.ts'
import type { Daemon } from '../runs/daemon.ts'
import { isLasting } from '../runs/start-run.ts'
import { Changed, fire, type Occasion } from './fire.ts'
import { noteSecret } from './problem.ts'
import { type Tables, tablesOf } from './tables.ts'

const TOKEN = /^[A-Za-z0-9_-]{22}$/
const BODY_MS = 30_000
/** Larger bodies are not kept. */
const MOST_KEPT = 256 * 1024
const DAY_MS = 86_400_000
/** Of the requests that are nobody's delivery. */
const REJECTED_KEPT = 100
/** How often a delivery is judged anew because somebody changed its hook meanwhile. */
const MOST_TRIES = 10
const SPECS_KEPT = 500
const RETRY_S = 30

interface Arrived {
  trigger: Trigger<Hook>
  spec: HookSpec
  request: HookRequest
  delivery: Delivery
  body: ParsedBody
}

export interface DoorOptions {
  now?: () => number
  limits?: HookLimits
}

export class HookDoor {
  readonly #daemon: Daemon
  readonly #tables: Tables
  readonly #limits: HookLimits
  readonly #specs = new Recent<string, HookSpec>(SPECS_KEPT)

  /** `now`: the wall clock. */
  constructor(daemon: Daemon, { now = Date.now, limits = new HookLimits() }: DoorOptions = {}) {
    this.#daemon = daemon
    this.#limits = limits
    this.#tables = tablesOf(daemon.db, now)
  }

  /** Answers a request for the hook with this token. `address`: that of its sender. */
  async answer(token: string, request: Request, address: string): Promise<Response> {
    const trigger = this.#hookOf(token)
    const spec = this.#specOf(trigger)
    const query = new URL(request.url).searchParams
    const now = this.#tables.now()
    this.#limits.admit(trigger.id, address, now)
    const question = unsignedHandshake(spec, query)
    if (question) return handshake(question)
    const arrived = { headers: request.headers, body: await this.#bodyOf(request, trigger, spec), query }
    const secrets = this.#daemon.hookSecrets.values(trigger.id)
    if (secrets === null) {
      const text = 'the secret of the hook was sealed with another key of this home'
      await this.#daemon.engine.commit(() => noteSecret(this.#daemon, this.#tables.triggers, trigger, text, now))
      throw unavailable(text)
    }
    const received = receive(spec, secrets, arrived, now)
    if (received.kind === 'stranger') {
      const { reason, detail } = received.verdict
      this.#limits.failed(address, now)
      await this.#reject(trigger, 'refused', reason, detail)
      throw new CadreError('unauthorized', 'the signature does not fit')
    }
    if (received.kind === 'question') {
      await this.#reject(trigger, 'skipped', 'scheme', 'handshake')
      return handshake(received.reply)
    }
    const { delivery, body } = received
    if (delivery.problem !== null) this.#warn(trigger, delivery.problem)
    return this.#deliver({ trigger, spec, request: arrived, delivery, body })
  }

  /** Unknown, removed and disabled hooks are answered alike. */
  #hookOf(token: string): Trigger<Hook> {
    const id = TOKEN.test(token) ? this.#tables.hooks.triggerOf(token) : null
    const trigger = id === null ? null : this.#tables.triggers.get(id)
    if (trigger?.enabled) return trigger as Trigger<Hook>
    throw new CadreError('not_found', 'there is no hook at this address')
  }

  #specOf({ id, revision, spec }: Trigger<Hook>): HookSpec {
    const key = `${id} ${revision}`
    return this.#specs.get(key) ?? this.#specs.set(key, hookSpec(spec.own))
  }

  async #bodyOf(request: Request, trigger: Trigger, { maxBytes }: HookSpec): Promise<Uint8Array> {
    const encoding = request.headers.get('content-encoding') ?? 'identity'
    if (encoding !== 'identity') {
      throw new CadreError('unsupported_media_type', `expected a body without content-encoding, got ${encoding}`)
    }
    const room = Math.min(Number(request.headers.get('content-length') ?? maxBytes), maxBytes)
    const release = this.#limits.reserve(trigger.id, room)
    try {
      return await readBytes(request, maxBytes, BODY_MS)
    } catch (error) {
      if (!(error instanceof CadreError) || error.code !== 'too_large') throw error
      const message = `the body is larger than ${sizeText(maxBytes)}`
      await this.#reject(trigger, 'refused', 'too_large', message)
      throw new CadreError('too_large', message)
    } finally {
      release()
    }
  }

  /** Records a request that is no delivery. It has no id of the sender, who may be anybody. */
  async #reject(trigger: Trigger, state: 'skipped' | 'refused', reason: FiringReason, detail: string): Promise<void> {
    const firing = this.#firingOf(trigger, `rejected:${crypto.randomUUID()}`, {})
    await this.#recorded(trigger, () =>
      this.#daemon.engine.commit(() => {
        this.#tables.firings.insert({ ...firing, state, reason, detail })
        this.#tables.firings.keepRejected(trigger.id, REJECTED_KEPT)
      }),
    )
  }

  async #deliver(arrived: Arrived): Promise<Response> {
    const { trigger, spec } = arrived
    for (let tries = 1; ; tries++) {
      try {
        const { firing, isKnown } = await this.#recorded(trigger, () => this.#judge(arrived))
        return hookAnswer(spec, firing, isKnown)
      } catch (error) {
        if (!(error instanceof Changed) || tries === MOST_TRIES) throw error
        // Another request for the same delivery was first, or somebody changed the hook.
        const now = this.#tables.triggers.get(trigger.id)
        if (!now?.enabled) throw new CadreError('not_found', 'there is no hook at this address')
        arrived = { ...arrived, trigger: now as Trigger<Hook> }
      }
    }
  }

  async #judge({ trigger, spec, request, delivery, body }: Arrived): Promise<{ firing: Firing; isKnown: boolean }> {
    const { firings, now } = this.#tables
    const { occasion, known } = this.#occasionOf(trigger.id, delivery)
    const { engine } = this.#daemon
    if (known && known.state !== 'refused') {
      await engine.commit(() => firings.countDelivery(known.id))
      const again = { trigger: trigger.name, delivery: occasion, firing: known.id, run: known.run_id }
      this.#daemon.log.info('a delivery came again, and starts no second run', again)
      return { firing: known, isKnown: true }
    }
    const at = now()
    const headers = storedHeaders(spec, request.headers)
    const variables = { headers, delivery: deliveryValue(delivery.id ?? occasion, delivery.event, at) }
    const query = fieldsOf(request.query)
    const recorded = (settled: Firing) => this.#keepBody(settled, spec, { query, body: request.body })
    const seen = known && { ...known, deliveries: (known.deliveries ?? 0) + 1, variables }
    const pause = trigger.paused && ({ state: 'skipped', reason: 'paused', detail: pausedText(trigger) } as const)
    const fault = body.ok ? null : ({ state: 'refused', reason: 'body', detail: body.detail } as const)
    const halt = fault ?? pause
    if (halt) {
      const detail = this.#daemon.mask(halt.detail) as string
      const firing = { ...(seen ?? this.#firingOf(trigger, occasion, variables)), ...halt, detail }
      await engine.commit(() => {
        if (!known && firings.of(trigger.id, occasion)) throw new Changed(`${occasion} has a firing`)
        if (known) firings.settle(firing)
        else firings.insert(firing)
        recorded(firing)
      })
      return { firing, isKnown: false }
    }
    const fired: Occasion = {
      ...{ occasion, at, late_ms: 0, manual: null, variables, deliveries: 1 },
      more: () => ({ body: body.ok ? body.value : null, query }),
    }
    const firing = await fire(this.#daemon, this.#tables, trigger, fired, { recorded, ...(seen && { known: seen }) })
    return { firing, isKnown: false }
  }

  /** What names a delivery, and its firing, if it has come before. */
  #occasionOf(triggerId: string, { id, within }: Delivery): { occasion: string; known: Firing | undefined } {
    const { firings, now } = this.#tables
    if (id === null) return { occasion: crypto.randomUUID(), known: undefined }
    const newest = within === null ? firings.of(triggerId, id) : firings.newestOf(triggerId, id)
    if (!newest) return { occasion: id, known: undefined }
    if (within === null || now() - newest.seen_at < within) return { occasion: newest.occasion, known: newest }
    const number = Number(newest.occasion.slice(id.length + 1) || 1) + 1
    return { occasion: `${id}~${number}`, known: undefined }
  }

  #firingOf({ id, revision }: Trigger, occasion: string, variables: JsonObject): Firing {
    const now = this.#tables.now()
    return {
      ...{ id: Bun.randomUUIDv7(), trigger_id: id, revision, occasion, at: now, until: null, seen_at: now },
      ...{ started_at: null, state: 'refused', reason: null, detail: null, run_id: null, count: 1, late_ms: null },
      ...{ manual: null, deliveries: 1, variables },
    }
  }

  #keepBody({ id, state }: Firing, { keepBodyDays }: HookSpec, sent: { query: JsonObject; body: Uint8Array }): void {
    const isKept = keepBodyDays > 0 && sent.body.length <= MOST_KEPT
    if (!isKept && state !== 'waiting') return
    const { seal, ages } = this.#daemon
    this.#tables.hooks.keep(seal, id, sent, isKept ? ages.believed + keepBodyDays * DAY_MS : null)
  }

  /** What cannot be recorded is answered so that the sender comes again. */
  async #recorded<T>(trigger: Trigger, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof Changed || isLasting(error)) throw error
      this.#warn(trigger, messageOf(error))
      throw unavailable('the delivery cannot be recorded now', error)
    }
  }

  #warn({ name }: Trigger, problem: string): void {
    this.#daemon.log.warn('a delivery of a hook', { trigger: name, problem })
  }
}

const unavailable = (message: string, cause?: unknown): CadreError =>
  new CadreError('unavailable', `${message}: send it again later`, { retryAfter: RETRY_S, cause })

const handshake = ({ contentType, body }: Handshake): Response =>
  new Response(body, { headers: { 'content-type': contentType, 'x-content-type-options': 'nosniff' } })
