// The exports of lib/team/editor: what people ask while they write a team, over an editor or with `explain`.

export { teamSchemaOf } from '../compile/compile.ts'
export { readBroken } from '../yaml/yaml.ts'
export type { Around, OtherTeam } from './around.ts'
export { complete, type Suggestion } from './complete.ts'
export { definition } from './definition.ts'
export { type Explained, explainField } from './explain.ts'
export { hover } from './hover.ts'
export type { Range } from './place.ts'
export { placeOfSecret, rangesIn } from './ranges.ts'
