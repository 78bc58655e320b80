// The exports of lib/run/files: handing over files of runs, making them durable, and encrypting what may be secret.
// It does not depend on steps and attempts.

export { type AttemptFiles, FilesBehind } from './behind.ts'
export { checkOutputs, dropStale, foldersOf, handOver, type Origin, writeItems } from './handover.ts'
export { lackOn } from './room.ts'
export { Seal } from './seal.ts'
export { keptFile, restoreSmallFiles, SmallFileSync, stillNamed } from './small.ts'
