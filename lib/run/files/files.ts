// The door of this room: files of runs, handed over and kept. Knows nothing of steps and attempts.

export { checkOutputs, dropStale, foldersOf, handOver, type Origin, writeItems } from './handover.ts'
export { restoreSmall, Settler, stillNamed } from './small.ts'
