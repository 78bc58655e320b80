// The exports of lib/run/files: handing over files of runs, and making them durable. It does not depend on steps and
// attempts.

export { checkOutputs, dropStale, foldersOf, handOver, type Origin, writeItems } from './handover.ts'
export { restoreSmallFiles, SmallFileSync, stillNamed } from './small.ts'
