// The ledger of a home that may be a copy. In a tree that had not ended when the home was copied, the other home may have
// written any entry, so each entry is doubted once before the ledger gets it. Entries of other trees cost one look-up in
// the table of copies.

import type { AgentResult } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import type { Masked } from '../../secrets/masked.ts'
import type { Store } from '../store/store.ts'
import { type Found, type Ledger, UnknownWrite, type Write } from './ledger.ts'

interface Parts {
  store: Store
  ledger: Pick<Ledger, 'once'>
  /** Applies a change; the promise settles once it is on disk. */
  write<T>(change: () => T): Promise<T>
  now: () => number
  /** Called for each receipt that changes, inside the change. */
  changed: (runId: string, position: number, entry: string) => void
}

export class CopiedWrites {
  readonly #parts: Parts
  /** The look-ups under way, and whether one asked for an identity that this home does not know. */
  readonly #lookups = new Map<string, { lacksIdentity: boolean }>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async once(write: Write): Promise<Masked<AgentResult>> {
    const { store, ledger } = this.#parts
    const tree = store.copies.of(write.runId)
    if (!tree) return ledger.once(write)
    if (!(await this.#mayBeWritten(write))) return ledger.once(write)
    try {
      // The other home knows this sub-run by another id, so a search for our key would find nothing and prove nothing.
      const find = tree.isNew ? undefined : write.find && (() => this.#find(write, write.find!))
      return await ledger.once({ ...write, seesAtOnce: false, find })
    } catch (thrown) {
      if (!(thrown instanceof UnknownWrite)) throw thrown
      const doubt = `this home was copied, and the home that it was copied from may have written ${write.label}`
      throw new UnknownWrite(write, tree.isNew || !write.find ? doubt : `${doubt}; ${thrown.message}`, thrown.cause)
    }
  }

  /** To be called when an agent asks for the identity of an entry that has none. */
  noteLackingIdentity(runId: string, position: number, entry: string): void {
    const lookup = this.#lookups.get(keyOf({ runId, position, entry }))
    if (lookup) lookup.lacksIdentity = true
  }

  /** A look-up by an identity that the other home may have chosen proves nothing when it finds nothing. */
  async #find(write: Write, find: NonNullable<Write['find']>): Promise<Found | null> {
    const lookup = { lacksIdentity: false }
    this.#lookups.set(keyOf(write), lookup)
    try {
      const found = await find()
      if (found || !lookup.lacksIdentity) return found
      // A search that lags may still show the write.
      const message = 'it was not found, but may be there under an id that only the other home knows'
      throw new AgentError(message, { retryable: true })
    } finally {
      this.#lookups.delete(keyOf(write))
    }
  }

  /** Doubts an entry at its first attempt in this home. Returns whether it may have been written before. */
  #mayBeWritten(of: Write): Promise<boolean> {
    const { store, write, now, changed } = this.#parts
    const { runId, position, entry, attempt } = of
    return write(() => {
      if (store.copies.noteDoubt(runId, position, entry)) {
        store.receipts.doubt(of, attempt, now())
        changed(runId, position, entry)
      }
      const receipt = store.receipts.get(of)
      return receipt !== null && receipt.state !== 'done'
    })
  }
}

const keyOf = ({ runId, position, entry }: Pick<Write, 'runId' | 'position' | 'entry'>): string =>
  `${runId}:${position}:${entry}`
