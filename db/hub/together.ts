// Several pieces of work of one transaction, whose statements are sent together.

/**
 * Waits for all of them, whatever becomes of one, so that none goes on after the end of the transaction. Throws the error
 * of the first that failed, in the order in which they are given.
 */
export async function together<T extends readonly unknown[]>(
  works: readonly [...T],
): Promise<{ -readonly [At in keyof T]: Awaited<T[At]> }> {
  const results = await Promise.allSettled(works)
  const failed = results.find(each => each.status === 'rejected')
  if (failed) throw (failed as PromiseRejectedResult).reason
  // The compiler does not follow a tuple through `map`.
  return results.map(each => (each as PromiseFulfilledResult<unknown>).value) as never
}
