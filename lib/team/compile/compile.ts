// The exports of lib/team/compile, which compiles the files of teams into the form that the engine runs.

export { bundleFromJson, type LoadOptions, loadBundle, type ResolvePackage, type TeamPackage } from './bundle.ts'
export type { AgentLookup } from './compilation.ts'
export { keyFrom } from './concurrency.ts'
export { type Explained, explainField, explainPlace } from './explain.ts'
export type { FileMap } from './file-source.ts'
export { formatTeam } from './format-team.ts'
export { teamJsonSchema, teamSchemaOf } from './json-schema.ts'
export { type LintFinding, lintBundle } from './lint.ts'
export { inputProblems, type OccasionRule, occasionRule } from './occasion.ts'
export { fieldsIn, formsAt, NOTHING, type Path, type Schema, schemaAt } from './schema-fields.ts'
