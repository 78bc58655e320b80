// The exports of lib/team/yaml, which reads a team's file as values that know their places.

export { formatYaml } from './format.ts'
export { field, itemsOf, kindOf, type Mapping, type Node, type Place, type Scalar, textOf, toJson } from './node.ts'
export { decode, MAX_BYTES, readBroken, readYaml } from './read-yaml.ts'
export { Source } from './source.ts'
