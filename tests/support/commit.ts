// Commits changes of a daemon's database where no engine is.

import type { Database } from 'bun:sqlite'
import type { Commit } from '../../lib/run/engine.ts'

/** Changes of one turn of the event loop share a commit, in the next one. None happens after `life` has ended. */
export function commitTo(db: Database, life?: AbortSignal): Commit {
  let waiting: { apply(): () => void; reject(error: unknown): void }[] = []
  const commitAll = () => {
    const all = waiting
    waiting = []
    try {
      life?.throwIfAborted()
      const answers = db.transaction(() => all.map(({ apply }) => apply())).immediate()
      for (const answer of answers) answer()
    } catch (error) {
      for (const { reject } of all) reject(error)
    }
  }
  return <T>(apply: () => T) =>
    new Promise<T>((resolve, reject) => {
      if (waiting.length === 0) setImmediate(commitAll)
      waiting.push({
        apply() {
          const result = apply()
          return () => resolve(result)
        },
        reject,
      })
    })
}
