// The door of this room: handing files of runs over, and keeping them durable. Knows nothing of steps and attempts.

export { checkOutputs, dropStale, foldersOf, handOver, type Origin, writeItems } from './handover.ts'
export { restoreSmall, Settler, stillNamed } from './small.ts'
