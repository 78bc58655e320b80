// The exports of lib/run/views: what people and the hub see of runs.

export { Followers, type Notice } from './followers.ts'
export { listRuns, listRunsHere, type RunPhases, runHistory, runPhases } from './phases.ts'
export {
  phaseRecord,
  type ReviewRecord,
  type RunRecord,
  reviewRecord,
  runDetail,
  runHead,
  runRecord,
} from './records.ts'
export { teamHistory } from './team-history.ts'
export { rootOf, treeEntries } from './tree.ts'
export { turnOfRun, waitOf } from './waits.ts'
export { reportedWhy, type Step, why } from './why.ts'
