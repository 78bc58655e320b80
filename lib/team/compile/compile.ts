// The exports of lib/team/compile, which compiles the files of teams into the form that the engine runs.

export { bundleFromJson, type LoadOptions, loadBundle, type ResolvePackage, type TeamPackage } from './bundle.ts'
export type { AgentLookup } from './compilation.ts'
export { keyFrom } from './concurrency.ts'
export type { FileMap } from './file-source.ts'
export { formatTeam } from './format-team.ts'
export { teamJsonSchema, teamSchemaOf } from './json-schema.ts'
export { type LintFinding, lintBundle } from './lint.ts'
export { inputProblems, type OccasionRule, occasionRule } from './occasion.ts'
export { OTHER_FIELDS } from './other-fields.ts'
export { expected } from './value-check.ts'
