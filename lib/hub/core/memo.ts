// A cache of values that were read from the database. It is emptied when a commit of any process changes the database's
// epoch. PostgreSQL has no epoch, so nothing is kept there: whoever asks for the same value at the same time shares one
// load, which begins after all of them have asked.

import { sharedLook } from '../../shared-look.ts'

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
  const asked = new Map<string, () => Promise<unknown>>()
  const shared = sharedLook((key: string) => {
    const load = asked.get(key)!
    asked.delete(key)
    return load()
  })
  return {
    get<T extends object | null | undefined>(key: string, load: () => Promise<T>): T | Promise<T> {
      const now = epoch()
      if (now === null) {
        asked.set(key, load)
        return shared(key) as Promise<T>
      }
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
