// A cache of values that were read from the database. It is emptied when a commit of any process changes the database's
// epoch. PostgreSQL has no epoch, so nothing is kept there.

export interface Memo {
  /** The value of `key`, loaded when it is not cached. Callers share the value and must not change it. */
  get<T>(key: string, load: () => Promise<T>): Promise<T>
}

/** The maximum number of keys. When it is exceeded, all are dropped. */
const MOST = 5_000

export function createMemo(epoch: () => number | null): Memo {
  const known = new Map<string, Promise<unknown>>()
  let of: number | null = null
  return {
    get<T>(key: string, load: () => Promise<T>): Promise<T> {
      const now = epoch()
      if (now === null) return load()
      if (now !== of || known.size >= MOST) known.clear()
      of = now
      const found = known.get(key) as Promise<T> | undefined
      if (found) return found
      const value = load()
      known.set(key, value)
      value.catch(() => known.delete(key))
      return value
    },
  }
}
