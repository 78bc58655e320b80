// Looks at the folders of the watches of a home. Only a serving daemon does. The truth is what a scan finds against what
// was seen; events of the file system only bring a scan forward.

import { failpoint } from '../../failpoint.ts'
import type { Trigger } from '../../firing/trigger.ts'
import type { WatchSpec } from '../../triggers/watch/spec.ts'
import { isOfCopy } from '../home/copied-triggers.ts'
import type { Daemon } from '../runs/daemon.ts'
import type { Home } from './at-home.ts'
import { FolderWatch } from './folder-watch.ts'
import { inLane } from './tick.ts'
import type { Triggers } from './triggers.ts'
import { giveBack } from './watch-claim.ts'

const DAY_MS = 86_400_000
/** For how long a file is remembered that is gone. A network folder may come back after a holiday. */
const GONE_DAYS = 30

export class Watches {
  readonly #home: Home
  readonly #triggers: Triggers
  readonly #folders = new Map<string, FolderWatch>()
  readonly #clock: () => number
  #wake = () => {}
  #isClosed = false
  #isGivingBack = false
  #forgotAt = 0

  /** `clock`: milliseconds that only run forward, by which files rest. */
  constructor(daemon: Daemon, triggers: Triggers, clock: () => number = () => performance.now()) {
    this.#triggers = triggers
    this.#home = { daemon, tables: triggers.tables }
    this.#clock = clock
  }

  /** One look at each folder whose turn has come. Nothing that one fails with keeps the others from theirs. */
  async look(): Promise<void> {
    const { daemon, tables } = this.#home
    if (this.#isClosed || daemon.halted !== null) return
    this.#forgetGone()
    // The copy of a home has not seen what came since: a person says what becomes of it.
    const live = tables.triggers.watches().filter(({ paused }) => !isOfCopy(paused))
    this.#keepOnly(live)
    await this.#giveBack()
    await Promise.all(live.map(({ id }) => this.#lookAt(id)))
  }

  /** The same without waiting, so that a slow folder holds up nothing. */
  begin(): void {
    this.look().catch(error => {
      if (!this.#isClosed) this.#home.daemon.log.warn('the folders of watches could not be looked at', { error })
    })
  }

  /** Calls `wake` when something happens in a folder. Returns what ends that, and all looks. */
  listen(wake: () => void): () => void {
    this.#wake = wake
    return () => {
      this.#isClosed = true
      this.#keepOnly([])
    }
  }

  async #lookAt(id: string): Promise<void> {
    const known = this.#folders.get(id)
    const folder = known ?? new FolderWatch(this.#home, this.#clock, () => this.#wake())
    this.#folders.set(id, folder)
    if (!folder.isDue) return
    await inLane(this.#home.daemon, this.#triggers, id, (trigger, getsOn) =>
      folder.look(trigger as Trigger<WatchSpec>, getsOn),
    )
  }

  #keepOnly(live: readonly Pick<Trigger, 'id'>[]): void {
    const ids = new Set(live.map(({ id }) => id))
    for (const [id, folder] of this.#folders) {
      if (ids.has(id)) continue
      folder.close()
      this.#folders.delete(id)
    }
  }

  /** Files that were claimed for a run that does not begin. */
  async #giveBack(): Promise<void> {
    if (this.#isGivingBack) return
    this.#isGivingBack = true
    try {
      for (const claim of this.#home.tables.watches.abandoned()) {
        failpoint()
        await giveBack(this.#home, claim)
      }
    } finally {
      this.#isGivingBack = false
    }
  }

  #forgetGone(): void {
    const { daemon, tables } = this.#home
    const now = daemon.ages.believed
    if (now - this.#forgotAt < DAY_MS) return
    this.#forgotAt = now
    tables.watches.forgetGone(now - GONE_DAYS * DAY_MS)
  }
}
