// What waits to be sent to the hub: changes of runs, lines of their logs, and files.

import type { Store } from '../../../run/engine.ts'
import { OutboxRows } from './outbox-rows.ts'
import { KEEPS_FILES, UploadRows, type WaitingFiles } from './upload-rows.ts'

export interface Waiting {
  changes: {
    count: number
    /** What the hub gets besides, such as why a run ended, is not in it. */
    bytes: number
    /** When the oldest was queued, in epoch milliseconds; null also where an older program has queued it. */
    oldest_at: number | null
  }
  /** Lines of logs. */
  lines: number
  files: WaitingFiles
}

const NO_FILES: WaitingFiles = { count: 0, bytes: 0, oldest_at: null, error: null }

export const NOTHING_WAITS: Waiting = { changes: { count: 0, bytes: 0, oldest_at: null }, lines: 0, files: NO_FILES }

/** Files wait only for a hub that keeps files. Other work goes on between the parts of a long backlog. */
export async function waitingIn({ db, facts }: Pick<Store, 'db' | 'facts'>): Promise<Waiting> {
  const rows = new OutboxRows(db)
  const { changes, lines } = rows.left()
  let bytes = 0
  for (const part of rows.sizes()) {
    bytes += part
    await Bun.sleep(0)
  }
  const keepsFiles = facts.get(KEEPS_FILES) === 'yes'
  return {
    changes: { count: changes, bytes, oldest_at: rows.oldest() },
    lines,
    files: keepsFiles ? new UploadRows(db).waiting() : NO_FILES,
  }
}

/** How much waits, without its size, which every row would have to be read for. */
export function countsOf({ db, facts }: Pick<Store, 'db' | 'facts'>) {
  const rows = new OutboxRows(db)
  const files = facts.get(KEEPS_FILES) === 'yes' ? new UploadRows(db).waiting() : NO_FILES
  const oldest = [rows.oldest(), files.oldest_at].filter(at => at !== null)
  return { changes: rows.left().changes, files: files.count, oldest_at: oldest.length > 0 ? Math.min(...oldest) : null }
}
