// The ledger of outside writes. An entry of a `once` action has a receipt before its first byte leaves, so that a crash
// cannot hide that it may have been sent. Where a receipt is in doubt, the other system is asked; where that cannot
// tell, a person is asked. Nothing is sent again silently.

import type { AgentResult } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/agent-error.ts'
import { Recent } from '../../recent.ts'
import { pause } from '../../wait.ts'
import { parse } from '../core/core.ts'
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

export interface Write {
  runId: string
  position: number
  attempt: number
  entry: string
  /** What messages call it: the entry, or the phase whose only call it is. */
  label: string
  /** The request without what may be secret, for a person; empty where the entry does not say it. */
  sent: string
  /** Aborted by a cancel or by the stop of the daemon, but not by the clock of the attempt. */
  stopped: AbortSignal
  /** Masks secrets, as in every recorded result. */
  mask(result: AgentResult): AgentResult
  send(): Promise<AgentResult>
  /** Whether everything that was sent so far only read, so that nothing can have been written. */
  onlyRead(): boolean
  find?: (() => Promise<AgentResult | null>) | undefined
}

const SETTLE_MS = 2_000
/** Maximum number of interrupted sends that this process remembers. */
const MOST_REMEMBERED = 10_000

interface Parts {
  store: Store
  /** Applies a change; the promise settles once it is on disk. */
  write<T>(change: () => T): Promise<T>
  now: () => number
  /**
   * Milliseconds for which the other system may still work on a request that was cut off: until then, its answer that
   * nothing was written proves nothing. Default 2,000.
   */
  settle?: number | undefined
  /** Called for each receipt that changes, inside the change. */
  changed: (runId: string, position: number, entry: string) => void
}

export class Ledger {
  readonly #parts: Parts
  readonly #store: Store
  /** When sends of this process were cut off. Any other send happened before the process began. */
  readonly #cutOff = new Recent<string, number>(MOST_REMEMBERED)
  readonly #began = performance.now()

  constructor(parts: Parts) {
    this.#parts = parts
    this.#store = parts.store
  }

  /**
   * Writes an entry at most once over all attempts. Returns the recorded result when it has already been written.
   * Throws UnknownWrite, or what `send` threw when the write certainly did not happen: when the agent says so, or when
   * only reads were sent.
   */
  async once(write: Write): Promise<AgentResult> {
    const { runId, position, attempt, entry } = write
    const receipt = this.#store.receipts.of(runId, position).find(row => row.entry === entry)
    if (receipt?.state === 'done') return parse<AgentResult>(receipt.result)!
    if (receipt) {
      const doubt = `an earlier attempt may have written ${write.label}, and its reply was lost`
      const found = await this.#ask(write, receipt.attempt, doubt)
      if (found) return this.#confirm(write, found)
    }
    const opened = await this.#record(write, () =>
      this.#store.receipts.insert(runId, position, entry, attempt, this.#parts.now()),
    )
    if (!opened) {
      throw new AgentError(`attempt ${attempt} has ended: ${write.label} was not sent`, { code: 'aborted', sent: 'no' })
    }
    let result: AgentResult
    try {
      result = await write.send()
    } catch (thrown) {
      if ((thrown instanceof AgentError && thrown.sent === 'no') || write.onlyRead()) {
        await this.#clear(write, attempt)
        throw thrown
      }
      this.#cutOff.set(placeOf(write), performance.now())
      await this.#record(write, () => this.#store.receipts.doubt(runId, position, entry, attempt))
      const found = await this.#ask(write, attempt, `${write.label} may have been written: ${textOf(thrown)}`, thrown)
      if (found) return this.#confirm(write, found)
      throw thrown
    }
    return this.#confirm(write, result)
  }

  /**
   * Asks the other system about an entry that attempt `sentBy` left in doubt. Null: the write did not happen, and the
   * receipt is removed. Asks at once, and a second time when the request may still have been under way.
   */
  async #ask(write: Write, sentBy: number, doubt: string, cause?: unknown): Promise<AgentResult | null> {
    if (!write.find) throw new UnknownWrite(write, doubt, cause)
    let found: AgentResult | null
    try {
      found = await write.find()
      const since = this.#cutOff.get(placeOf(write)) ?? this.#began
      const left = since + (this.#parts.settle ?? SETTLE_MS) - performance.now()
      if (!found && left > 0) {
        await pause(left, write.stopped)
        // An answer that comes too early proves nothing, so nobody is asked when the wait was cut short.
        write.stopped.throwIfAborted()
        found = await write.find()
      }
    } catch (thrown) {
      throw new UnknownWrite(write, `${doubt}; asking for it failed: ${textOf(thrown)}`, thrown)
    }
    if (!found) await this.#clear(write, sentBy)
    return found
  }

  #clear(write: Write, sentBy: number): Promise<void> {
    const { runId, position, entry } = write
    return this.#record(write, () => this.#store.receipts.clear(runId, position, entry, sentBy))
  }

  #record<T>({ runId, position, entry }: Write, change: () => T): Promise<T> {
    return this.#parts.write(() => {
      const result = change()
      this.#parts.changed(runId, position, entry)
      return result
    })
  }

  async #confirm(write: Write, result: AgentResult): Promise<AgentResult> {
    const recorded = write.mask(result)
    const { runId, position, entry } = write
    const { id = null, url = null } = recorded.external ?? {}
    await this.#record(write, () =>
      this.#store.receipts.confirm(runId, position, entry, {
        result: recorded,
        id,
        url,
        at: this.#parts.now(),
      }),
    )
    return recorded
  }
}

const placeOf = ({ runId, position, entry }: Write): string => `${runId}:${position}:${entry}`
