// Reads something outside, such as the disk, once for all callers of the same turn of the event loop.

/**
 * Returns `look` for several callers. It runs at the end of the turn in which a key is first asked for, and all callers
 * until then share its answer. A later caller causes another run, so that no answer is older than its question.
 */
export function sharedLook<K, V>(look: (key: K) => V | Promise<V>): (key: K) => Promise<V> {
  const asked = new Map<K, Promise<V>>()
  return key => {
    const known = asked.get(key)
    if (known) return known
    const answer = new Promise<void>(resolve => setImmediate(resolve)).then(() => {
      asked.delete(key)
      return look(key)
    })
    asked.set(key, answer)
    return answer
  }
}
