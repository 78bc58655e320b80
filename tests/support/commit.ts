// Commits changes of a daemon's database where no engine is.

import type { Database } from 'bun:sqlite'
import type { Commit } from '../../lib/run/engine.ts'

/** Each change has a commit of its own, in a later turn of the event loop. None happens after `life` has ended. */
export function commitTo(db: Database, life?: AbortSignal): Commit {
  return <T>(apply: () => T) =>
    new Promise<T>((resolve, reject) => {
      setImmediate(() => {
        try {
          life?.throwIfAborted()
          resolve(db.transaction(apply).immediate())
        } catch (error) {
          reject(error)
        }
      })
    })
}
