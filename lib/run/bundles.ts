// The bundles of runs, compiled from the rows when a run needs one. The most recent ones are kept.

import { CadreError } from '../error.ts'
import { Recent } from '../recent.ts'
import type { Bundle } from '../team/team.ts'
import type { EngineHost } from './core/core.ts'
import type { Store } from './store/store.ts'

/** Runs that have not ended hold their bundles themselves. */
const MOST_BUNDLES = 100

export class Bundles {
  readonly #store: Store
  readonly #host: EngineHost
  readonly #recent = new Recent<string, Bundle>(MOST_BUNDLES)

  constructor(store: Store, host: EngineHost) {
    this.#store = store
    this.#host = host
  }

  get(id: string): Bundle {
    const known = this.#recent.get(id)
    if (known) return known
    const text = this.#store.bundles.get(id)
    if (text === null) throw new CadreError('internal', `bundle ${id} is missing in the run database`)
    return this.#recent.set(id, this.#host.restoreBundle(id, JSON.parse(text)))
  }

  /** Keeps a bundle that a caller has compiled. */
  keep(bundle: Bundle): void {
    this.#recent.set(bundle.id, bundle)
  }
}
