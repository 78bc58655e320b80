// The exports of lib/team/model: what a compiled team is, which inputs it takes, and how mistakes in its files are reported.

export { accountIn, accountsOf, mayHaveAccount } from './accounts.ts'
export * from './compiled-team.ts'
export { whyNotIn } from './environments.ts'
export { conversionOf, inputsFor, inputsFromArguments, isOfType, problemWith } from './inputs.ts'
export { type Need, permissionNeeds } from './permissions.ts'
export { type Problem, problemError, problemsOf, renderProblem } from './problem.ts'
export { readersOf } from './readers.ts'
export { agentRefs, literalOrigins, needsOfBundle, secretReader, teamsOf } from './team-needs.ts'
export {
  type Agents,
  credentialsOf,
  handledCalls,
  listenerWrites,
  onceEntry,
  phaseWrites,
  retriesNoWrite,
  type Write,
} from './writes.ts'
