// The exports of lib/run/core: what runs and phases are, and every rule about them that needs no database, clock or
// file. Pure; it imports no other folder of lib/run.

export { type BootClock, elapsedSince, machineBootClock } from './boot-clock.ts'
export { bounded } from './bounded.ts'
export { type Clock, isDue, NO_CLOCK, pause, resume, startClock } from './clock.ts'
export type { Account, Binding, ContextHooks, EngineHost, LogLine, RunEnvironment } from './host.ts'
export {
  type Ending,
  type LivePhase,
  LiveRun,
  type MapProgress,
  type NextItem,
  turnOfBound,
  untouched,
} from './live.ts'
export type { CountedRun, Meter, WriteResult } from './meter.ts'
export { RECEIPT_FENCE } from './receipt.ts'
export { type EndedPhase, type Repetition, repetitions, wasPassedOver } from './repeated.ts'
export {
  branchKey,
  type DeliveryRow,
  JsonText,
  json,
  type PhaseRow,
  parse,
  type ReceiptRow,
  type ReviewRow,
  type RunError,
  type RunRow,
  START,
  startedBy,
  startReviewers,
  treeKey,
} from './rows.ts'
export { Slots } from './slots.ts'
export {
  blocks,
  PHASE_FENCE,
  type PhaseState,
  phaseEnded,
  RUN_FENCE,
  RUN_STATES,
  type RunState,
  runEnded,
} from './states.ts'
