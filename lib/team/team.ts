// The exports of lib/team, and its only file that other folders import: what a team is, and how it is loaded and
// restored.

import type * as Cel from './cel/cel.ts'
import type * as Compile from './compile/compile.ts'
import type * as Editor from './editor/editor.ts'

export type {
  AgentLookup,
  FileMap,
  LintFinding,
  LoadOptions,
  OccasionRule,
  ResolvePackage,
  TeamPackage,
} from './compile/compile.ts'
export type { Around, Explained, OtherTeam, Range, Suggestion } from './editor/editor.ts'
export type * from './model/model.ts'
export {
  accountIn,
  accountsOf,
  agentRefs,
  conversionOf,
  credentialsOf,
  handledCalls,
  hasSubRuns,
  inputsFor,
  inputsFromArguments,
  isOfType,
  listenerWrites,
  literalOrigins,
  mayHaveAccount,
  needsOfBundle,
  permissionNeeds,
  phaseWrites,
  problemsOf,
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
export const formatTeam: typeof Compile.formatTeam = (...given) => compiler().formatTeam(...given)
export const lintBundle: typeof Compile.lintBundle = (...given) => compiler().lintBundle(...given)
export const occasionRule: typeof Compile.occasionRule = (...given) => compiler().occasionRule(...given)
export const itemExpression: typeof Cel.itemExpression = (...given) =>
  (require('./cel/cel.ts') as typeof Cel).itemExpression(...given)
export const inputProblems: typeof Compile.inputProblems = (...given) => compiler().inputProblems(...given)

/** What people ask while they write a team. */
const editor = () => require('./editor/editor.ts') as typeof Editor

export const complete: typeof Editor.complete = (...given) => editor().complete(...given)
export const definition: typeof Editor.definition = (...given) => editor().definition(...given)
export const explainField: typeof Editor.explainField = (...given) => editor().explainField(...given)
export const hover: typeof Editor.hover = (...given) => editor().hover(...given)
export const placeOfSecret: typeof Editor.placeOfSecret = (...given) => editor().placeOfSecret(...given)
export const rangesIn: typeof Editor.rangesIn = text => editor().rangesIn(text)
export const readBroken: typeof Editor.readBroken = text => editor().readBroken(text)
export const teamSchemaOf: typeof Editor.teamSchemaOf = agents => editor().teamSchemaOf(agents)
