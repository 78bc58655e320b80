// The exports of lib/run/attempt, which has the work outside transactions: calls of agents, writes to other systems,
// deliveries to listeners, tasks and logs.

export { Attempts } from './attempts.ts'
export { CopiedWrites } from './copied-writes.ts'
export { deliver, type Payload } from './deliver.ts'
export { DiskSpace } from './disk.ts'
export { LaterLookups, sealLabel } from './later-lookups.ts'
export { Ledger } from './ledger.ts'
export { hasLines, readLines } from './log-pages.ts'
export { LOG_LIMIT, RunLogs } from './logs.ts'
export { DeliverySender, recordEvent } from './notify.ts'
export { limitText, type PaceClock, Paces } from './paces.ts'
export { RunFolders } from './run-folders.ts'
export { RootSecrets } from './secrets.ts'
export { Tasks } from './tasks.ts'
