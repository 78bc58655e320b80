// A cache of values that were read from the database. It is emptied when a commit of any process changes the database's
// epoch. PostgreSQL has no epoch, so nothing is kept there.

export interface Memo {
  /**
   * The value of `key`, loaded when it is not cached: no promise once it is there, so that a request does not wait for
   * what is known. Callers share the value and must not change it.
   */
  get<T extends object | null | undefined>(key: string, load: () => Promise<T>): T | Promise<T>
}

/** The maximum number of keys. When it is exceeded, all are dropped. */
const MOST = 5_000

export function createMemo(epoch: () => number | null): Memo {
  const known = new Map<string, unknown>()
  let of: number | null = null
  return {
    get<T extends object | null | undefined>(key: string, load: () => Promise<T>): T | Promise<T> {
      const now = epoch()
      if (now === null) return load()
      if (now !== of || known.size >= MOST) known.clear()
      of = now
      const found = known.get(key) as T | Promise<T> | undefined
      if (found !== undefined) return found
      const loading = load()
      known.set(key, loading)
      const settle = (value: T) => {
        if (known.get(key) === loading) known.set(key, value)
      }
      loading.then(settle, () => {
        if (known.get(key) === loading) known.delete(key)
      })
      return loading
    },
  }
}
