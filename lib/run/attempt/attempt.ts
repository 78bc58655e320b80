// The door of this room: everything that happens outside transactions. It calls agents, sends entries, tells listeners,
// runs errands and writes logs.

export { Attempts } from './attempts.ts'
export { DiskSpace } from './disk.ts'
export { Errands } from './errands.ts'
export { Ledger } from './ledger.ts'
export { RunLogs, readLines } from './logs.ts'
export { Messenger, recordEvent } from './notify.ts'
export { Places } from './places.ts'
export { RootSecrets } from './secrets.ts'
