// The thread that makes one backup of a SQLite database (backups.ts). It answers null, or why it could not.

import { backup } from '../../../db/hub/backup.ts'
import { messageOf } from '../../error.ts'

declare const self: Worker

export interface Asked {
  /** The path of the database. */
  database: string
  /** The path of the backup. */
  file: string
}

if (!Bun.isMainThread) {
  self.onmessage = ({ data: { database, file } }: MessageEvent<Asked>) => {
    let problem: string | null = null
    try {
      backup(database, file)
    } catch (error) {
      problem = messageOf(error)
    }
    self.postMessage(problem)
  }
}
