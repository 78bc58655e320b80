// The drain of a daemon: nothing new begins, and what is executed may end. What waits for a person, for a time or for
// another system does not hold it up: that goes on at the next start.

import { Limit } from '../../lived-time.ts'
import type { Engine } from '../../run/engine.ts'

const LOOK_MS = 50
/** How often in a row nothing must be under way: what ends may begin something that follows from it, such as a message. */
const LOOKS = 3

export class Drain {
  readonly #engine: Engine
  readonly #over = Promise.withResolvers<void>()
  #limit: Limit
  #isOver = false

  /** Begins. It is over when nothing is executed any more, after `ms` at the latest. */
  constructor(engine: Engine, ms: number) {
    this.#engine = engine
    engine.drain()
    this.#limit = new Limit(ms, this.end)
    void this.#watch()
  }

  get over(): Promise<void> {
    return this.#over.promise
  }

  /** Milliseconds after which it is over. */
  get left(): number {
    return Math.ceil(this.#limit.left)
  }

  /** What it waits for. */
  get waitsFor(): Engine['underWay'] {
    return this.#engine.underWay
  }

  /** It is over after `ms` from now at the latest. */
  within(ms: number): void {
    this.#limit.end()
    if (!this.#isOver) this.#limit = new Limit(ms, this.end)
  }

  readonly end = (): void => {
    this.#isOver = true
    this.#limit.end()
    this.#over.resolve()
  }

  async #watch(): Promise<void> {
    for (let quiet = 0; quiet < LOOKS && !this.#isOver; ) {
      await Bun.sleep(LOOK_MS)
      quiet = this.#engine.underWay.length === 0 ? quiet + 1 : 0
    }
    if (!this.#isOver) await this.#engine.untilQuiet()
    this.end()
  }
}
