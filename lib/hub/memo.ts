// What was read from the database and is still true: kept until any commit of any process changes the database's epoch.
// Without an epoch (PostgreSQL) nothing is kept.

export interface Memo {
  /** The value of `key`, loaded when it is not known. Values are shared: nobody changes them. */
  get<T>(key: string, load: () => Promise<T>): Promise<T>
}

/** Keys kept at most; past that all are forgotten. */
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
