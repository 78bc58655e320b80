// The ledger of outside writes. An entry of a `once` action has a receipt before its first byte leaves, so that a crash
// can never hide that it may have been sent. Where the receipt is in doubt the outside is asked; where the outside
// cannot tell, a person is. Nothing is sent again silently.

import type { AgentResult } from '../agent/define.ts'
import { AgentError } from '../agent/define.ts'
import { messageOf } from '../error.ts'
import type { Journal } from './journal.ts'
import { clearReceipt, confirmReceipt, doubtReceipt, insertReceipt, receiptsOf } from './receipts.ts'
import { parse } from './records.ts'
import type { RunStore } from './store.ts'

/** An entry may or may not have been written, and nobody but a person can tell. */
export class UnknownWrite extends Error {
  override readonly name = 'UnknownWrite'
  readonly entry: string

  constructor(entry: string, message: string, cause?: unknown) {
    super(message, { cause })
    this.entry = entry
  }
}

export interface Write {
  runId: string
  position: number
  attempt: number
  entry: string
  /** As results are recorded: secrets masked. */
  mask(result: AgentResult): AgentResult
  send(): Promise<AgentResult>
  find?: (() => Promise<AgentResult | null>) | undefined
}

export class Ledger {
  readonly #journal: Journal
  readonly #store: RunStore
  readonly #now: () => number
  readonly #changed: (runId: string, position: number, entry: string) => void

  /** `changed` is told of each receipt that changes, inside the change. */
  constructor(
    journal: Journal,
    store: RunStore,
    now: () => number,
    changed: (runId: string, position: number, entry: string) => void,
  ) {
    this.#journal = journal
    this.#store = store
    this.#now = now
    this.#changed = changed
  }

  /**
   * Writes an entry at most once over all attempts. Gives the recorded result where it is done already.
   * Throws UnknownWrite, or what `send` threw when it certainly did not happen.
   */
  async once(write: Write): Promise<AgentResult> {
    const { runId, position, attempt, entry } = write
    const receipt = receiptsOf(this.#store, runId, position).find(row => row.entry === entry)
    if (receipt?.state === 'done') return parse<AgentResult>(receipt.result)!
    if (receipt) {
      const found = await this.#ask(write, `an earlier attempt may have written ${entry}, and its reply was lost`)
      if (found) return this.#confirm(write, found)
    }
    const opened = await this.#record(write, () =>
      insertReceipt(this.#store, runId, position, entry, attempt, this.#now()),
    )
    if (!opened) {
      throw new AgentError(`attempt ${attempt} is over: ${entry} was not sent`, { code: 'aborted', sent: 'no' })
    }
    let result: AgentResult
    try {
      result = await write.send()
    } catch (thrown) {
      if (thrown instanceof AgentError && thrown.sent === 'no') {
        await this.#clear(write)
        throw thrown
      }
      await this.#record(write, () => doubtReceipt(this.#store, runId, position, entry))
      const found = await this.#ask(write, `${entry} may have been written: ${messageOf(thrown)}`, thrown)
      if (found) return this.#confirm(write, found)
      throw thrown
    }
    return this.#confirm(write, result)
  }

  /** What the outside knows of a doubtful entry. Null: it did not happen, and the receipt is cleared. */
  async #ask(write: Write, doubt: string, cause?: unknown): Promise<AgentResult | null> {
    if (!write.find) throw new UnknownWrite(write.entry, doubt, cause)
    let found: AgentResult | null
    try {
      found = await write.find()
    } catch (thrown) {
      throw new UnknownWrite(write.entry, `${doubt}; asking for it failed: ${messageOf(thrown)}`, thrown)
    }
    if (!found) await this.#clear(write)
    return found
  }

  #clear(write: Write): Promise<void> {
    const { runId, position, entry } = write
    return this.#record(write, () => clearReceipt(this.#store, runId, position, entry))
  }

  #record<T>({ runId, position, entry }: Write, change: () => T): Promise<T> {
    return this.#journal.write(() => {
      const result = change()
      this.#changed(runId, position, entry)
      return result
    })
  }

  async #confirm(write: Write, result: AgentResult): Promise<AgentResult> {
    const recorded = write.mask(result)
    const { runId, position, entry } = write
    const { id = null, url = null } = recorded.external ?? {}
    await this.#record(write, () =>
      confirmReceipt(this.#store, runId, position, entry, { result: recorded as never, id, url, at: this.#now() }),
    )
    return recorded
  }
}
