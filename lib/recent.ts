// A cache of limited size that drops the least recently used value.

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

  clear(): void {
    this.#values.clear()
  }
}
