// The door of this room: facts become changes of rows and memory. Everything here runs inside units of the journal and
// touches only rows and memory; what has to happen outside is noted as an effect.

export { beginTop, maskInputs, type NewRun } from './begin.ts'
export type { Effect, Errand, Outcome } from './effects.ts'
export { attemptEnded, fileOutputs } from './end.ts'
export { errorOf, textOf } from './fault.ts'
export { continueTree, loadTree } from './load.ts'
export { type Change, CLEANUP_MS, Machine } from './machine.ts'
export { type FrozenItem, freezePage, frozen, mapConcluded, mapHanded, moveSubRuns } from './map.ts'
export { doubtSent, receiptChanged } from './receipt.ts'
export { planResume, type ResumeOptions, type ResumePlan, resumable, resume, secretsAgain } from './reopen.ts'
export { CHOICES, type Decision, decide } from './review.ts'
export { scopeOf } from './scope.ts'
export { refuseStop, stopRun } from './stop.ts'
export { teamHanded } from './team.ts'
export { dueUnits, nextDue } from './tick.ts'
export { type Written, written } from './written.ts'
