// What a home and a hub do with a request to a hook, in the order in which it has to be checked. Nothing is answered with
// success before the firing is stored, with the run that it starts: the sender comes again with everything else.

import { isLoopbackAddress } from '../agent/net/address.ts'
import { CadreError, isLasting, messageOf } from '../error.ts'
import { readBytes } from '../http/body.ts'
import { Recent } from '../recent.ts'
import { sizeText } from '../size.ts'
import type { Hook } from '../triggers/hook/fields.ts'
import { type Handshake, unsignedHandshake } from '../triggers/hook/handshake.ts'
import { HookLimits } from '../triggers/hook/limits.ts'
import { receive } from '../triggers/hook/receive.ts'
import type { HookSpec } from '../triggers/hook/spec.ts'
import { hookAnswer } from './hook-answer.ts'
import { type Arrived, rejectedFiring } from './hook-firing.ts'
import { hookSpec } from './hook-kind.ts'
import type { Firing, Trigger } from './trigger.ts'

const TOKEN = /^[A-Za-z0-9_-]{22}$/
const BODY_MS = 30_000
const SPECS_KEPT = 500
const RETRY_S = 30

/** How many requests that are nobody's delivery each hook has as firings. */
export const REJECTED_KEPT = 100

/** A new token of a hook. */
export const newToken = (): string => Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('base64url')

/** Where the hooks of a server are, and what came to them. */
export interface HookPlace {
  /** The wall clock. */
  now(): number
  /** The hook that has this token, unless it is disabled. */
  hookOf(token: string): Promise<Trigger<Hook> | null>
  /** The secrets that fit; null when they were sealed with another key, which the place notes. */
  secretsOf(trigger: Trigger<Hook>): Promise<readonly string[] | null>
  /** Records a request that is nobody's delivery; of those the newest `REJECTED_KEPT` stay. */
  reject(trigger: Trigger<Hook>, firing: Firing): Promise<void>
  /** Judges and records a delivery. `isKnown`: it had come before, and is only counted. Throws `not_found`. */
  deliver(arrived: Arrived): Promise<{ firing: Firing; isKnown: boolean }>
  /** Says in the log what went wrong with a request. */
  warn(trigger: Trigger | null, problem: string): void
}

export class HookDoor {
  readonly #place: HookPlace
  readonly #limits: HookLimits
  readonly #specs = new Recent<string, HookSpec>(SPECS_KEPT)

  constructor(place: HookPlace, limits = new HookLimits()) {
    this.#place = place
    this.#limits = limits
  }

  /** Answers a request for the hook with this token. `address`: that of its sender. */
  async answer(token: string, request: Request, address: string): Promise<Response> {
    const trigger = await this.#hookOf(token)
    const spec = this.#specOf(trigger)
    const query = new URL(request.url).searchParams
    const now = this.#place.now()
    const sender = { address, isShared: isLoopbackAddress(address) }
    this.#limits.admit(trigger.id, sender)
    const question = unsignedHandshake(spec, query)
    if (question) return handshake(question)
    const arrived = { headers: request.headers, body: await this.#bodyOf(request, trigger, spec), query }
    const secrets = await this.#recorded(trigger, () => this.#place.secretsOf(trigger))
    if (secrets === null) throw unavailable('the secret of the hook was sealed with another key')
    const received = receive(spec, secrets, arrived, now)
    if (received.kind === 'stranger') {
      const { reason, detail } = received.verdict
      this.#limits.failed(trigger.id, sender)
      await this.#reject(trigger, { state: 'refused', reason, detail })
      throw new CadreError('unauthorized', 'the signature does not fit')
    }
    if (received.kind === 'question') {
      await this.#reject(trigger, { state: 'skipped', reason: 'scheme', detail: 'handshake' })
      return handshake(received.reply)
    }
    const { delivery, body } = received
    if (delivery.problem !== null) this.#place.warn(trigger, delivery.problem)
    const work = () => this.#place.deliver({ trigger, spec, request: arrived, delivery, body })
    const { firing, isKnown } = await this.#recorded(trigger, work)
    return hookAnswer(spec, firing, isKnown)
  }

  /** Unknown, removed and disabled hooks are answered alike. */
  async #hookOf(token: string): Promise<Trigger<Hook>> {
    const found = TOKEN.test(token) && (await this.#recorded(null, () => this.#place.hookOf(token)))
    if (found) return found
    throw noHook()
  }

  #specOf({ id, revision, spec }: Trigger<Hook>): HookSpec {
    const key = `${id} ${revision}`
    return this.#specs.get(key) ?? this.#specs.set(key, hookSpec(spec.own))
  }

  async #bodyOf(request: Request, trigger: Trigger<Hook>, { maxBytes }: HookSpec): Promise<Uint8Array> {
    const encoding = request.headers.get('content-encoding') ?? 'identity'
    if (encoding !== 'identity') {
      throw new CadreError('unsupported_media_type', `expected a body without content-encoding, got ${encoding}`)
    }
    const room = this.#limits.reading(trigger.id)
    try {
      return await readBytes(request, { limit: maxBytes, ms: BODY_MS, took: room.take })
    } catch (error) {
      if (!(error instanceof CadreError) || error.code !== 'too_large') throw error
      const detail = `the body is larger than ${sizeText(maxBytes)}`
      await this.#reject(trigger, { state: 'refused', reason: 'too_large', detail })
      throw new CadreError('too_large', detail)
    } finally {
      room.end()
    }
  }

  #reject(trigger: Trigger<Hook>, why: Pick<Firing, 'state' | 'reason' | 'detail'>): Promise<void> {
    const firing = rejectedFiring(trigger, why, this.#place.now())
    return this.#recorded(trigger, () => this.#place.reject(trigger, firing))
  }

  /** What cannot be read or recorded is answered so that the sender comes again. */
  async #recorded<T>(trigger: Trigger | null, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (isLasting(error)) throw error
      this.#place.warn(trigger, messageOf(error).split('\n', 1)[0]!)
      throw unavailable('the delivery cannot be recorded now', error)
    }
  }
}

export const noHook = () => new CadreError('not_found', 'there is no hook at this address')

const unavailable = (message: string, cause?: unknown): CadreError =>
  new CadreError('unavailable', `${message}: send it again later`, { retryAfter: RETRY_S, cause })

const handshake = ({ contentType, body }: Handshake): Response =>
  new Response(body, { headers: { 'content-type': contentType, 'x-content-type-options': 'nosniff' } })
