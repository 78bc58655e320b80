// The exports of lib/run/files: handing over files of runs, and making them durable. It does not depend on steps and
// attempts.

export { type AttemptFiles, FilesBehind } from './behind.ts'
export { checkOutputs, dropStale, foldersOf, handOver, type Origin, writeItems } from './handover.ts'
export { lackOn } from './room.ts'
export { keptFile, restoreSmallFiles, SmallFileSync, stillNamed } from './small.ts'
