// Reads something outside, such as the disk, once for all callers of the same turn of the event loop.

/**
 * Returns `look` for several callers. It runs at the end of the turn in which a key is first asked for, and all callers
 * until then share its answer. A later caller causes another run, so that no answer is older than its question. Looks
 * begin `pauseMs` apart at least, so that ever so many callers cost few of them.
 */
export function sharedLook<K, V>(look: (key: K) => V | Promise<V>, pauseMs = 0): (key: K) => Promise<V> {
  const asked = new Map<K, Promise<V>>()
  /** When the last look began, in `performance.now()` time. */
  let last = Number.NEGATIVE_INFINITY
  return key => {
    const known = asked.get(key)
    if (known) return known
    const isEarly = performance.now() - last < pauseMs
    const turn = new Promise<void>(resolve => (isEarly ? setTimeout(resolve, pauseMs) : setImmediate(resolve)))
    const answer = turn.then(() => {
      asked.delete(key)
      last = performance.now()
      return look(key)
    })
    asked.set(key, answer)
    return answer
  }
}
