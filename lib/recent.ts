// What was asked for lately: at most so many values, of which the one that was asked for longest ago goes first.

export class Recent<K, V> {
  readonly #most: number
  readonly #values = new Map<K, V>()

  constructor(most: number) {
    this.#most = most
  }

  get(key: K): V | undefined {
    const value = this.#values.get(key)
    return value === undefined ? undefined : this.set(key, value)
  }

  set(key: K, value: V): V {
    this.#values.delete(key)
    this.#values.set(key, value)
    if (this.#values.size > this.#most) this.#values.delete(this.#values.keys().next().value!)
    return value
  }

  values(): Iterable<V> {
    return this.#values.values()
  }

  delete(key: K): void {
    this.#values.delete(key)
  }
}
