// What looks do for one trigger has a lane of its own: a team that takes long, or for ever, holds up its own triggers only.

/** Says that the work of a lane gets on, so that its time begins anew. */
export type GetsOn = () => void

export class Lanes {
  readonly #limitMs: number
  readonly #taken = new Set<string>()
  /** Those that took too long the last time: no look waits for them again. */
  readonly #slow = new Set<string>()

  constructor(limitMs: number) {
    this.#limitMs = limitMs
  }

  isTaken(id: string): boolean {
    return this.#taken.has(id)
  }

  /**
   * Does `work`, which does not throw, unless the lane of `id` is taken. Resolves when it is done. When it does not get on
   * for as long as the limit, `late` is called and nobody waits any more; the lane is taken until the work ends.
   */
  async take(id: string, work: (getsOn: GetsOn) => Promise<void>, late: () => Promise<void>): Promise<void> {
    if (this.#taken.has(id)) return
    this.#taken.add(id)
    const { promise: isLate, resolve } = Promise.withResolvers<void>()
    let timer: NodeJS.Timeout | null = setTimeout(() => {
      timer = null
      this.#slow.add(id)
      resolve(late())
    }, this.#limitMs)
    timer.unref()
    const done = work(() => timer?.refresh()).finally(() => {
      if (timer) this.#slow.delete(id)
      clearTimeout(timer ?? undefined)
      this.#taken.delete(id)
    })
    if (!this.#slow.has(id)) await Promise.race([done, isLate])
  }
}
