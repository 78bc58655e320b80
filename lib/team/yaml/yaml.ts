// The door of this room: a team's file read as values that know where they stand.

export { field, itemsOf, kindOf, type Mapping, type Node, type Place, type Scalar, textOf, toJson } from './node.ts'
export { decode, MAX_BYTES, readYaml } from './read.ts'
export { Source } from './source.ts'
