// The ledger of outside writes. An entry of a `once` action has a receipt before its first byte leaves, so that a crash
// cannot hide that it may have been sent. Where a receipt is in doubt, the other system is asked, for as long as it may
// not show the write yet; where that cannot tell, a person is asked. Nothing is sent again silently.

import type { AgentResult } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { settle } from '../../agent/settling.ts'
import { type Masked, maskedJson } from '../../secrets/masked.ts'
import { type BootClock, elapsedSince, parse, type ReceiptRow } from '../core/core.ts'
import { textOf } from '../steps/steps.ts'
import type { Store } from '../store/store.ts'

/** An entry may or may not have been written, and only a person can find out. */
export class UnknownWrite extends Error {
  override readonly name = 'UnknownWrite'
  readonly entry: string
  /** What was sent, for the person who looks for it; empty where the entry does not say it. */
  readonly sent: string

  constructor({ entry, sent }: Pick<Write, 'entry' | 'sent'>, message: string, cause?: unknown) {
    super(message, { cause })
    this.entry = entry
    this.sent = sent
  }
}

/** What the other system shows of an entry, and what else there carries its mark. */
export interface Found {
  result: AgentResult
  copies: Copy[]
}

export interface Copy {
  id: string | null
  url: string | null
}

/** An attempt that waits for the other system to settle. */
export interface Hold {
  /** The time of the attempt stands still from now on. */
  begin(): void
  /** Gives the slot back, stops the clocks, and shows what is waited for. May be called again. */
  wait(reason: string, until: Date): Promise<void>
  /** Goes on, with a slot. Does nothing for an attempt that does not wait. */
  goOn(): Promise<void>
}

export interface Write {
  runId: string
  position: number
  attempt: number
  entry: string
  /** What messages call it: the entry, or the phase whose only call it is. */
  label: string
  /** The agent as the team calls it. */
  agent: string
  /** The request without what may be secret, for a person; empty where the entry does not say it. */
  sent: string
  /** Aborted by a cancel or by the stop of the daemon, but not by the clock of the attempt. */
  stopped: AbortSignal
  mask<T>(value: T): Masked<T>
  /** Sends it, without what an earlier attempt has done of it. */
  send(delivered: AgentResult | null): Promise<AgentResult>
  /** Whether everything that was sent so far only read, so that nothing can have been written. */
  onlyRead(): boolean
  find?: (() => Promise<Found | null>) | undefined
  /** Whether `find` sees every write at once, so that what it does not see was not written. */
  seesAtOnce: boolean
  /** Milliseconds after the end of a request from which on its absence counts. */
  settles: number
  hold: Hold
  /** What a later look needs, as JSON that may hold secrets. */
  call(): string
}

interface Parts {
  store: Store
  /** Applies a change; the promise settles once it is on disk. */
  write<T>(change: () => T): Promise<T>
  now: () => number
  bootClock: BootClock
  /** What replaces the settling time of every action, in milliseconds. */
  settle: () => number | undefined
  /** Called for each receipt that changes, inside the change. */
  changed: (runId: string, position: number, entry: string) => void
  /** Encrypts the call of an entry for the table of looks. */
  seal(write: Write): Uint8Array
  /** Called when something has to be looked for later, inside the change. */
  kept(): void
}

export class Ledger {
  readonly #parts: Parts
  readonly #store: Store

  constructor(parts: Parts) {
    this.#parts = parts
    this.#store = parts.store
  }

  /**
   * Writes an entry at most once over all attempts. Returns the recorded result when it has already been written.
   * Throws UnknownWrite, or what `send` threw when the write did not happen: when the agent says so, when only reads were
   * sent, or when the other system does not show it after the settling time.
   */
  async once(write: Write): Promise<Masked<AgentResult>> {
    const { attempt, entry } = write
    const receipt = this.#store.receipts.get(write)
    if (receipt?.state === 'done') return parse<Masked<AgentResult>>(receipt.result)!
    if (receipt && receipt.state !== 'partial') {
      const isOrdered = receipt.state === 'presumed' && receipt.ended === null
      const found = await (isOrdered ? this.#byOrder(write) : this.#beforeAgain(write, receipt))
      if (found) return this.#confirm(write, found)
      await write.hold.goOn()
    }
    const opened = await this.#record(write, () =>
      this.#store.receipts.send(write, attempt, this.#parts.now(), this.#moment()),
    )
    if (!opened) {
      throw new AgentError(`attempt ${attempt} has ended: ${write.label} was not sent`, { code: 'aborted', sent: 'no' })
    }
    let result: AgentResult
    try {
      result = await write.send(parse<AgentResult>(this.#store.receipts.get(write)?.result ?? null))
    } catch (thrown) {
      const { partial, sent } = thrown instanceof AgentError ? thrown : {}
      const part = partial ? write.mask(partial) : null
      if (part && sent !== 'unknown') {
        await this.#record(write, () => this.#store.receipts.part(write, attempt, part))
        throw thrown
      }
      if ((thrown instanceof AgentError && thrown.sent === 'no') || write.onlyRead()) {
        await this.#record(write, () => this.#store.receipts.refuse(write, attempt))
        throw thrown
      }
      const ended = await this.#lose(write, attempt, part)
      const doubt = `${write.label} may have been written: ${textOf(thrown)}`
      if (write.stopped.aborted) throw new UnknownWrite({ entry, sent: write.sent }, doubt, thrown)
      const found = await this.#settle(write, ended, doubt, thrown)
      if (found) return this.#confirm(write, found)
      throw thrown
    }
    return this.#confirm(write, { result, copies: [] }, receipt !== null)
  }

  /** A person wants it sent again. What is there by now is not, but where the other system cannot tell, that person can. */
  async #byOrder(write: Write): Promise<Found | null> {
    write.hold.begin()
    const found = (await write.find?.().catch(() => null)) ?? null
    if (found) return found
    if (write.stopped.aborted) throw new UnknownWrite(write, `${write.label} was not sent again`)
    await this.#record(write, () => this.#store.receipts.clear(write))
    return null
  }

  /** What an earlier attempt left is found, or the entry may be sent again. */
  async #beforeAgain(write: Write, receipt: ReceiptRow): Promise<Found | null> {
    const doubt = `an earlier attempt may have written ${write.label}, and its reply was lost`
    if (receipt.state !== 'presumed') {
      // A process that was killed while it sent has left nothing to look by.
      if (receipt.state === 'unknown') await this.#record(write, () => this.#keepLook(write))
      const found = await this.#settle(write, await this.#endOf(write, receipt), doubt)
      if (found) return found
      const left = this.#store.receipts.get(write)
      if (left === null || left.state === 'partial') return null
    }
    // Its absence was concluded by time alone, so it is looked for again immediately before it is sent again.
    return this.#settle(write, Number.NEGATIVE_INFINITY, doubt)
  }

