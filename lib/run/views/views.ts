// The exports of lib/run/views: what people and the hub see of runs.

export { explain, type PhaseFacts, type RunFacts, withoutSilent } from './explain.ts'
export { Followers, type Notice } from './followers.ts'
export { listRuns, type RunPhases, runHistory, runPhases } from './phases.ts'
export {
  phaseRecord,
  type ReviewRecord,
  type RunRecord,
  reviewRecord,
  runDetail,
  runHead,
  runRecord,
} from './records.ts'
export { rootOf, treeEntries } from './tree.ts'
export { turnOfRun, waitOf } from './waits.ts'
export { type Why, why } from './why.ts'
