// The exports of lib/run/attempt, which does everything that happens outside transactions: it calls agents, sends
// entries, notifies listeners, runs tasks and writes logs.

export { Attempts } from './attempts.ts'
export { CopiedWrites } from './copied-writes.ts'
export { DiskSpace } from './disk.ts'
export { Ledger } from './ledger.ts'
export { hasLines, readLines } from './log-pages.ts'
export { LOG_LIMIT, RunLogs } from './logs.ts'
export { LaterLooks, sealLabel } from './looks.ts'
export { Messenger, recordEvent } from './notify.ts'
export { RunFolders } from './run-folders.ts'
export { RootSecrets } from './secrets.ts'
export { Tasks } from './tasks.ts'
