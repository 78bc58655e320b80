// The agents of a daemon. Runs that begin use the newest ones, and each run keeps those that it began with.

import type { Catalogue } from '../../agent/catalogue.ts'
import { sharedLook } from '../../shared-look.ts'

/** When runs start by the thousand, looking at the folders for each of them would cost more than the start. */
const LOOK_PAUSE_MS = 2

export class AgentVersions {
  #newest: Catalogue
  readonly #openRoots: () => readonly string[]
  readonly #changed: () => void
  /** The catalogues of top runs that began with others than the newest. */
  #begunWith = new Map<string, Catalogue>()
  /** One look after the other: one that began earlier and takes longer would bring older agents back. */
  #looking: Promise<void> = Promise.resolve()
  readonly #looks = sharedLook(() => {
    const before = this.#looking.catch(() => {})
    this.#looking = before.then(() => this.#look())
    return this.#looking
  }, LOOK_PAUSE_MS)

  /** `openRoots` returns the top runs that have not ended; `changed` is called when the newest agents are others. */
  constructor(catalogue: Catalogue, openRoots: () => readonly string[], changed: () => void) {
    this.#newest = catalogue
    this.#openRoots = openRoots
    this.#changed = changed
  }

  /** The agents as they were when somebody last called `renew`. */
  get newest(): Catalogue {
    return this.#newest
  }

  /** The agents of a top run. */
  of(rootId: string): Catalogue {
    return this.#begunWith.get(rootId) ?? this.#newest
  }

  /** Looks for agents that were added, changed or removed. */
  renew(): Promise<void> {
    return this.#looks(undefined)
  }

  async #look(): Promise<void> {
    const next = this.#newest.current()
    if (next === this.#newest) return
    await next.load()
    this.#begunWith = new Map(this.#openRoots().map(id => [id, this.of(id)]))
    this.#newest = next
    this.#changed()
  }
}
