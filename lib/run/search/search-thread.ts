// Reads whose cost grows with the number of runs, the index of searches, and checkpoints, in a thread of their own: none
// of them holds the engine. The thread writes nothing but that index.

import type { Database } from 'bun:sqlite'
import { openDatabase } from '../../../db/open.ts'
import { messageOf } from '../../error.ts'
import type { RunStats } from '../../wire/run-stats.ts'
import { RunLists } from '../store/store.ts'
import { type StatsFilter, statsOfTeam } from './counted-runs.ts'
import { type Found, find, type SearchFilter } from './find.ts'
import { isDamage, type Kept, SearchIndex } from './search-index.ts'

declare const self: Worker

export type Order =
  | { open: { database: string; index: string } }
  | { list: SearchFilter; id: number }
  | { stats: StatsFilter; id: number }
  | { checkpoint: true; id: number }
  | { fill: true }
  | { end: true }

export type Answer =
  | { id: number; found: Found }
  | { id: number; stats: RunStats }
  | { id: number; checkpointed: true }
  | { id: number; error: string }
  /** `more` is not indexed yet; otherwise what is indexed on disk. */
  | { kept: Kept | null; more: boolean }
  | { failed: string }
  | { ended: true }

/** One order to fill takes about so long, half of which is a pause. */
const FILL_MS = 1_000

if (!Bun.isMainThread) {
  let files: { database: string; index: string }
  let runs: Database | null = null
  let log: Database | null = null
  let index: SearchIndex | null = null
  let filling: Promise<void> | null = null
  let isEnding = false
  const say = (answer: Answer) => self.postMessage(answer)

  // Both are opened by the first order that needs them, which is answered with the error of a file that cannot be opened.
  // A list without a search needs no index.
  const theRuns = (): Database => (runs ??= openDatabase(files.database, { readonly: true }))
  const theLog = (): Database => (log ??= openDatabase(files.database))
  const theIndex = (): SearchIndex => (index ??= new SearchIndex(files.index, theRuns()))

  /** Removes an index that is damaged, so that the next order begins it anew. Returns whether it did. */
  const removeDamaged = (error: unknown): boolean => {
    if (!index || !isDamage(error)) return false
    const damaged = index
    index = null
    damaged.remove()
    return true
  }

  const fill = async () => {
    try {
      const until = performance.now() + FILL_MS
      let more = true
      while (more && performance.now() < until && !isEnding) {
        const began = performance.now()
        more = theIndex().fillSome()
        await Bun.sleep(performance.now() - began)
      }
      say({ kept: more || isEnding ? null : theIndex().keep(), more })
    } catch (error) {
      removeDamaged(error)
      throw error
    }
  }

  const list = (filter: SearchFilter): Found => {
    const { search } = filter
    // All statements of a list see the same runs.
    const all = theRuns()
    if (search === undefined) return all.transaction(() => new RunLists(all).list(filter))()
    return find(all, theIndex(), { ...filter, search })
  }

  const listSoundly = (filter: SearchFilter): Found => {
    try {
      return list(filter)
    } catch (error) {
      if (filter.search === undefined || !removeDamaged(error)) throw error
      return list(filter)
    }
  }

  self.onmessage = async ({ data }: MessageEvent<Order>) => {
    if ('open' in data) {
      files = data.open
    } else if ('list' in data) {
      try {
        say({ id: data.id, found: listSoundly(data.list) })
      } catch (error) {
        say({ id: data.id, error: messageOf(error) })
      }
    } else if ('stats' in data) {
      try {
        const all = theRuns()
        say({ id: data.id, stats: all.transaction(() => statsOfTeam(all, data.stats))() })
      } catch (error) {
        say({ id: data.id, error: messageOf(error) })
      }
    } else if ('checkpoint' in data) {
      try {
        theLog().run('PRAGMA wal_checkpoint(PASSIVE)')
        say({ id: data.id, checkpointed: true })
      } catch (error) {
        say({ id: data.id, error: messageOf(error) })
      }
    } else if ('fill' in data) {
      filling ??= fill()
        .catch(error => say({ failed: messageOf(error) }))
        .finally(() => {
          filling = null
        })
    } else {
      isEnding = true
      await filling
      index?.close()
      runs?.close()
      log?.close()
      say({ ended: true })
    }
  }
}
