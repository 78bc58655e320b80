// The exports of lib/run/effects: what happens after a commit. Each effect that the steps noted is carried out here,
// with its own error handling.

export { AfterCommit } from './after-commit.ts'
export { AfterRun } from './after-run.ts'
export { DueTimer } from './due-timer.ts'
export { KeyTurns } from './key-turns.ts'
export { Launcher } from './launcher.ts'
export type { Outbox } from './outbox.ts'
export { PhaseFolders } from './phase-folders.ts'
export { ReviewNexts } from './review-nexts.ts'
