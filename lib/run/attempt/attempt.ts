// The door of this room: what happens outside of transactions — agents are called, entries sent, listeners told, errands
// done, logs written.

export { Attempts } from './attempts.ts'
export { DiskSpace } from './disk.ts'
export { Errands } from './errands.ts'
export { Ledger } from './ledger.ts'
export { RunLogs, readLines } from './logs.ts'
export { Messenger, recordEvent } from './notify.ts'
export { Places } from './places.ts'
export { RootSecrets } from './secrets.ts'
