// The slots of the daemon, and whose turn it is. Each leaf phase that executes takes one slot. Free slots go to one top
// run after the other, so that a run of a thousand phases delays another one by at most one phase. Pure.

export class Slots<T> {
  readonly #limit: number
  #inUse = 0
  /** By root, in the order of turns: a root that got a slot goes to the end. */
  readonly #waiting = new Map<string, Set<T>>()
  readonly #roots = new Map<T, string>()
  /** Attempts that had a slot, gave it back while they waited, and want to go on. They come before all others. */
  readonly #returning = new Set<() => void>()

  constructor(limit: number) {
    this.#limit = limit
  }

  get inUse(): number {
    return this.#inUse
  }

  get free(): number {
    return this.#limit - this.#inUse
  }

  /** Whether `next` would return an item. */
  get hasTurn(): boolean {
    return this.free > 0 && this.#waiting.size > 0
  }

  /** Puts `item` behind the others of its root; an item that already waits stays where it is. */
  want(root: string, item: T): void {
    if (this.#roots.has(item)) return
    this.#roots.set(item, root)
    const others = this.#waiting.get(root)
    if (others) others.add(item)
    else this.#waiting.set(root, new Set([item]))
  }

  /** The same as `next` while only `root` waits; null while another root waits too. */
  nextAlone(root: string): T | null {
    return this.#waiting.size === 1 && this.#waiting.has(root) ? this.next() : null
  }

  /** Takes a slot for the first item of the root whose turn it is. Null when nothing waits or no slot is free. */
  next(): T | null {
    if (this.free <= 0) return null
    const turn = this.#waiting.entries().next()
    if (turn.done) return null
    const [root, items] = turn.value
    const item = items.values().next().value as T
    this.drop(item)
    if (items.size > 0) {
      this.#waiting.delete(root)
      this.#waiting.set(root, items)
    }
    this.#inUse++
    return item
  }

  /** `item` no longer wants a slot. */
  drop(item: T): void {
    const root = this.#roots.get(item)
    if (root === undefined) return
    this.#roots.delete(item)
    const items = this.#waiting.get(root)!
    items.delete(item)
    if (items.size === 0) this.#waiting.delete(root)
  }

  /** Takes a slot without a turn, for an attempt that already executes when its run is read from the rows. */
  take(): void {
    this.#inUse++
  }

  release(): void {
    for (const goOn of this.#returning) {
      this.#returning.delete(goOn)
      return goOn()
    }
    this.#inUse--
  }

  /** Calls `goOn` once there is a slot for it. Returns a function that gives up the wait; false when it is over. */
  takeBack(goOn: () => void): () => boolean {
    if (this.free > 0) {
      this.#inUse++
      goOn()
    } else this.#returning.add(goOn)
    return () => this.#returning.delete(goOn)
  }
}
