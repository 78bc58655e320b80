// The process that makes one backup of a SQLite database (backups.ts): its arguments are the database and the new file.

import { backup } from '../../../db/hub/backup.ts'
import { messageOf } from '../../error.ts'
import { line } from '../../text/printable.ts'
import { printMessage } from '../../text/terminal.ts'

const [database, file] = process.argv.slice(-2)
try {
  backup(database!, file!)
} catch (error) {
  printMessage(line`${messageOf(error)}`)
  process.exitCode = 1
}
