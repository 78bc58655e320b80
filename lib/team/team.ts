// The exports of lib/team, and its only file that other folders import: what a team is, and how it is loaded and
// restored.

import type * as Cel from './cel/cel.ts'
import type * as Compile from './compile/compile.ts'

export type {
  AgentLookup,
  Explained,
  FileMap,
  LintFinding,
  LoadOptions,
  OccasionRule,
  ResolvePackage,
  TeamPackage,
} from './compile/compile.ts'
export type * from './model/model.ts'
export {
  accountIn,
  accountsOf,
  agentRefs,
  conversionOf,
  credentialsOf,
  hasSubRuns,
  inputsFor,
  inputsFromArguments,
  isOfType,
  listenerWrites,
  literalOrigins,
  mayHaveAccount,
  needsOfBundle,
  phaseWrites,
  problemWith,
  readersOf,
  renderProblem,
  retriesNoWrite,
  reviewOf,
  runsCommands,
  secretReader,
  teamsOf,
  whyNotIn,
} from './model/model.ts'

/** Loaded at first use: YAML and CEL take longer to load than most commands take to run. */
function compiler(): typeof Compile {
  return require('./compile/compile.ts') as typeof Compile
}

export const loadBundle: typeof Compile.loadBundle = (...given) => compiler().loadBundle(...given)
export const keyFrom: typeof Compile.keyFrom = (...given) => compiler().keyFrom(...given)
export const bundleFromJson: typeof Compile.bundleFromJson = json => compiler().bundleFromJson(json)
export const teamJsonSchema: typeof Compile.teamJsonSchema = agents => compiler().teamJsonSchema(agents)
export const explainField: typeof Compile.explainField = (...given) => compiler().explainField(...given)
export const formatTeam: typeof Compile.formatTeam = (...given) => compiler().formatTeam(...given)
export const lintBundle: typeof Compile.lintBundle = (...given) => compiler().lintBundle(...given)
export const occasionRule: typeof Compile.occasionRule = (...given) => compiler().occasionRule(...given)
export const itemExpression: typeof Cel.itemExpression = (...given) =>
  (require('./cel/cel.ts') as typeof Cel).itemExpression(...given)
export const inputProblems: typeof Compile.inputProblems = (...given) => compiler().inputProblems(...given)