  /** When the request behind a receipt in doubt ended. Where that is not known, now at the latest. */
  async #endOf(write: Write, receipt: ReceiptRow): Promise<number> {
    if (receipt.state === 'sent') return this.#lose(write, receipt.attempt)
    if (elapsedSince({ boot: receipt.boot, at: receipt.ended }, this.#parts.bootClock) !== null) return receipt.ended!
    const moment = this.#moment()
    await this.#record(write, () => this.#store.receipts.settleFrom(write, moment))
    return moment.at
  }

  async #lose(write: Write, sentBy: number, part: Masked<AgentResult> | null = null): Promise<number> {
    const moment = this.#moment()
    const known = { request: write.mask(write.sent), part }
    await this.#record(write, () => {
      this.#store.receipts.lose(write, sentBy, moment, known)
      this.#keepLook(write)
    })
    return moment.at
  }

  /**
   * Asks the other system about an entry whose request ended at `ended`: at once, then at growing distances, and when
   * the settling time is over. Null: it does not show the write, which counts now.
   */
  async #settle(write: Write, ended: number, doubt: string, cause?: unknown): Promise<Found | null> {
    if (!write.find) throw new UnknownWrite(write, doubt, cause)
    write.hold.begin()
    const { bootClock } = this.#parts
    const settled = await settle({
      ...{ find: write.find, seesAtOnce: write.seesAtOnce, ended, stopped: write.stopped },
      settles: this.#parts.settle() ?? write.settles,
      now: () => bootClock.now(),
      pause: (ms, signal) => bootClock.pause(ms, signal),
      waits: ms => write.hold.wait(`asks ${write.agent} whether ${write.label} was written`, new Date(Date.now() + ms)),
    })
    if (settled === 'absent') {
      await this.#absent(write)
      return null
    }
    if (settled === 'stopped') throw new UnknownWrite(write, doubt, cause)
    if ('found' in settled) return settled.found
    throw new UnknownWrite(write, `${doubt}; asking for it failed: ${textOf(settled.failed)}`, settled.failed)
  }

  #absent(write: Write): Promise<void> {
    const { receipts } = this.#store
    return this.#record(write, () => {
      if (write.seesAtOnce) return receipts.disprove(write)
      receipts.presume(write, this.#parts.now())
      this.#keepLook(write)
    })
  }

  /** Keeps what a later look needs. A look-up that sees every write at once needs none. */
  #keepLook(write: Write): void {
    if (!write.find || write.seesAtOnce) return
    this.#store.looks.put(write, this.#parts.seal(write), write.settles)
    this.#parts.kept()
  }

  #moment(): { boot: string; at: number } {
    const { bootClock } = this.#parts
    return { boot: bootClock.boot, at: bootClock.now() }
  }

  #record<T>({ runId, position, entry }: Write, change: () => T): Promise<T> {
    return this.#parts.write(() => {
      const result = change()
      this.#parts.changed(runId, position, entry)
      return result
    })
  }

  async #confirm(write: Write, { result, copies }: Found, isDoubtful = true): Promise<Masked<AgentResult>> {
    const recorded = write.mask(result)
    const others = copies.length > 0 ? maskedJson(write.mask(copies)) : null
    await this.#record(write, () => {
      const { receipts, looks } = this.#store
      receipts.confirm(write, { result: recorded, at: this.#parts.now(), copies: others })
      if (!isDoubtful) return
      // What was sent once only exists once. Otherwise what was sent before may still arrive.
      if (receipts.get(write)?.presumed_at === null) looks.drop(write)
      else this.#keepLook(write)
    })
    await write.hold.goOn()
    return recorded
  }
}
