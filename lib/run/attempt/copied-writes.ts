// The ledger of a home that may have been copied. In a tree that had not ended when the copy was made, the home at the
// other place may have written anything: each entry is in doubt once, before the ledger sees it. Other trees pay one
// look-up for each outside write.

import type { AgentResult } from '../../agent/agent-context.ts'
import type { Store } from '../store/store.ts'
import { type Ledger, UnknownWrite, type Write } from './ledger.ts'

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

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async once(write: Write): Promise<AgentResult> {
    const { store, ledger } = this.#parts
    const tree = store.copies.of(write.runId)
    if (!tree) return ledger.once(write)
    if (!(await this.#doubt(write))) return ledger.once(write)
    try {
      // The other home knows this sub-run by another id, so a search for our key would find nothing and prove nothing. In
      // other runs it may have sent the entry by an identity that is not known here, so that null is no proof either.
      return await ledger.once({ ...write, seesAtOnce: false, ...(tree.isNew && { find: undefined }) })
    } catch (thrown) {
      if (!(thrown instanceof UnknownWrite)) throw thrown
      const doubt = `this home was copied, and the home that it was copied from may have written ${write.label}`
      throw new UnknownWrite(write, tree.isNew || !write.find ? doubt : `${doubt}; ${thrown.message}`, thrown.cause)
    }
  }

  /** Whether it may have been written before. */
  #doubt(of: Write): Promise<boolean> {
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
