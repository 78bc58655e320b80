// Tells accounts (`notify.on_fail`) what is about no run: an occasion of a trigger that was refused, a trigger that broke,
// and what the hub asks for. It is recorded with what it is about and sent afterwards, so that a kill loses none; what may
// have been sent is never sent again.

import type { Database } from 'bun:sqlite'
import type { NotifyEvent } from '../../agent/agent-context.ts'
import type { Catalogue } from '../../agent/catalogue.ts'
import { createContext } from '../../agent/context.ts'
import { CadreError, messageOf } from '../../error.ts'
import type { Log } from '../../log/log.ts'
import { type Account, type Binding, type Commit, type ContextHooks, deliver, type Payload } from '../../run/engine.ts'
import { maskedJson } from '../../secrets/masked.ts'
import { accountOf, noAgent, type Settings } from '../../settings/settings.ts'
import type { Mask } from '../access/mask.ts'
import { type Tell, TellTable } from './tell-table.ts'

interface Parts {
  home: string
  db: Database
  commit: Commit
  settings: Pick<Settings, 'of' | 'network' | 'onFail' | 'refused'>
  catalogue(): Catalogue
  mask: Mask
  log: Log
  /** The lived time of the home. */
  lived(): number
}

/** What is told: a whole sentence, and what it is about. */
export interface News {
  text: string
  /** The id of what it is about, of which an account hears only so often. */
  subject: string
  /** `@scope/name`, or where a team stands. */
  team: string
  about: Pick<NotifyEvent['run'], 'id' | 'name' | 'state' | 'reason'>
}

const TIMEOUT_MS = 60_000
const HOUR_MS = 3_600_000
/** How often an account hears of one subject: a sender may repeat what is refused many times in a second. */
const MOST_AN_HOUR = 20

export class Tells {
  readonly #parts: Parts
  readonly #table: TellTable
  readonly #stop = new AbortController()
  readonly #sending = new Map<string, Promise<void>>()
  #begun = false

  constructor(parts: Parts) {
    this.#parts = parts
    this.#table = new TellTable(parts.db)
  }

  /** Records what the accounts of the home are told. Called in the transaction of what it is about. */
  record(news: News): void {
    for (const account of this.#parts.settings.onFail()) {
      const { agent, channel } = account
      const told = this.#table.countSince(news.subject, `${agent}:${channel}`, Date.now() - HOUR_MS)
      if (told >= MOST_AN_HOUR) continue
      const text =
        told === MOST_AN_HOUR - 1 ? `${news.text}; what else happens of it within the hour is not told` : news.text
      this.#insert(Bun.randomUUIDv7(), account, { ...news, text })
    }
  }

  /** Sends what is recorded, to each account in turn. Returns at once. */
  sendAll(): void {
    this.#begin()
    for (const { id, account } of this.#table.pending()) this.#send(id, account)
  }

  /**
   * Tells one account at the request of the hub, once however often it is called with the same id. Throws
   * `invalid_request` for an account that cannot be told, and `conflict` when it was not delivered or nobody knows.
   */
  async tell(id: string, account: string, news: News): Promise<void> {
    const { commit } = this.#parts
    const to = accountOf(account)
    if (!to) throw new CadreError('invalid_request', `${account} must be an account "agent:channel"`)
    this.#begin()
    await commit(() => this.#insert(id, to, news))
    if (this.#table.get(id)?.state === 'pending') await this.#send(id, account)
    this.#stop.signal.throwIfAborted()
    const { state, error } = this.#table.get(id)!
    if (state === 'delivered') return
    if (state === 'pending') throw new CadreError('unavailable', 'it could not be recorded that it is told')
    const what = state === 'failed' ? 'was not told' : 'may not have been told'
    throw new CadreError('conflict', `${account} ${what}: ${error ?? 'what came of it could not be recorded'}`)
  }

  /** Aborts what is being sent, and resolves when that has ended. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#sending.values())
  }

  /** Nothing that an earlier process may have sent is sent again. */
  #begin(): void {
    if (this.#begun) return
    this.#begun = true
    this.#table.doubtAll()
    this.#table.forgetOld(this.#parts.lived())
  }

  #insert(id: string, { agent, channel }: Account, { text, subject, team, about }: News): void {
    const { mask, lived } = this.#parts
    const event: NotifyEvent = { name: 'on_fail', team, run: about, message: text, outputs: null }
    const payload: Payload = { agent, entry: { channels: [channel] }, event }
    const row = { id, account: `${agent}:${channel}`, subject, payload: maskedJson(mask.redactor().json(payload)) }
    this.#table.insert(row, Date.now(), lived())
  }

  #send(id: string, account: string): Promise<void> {
    const before = this.#sending.get(account) ?? Promise.resolve()
    const mine = before.then(async () => {
      const tell = this.#table.get(id)
      // An earlier call may have sent it meanwhile.
      if (tell?.state === 'pending' && !this.#stop.signal.aborted) await this.#deliver(tell)
    })
    const safe = mine.catch(error => {
      if (!this.#stop.signal.aborted)
        this.#parts.log.warn('an account could not be told', { account, error: messageOf(error) })
    })
    this.#sending.set(account, safe)
    void safe.finally(() => this.#sending.get(account) === safe && this.#sending.delete(account))
    return safe
  }

  async #deliver({ id, account, payload: text }: Tell): Promise<void> {
    const { commit, catalogue, settings, mask, log } = this.#parts
    const payload = JSON.parse(text) as Payload
    const { agent } = payload
    await deliver({
      ...payload,
      key: id,
      timeout: TIMEOUT_MS,
      stop: this.#stop.signal,
      find: async () => {
        const all = await catalogue().load([agent])
        const definition = all.get(agent)
        if (!definition) throw new CadreError('invalid_request', noAgent(agent, all))
        return { definition, settings: await settings.of(agent, definition, this.#stop.signal) }
      },
      context: (binding, hooks) => this.#context(payload, binding, hooks),
      mask: value => mask.redactor().json(value),
      set: (state, error) => commit(() => this.#table.set(id, state, error)),
      failed: said => log.warn('an account was not told', { account, error: said }),
    })
  }

  /** The context of an agent without a run: it may use its settings, the signal and fetch. */
  #context({ agent, event }: Payload, { definition, settings, effect, key, signal }: Binding, hooks: ContextHooks) {
    const { home, settings: all, mask, log } = this.#parts
    const { id, name } = event.run
    return createContext({
      agent,
      settings,
      network: { ...all.network(), literalOrigins: [] },
      addresses: () => definition.addresses?.(settings) ?? [],
      redactor: mask.redactor(),
      conceal: value => mask.conceal(value),
      signal,
      log: (message, fields) => log.info(message, fields),
      stateDir: home,
      workspace: home,
      outside: false,
      key,
      attempt: 1,
      run: { id, name, team: event.team, created_at: Date.now(), url: null },
      phase: { name: 'notify' },
      effect,
      replied: status => {
        if (status === 401) all.refused(agent)
      },
      ...hooks,
    })
  }
}
