// The exports of lib/run, and its only file that other folders import. The engine accepts runs, executes their phases and
// records what happens. The path of a run:
//
//   requests → steps/tree/start → store (one group commit) → effects/launcher → attempt/execute → steps/tree/attempts
//   → store → …
//
// Steps change rows and memory inside a transaction and touch nothing else. Anything that must happen outside is an
// effect, which is carried out after the commit with its own error handling. Callers get their answer after their
// change is durable.

export {
  deliver,
  hasLines,
  LOG_LIMIT,
  limitText,
  Paces,
  type Payload,
  RootSecrets,
  readLines,
} from './attempt/attempt.ts'
export {
  type Account,
  type Binding,
  type ContextHooks,
  type EngineHost,
  type LogLine,
  type Meter,
  type ReviewRow,
  RUN_STATES,
  type RunEnvironment,
  type RunError,
  type RunRow,
  runEnded,
  START,
  startedBy,
  startReviewers,
} from './core/core.ts'
export type { Outbox } from './effects/effects.ts'
export { keptFile, Seal } from './files/files.ts'
export type { EngineOptions } from './parts.ts'
export { Engine, type StartRequest } from './requests.ts'
export { Reads, statsOfTeam } from './search/search.ts'
export { CHOICES, type Change, type Decision, maskInputs, planResume, type ResumeOptions } from './steps/steps.ts'
export {
  type Commit,
  type Executed,
  HOME_FACTS,
  type ListedReview,
  OPEN_TOPS,
  type RunHead,
  runIdsAfter,
  Store,
} from './store/store.ts'
export {
  listRuns,
  listRunsHere,
  type Notice,
  phaseRecord,
  type ReviewRecord,
  type RunPhases,
  type RunRecord,
  reportedWhy,
  reviewRecord,
  rootOf,
  runDetail,
  runHead,
  runHistory,
  runPhases,
  runRecord,
  type Step,
  teamHistory,
  treeEntries,
  why,
} from './views/views.ts'
