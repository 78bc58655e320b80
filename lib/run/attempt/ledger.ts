// The ledger of writes to other systems. An entry of a `once` action has a receipt before its first byte is sent, so a
// crash cannot hide that the entry may have been written. For a receipt in doubt the ledger asks the other system until
// the settling time is over, and then a person. It never sends an entry again silently.

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
  /** The request, for the person who looks for the write; empty where the entry does not say it. */
  readonly sent: string

  constructor({ entry, sent }: Pick<Write, 'entry' | 'sent'>, message: string, cause?: unknown) {
    super(message, { cause })
    this.entry = entry
    this.sent = sent
  }
}

/** The write of an entry that the other system shows, and all other objects there that carry its mark. */
export interface Found {
  result: AgentResult
  copies: Copy[]
}

export interface Copy {
  id: string | null
  url: string | null
}

/** How an attempt waits for the other system to settle. */
export interface SettlingWait {
  /** Stops the clock of the attempt. */
  stopClock(): void
  /** Gives the slot back, stops the clocks above, and shows why the attempt waits. May be called again. */
  show(reason: string, until: Date): Promise<void>
  /** Takes a slot again, and starts the clock. Does nothing for an attempt that does not wait. */
  end(): Promise<void>
}

export interface Write {
  runId: string
  position: number
  attempt: number
  entry: string
  /** The name in messages: the entry, or the phase where that has only one call. */
  label: string
  /** The agent as the team calls it. */
  agent: string
  /** The request without what may be secret, for a person; empty where the entry does not say it. */
  sent: string
  /** Aborted by a cancel or by the stop of the daemon, but not by the clock of the attempt. */
  stopped: AbortSignal
  mask<T>(value: T): Masked<T>
  /** Sends the entry, without the part that an earlier attempt has `delivered`. */
  send(delivered: AgentResult | null): Promise<AgentResult>
  /** Whether the call has sent only reads so far, so that it cannot have written anything. */
  onlyRead(): boolean
  find?: (() => Promise<Found | null>) | undefined
  /** Whether `find` sees every write at once, so that what it does not see was not written. */
  seesAtOnce: boolean
  /** Milliseconds after the end of a request from which on its absence counts. */
  settles: number
  settling: SettlingWait
  /** The call for a later look-up, as JSON that may contain secrets. */
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
  /** Encrypts the call of an entry for the table `looks`. */
  seal(write: Write): Uint8Array
  /** Called inside the change when an entry needs a later look-up. */
  lookupKept(): void
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
      const isDecided = receipt.state === 'presumed' && receipt.ended === null
      const found = await (isDecided ? this.#findBeforeDecided(write) : this.#findBeforeResend(write, receipt))
      if (found) return this.#confirm(write, found)
      await write.settling.end()
    }
    const opened = await this.#record(write, () =>
      this.#store.receipts.send(write, attempt, this.#parts.now(), this.#bootTime()),
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
      const ended = await this.#recordLostReply(write, attempt, part)
      const doubt = `${write.label} may have been written: ${textOf(thrown)}`
      if (write.stopped.aborted) throw new UnknownWrite({ entry, sent: write.sent }, doubt, thrown)
      const found = await this.#findUntilSettled(write, ended, doubt, thrown)
      if (found) return this.#confirm(write, found)
      throw thrown
    }
    return this.#confirm(write, { result, copies: [] }, receipt !== null)
  }

  /**
   * A person has decided to send the entry again. It is not sent if the other system shows it by now; if the other
   * system cannot tell, the decision counts.
   */
  async #findBeforeDecided(write: Write): Promise<Found | null> {
    write.settling.stopClock()
    const found = (await write.find?.().catch(() => null)) ?? null
    if (found) return found
    if (write.stopped.aborted) throw new UnknownWrite(write, `${write.label} was not sent again`)
    await this.#record(write, () => this.#store.receipts.clear(write))
    return null
  }

  /** Returns what an earlier attempt has written, or null when the entry may be sent again. */
  async #findBeforeResend(write: Write, receipt: ReceiptRow): Promise<Found | null> {
    const doubt = `an earlier attempt may have written ${write.label}, and its reply was lost`
    if (receipt.state !== 'presumed') {
      // A process that was killed while it sent has kept no call for a later look-up.
      if (receipt.state === 'unknown') await this.#record(write, () => this.#keepLookup(write))
      const found = await this.#findUntilSettled(write, await this.#requestEndOf(write, receipt), doubt)
      if (found) return found
      const left = this.#store.receipts.get(write)
      if (left === null || left.state === 'partial') return null
    }
    // Only the passed time says that the entry is absent, so the other system is asked once more before the resend.
    return this.#findUntilSettled(write, Number.NEGATIVE_INFINITY, doubt)
  }

  /** When the request of a receipt in doubt ended; now where nothing says when, because it cannot have ended later. */
  async #requestEndOf(write: Write, receipt: ReceiptRow): Promise<number> {
    if (receipt.state === 'sent') return this.#recordLostReply(write, receipt.attempt)
    if (elapsedSince({ boot: receipt.boot, at: receipt.ended }, this.#parts.bootClock) !== null) return receipt.ended!
    const moment = this.#bootTime()
    await this.#record(write, () => this.#store.receipts.settleFrom(write, moment))
    return moment.at
  }

  async #recordLostReply(write: Write, sentBy: number, part: Masked<AgentResult> | null = null): Promise<number> {
    const moment = this.#bootTime()
    const known = { request: write.mask(write.sent), part }
    await this.#record(write, () => {
      this.#store.receipts.lose(write, sentBy, moment, known)
      this.#keepLookup(write)
    })
    return moment.at
  }

  /**
   * Asks the other system for an entry whose request ended at `ended`: at once, at growing distances, and when the
   * settling time is over. Returns null when the other system does not show the write, which by then proves something.
   */
  async #findUntilSettled(write: Write, ended: number, doubt: string, cause?: unknown): Promise<Found | null> {
    if (!write.find) throw new UnknownWrite(write, doubt, cause)
    write.settling.stopClock()
    const { bootClock } = this.#parts
    const settled = await settle({
      ...{ find: write.find, seesAtOnce: write.seesAtOnce, ended, stopped: write.stopped },
      settles: this.#parts.settle() ?? write.settles,
      now: () => bootClock.now(),
      pause: (ms, signal) => bootClock.pause(ms, signal),
      waits: ms =>
        write.settling.show(`asks ${write.agent} whether ${write.label} was written`, new Date(Date.now() + ms)),
    })
    if (settled === 'absent') {
      await this.#recordAbsence(write)
      return null
    }
    if (settled === 'stopped') throw new UnknownWrite(write, doubt, cause)
    if ('found' in settled) return settled.found
    throw new UnknownWrite(write, `${doubt}; asking for it failed: ${textOf(settled.failed)}`, settled.failed)
  }

  #recordAbsence(write: Write): Promise<void> {
    const { receipts } = this.#store
    return this.#record(write, () => {
      if (write.seesAtOnce) return receipts.disprove(write)
      receipts.presume(write, this.#parts.now())
      this.#keepLookup(write)
    })
  }

  /** Keeps the call for a later look-up. None is needed where `find` sees every write at once. */
  #keepLookup(write: Write): void {
    if (!write.find || write.seesAtOnce) return
    this.#store.looks.put(write, this.#parts.seal(write), write.settles)
    this.#parts.lookupKept()
  }

  #bootTime(): { boot: string; at: number } {
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
      // An entry that was sent once exists once. After a second request the first one may still arrive.
      if (receipts.get(write)?.presumed_at === null) looks.drop(write)
      else this.#keepLookup(write)
    })
    await write.settling.end()
    return recorded
  }
}
