// Texts of other languages in what a team gives an agent: JSON Schemas, such as the one for a reply of a language model, and
// expressions that the agent evaluates for each item. What is wrong with them is reported at its place before the team runs.

import type { TSchema } from 'typebox'
import { schemaProblems } from '../../schema/foreign-schema.ts'
import { hasTemplate, parseForItems } from '../cel/cel.ts'
import { field, itemsOf, type Node, type Place, type Scalar, toJson } from '../yaml/yaml.ts'
import type { Compilation } from './compilation.ts'

interface Rule {
  properties?: Record<string, TSchema>
  items?: TSchema
  /** Whether the value is itself a JSON Schema, by which a value will be judged. */
  'x-json-schema'?: boolean
  /** Whether the text is an expression that the agent evaluates for each item, with the `inputs` of its entry. */
  'x-item-expression'?: boolean
  anyOf?: TSchema[]
  patternProperties?: Record<string, TSchema>
}

/** Checks the expressions for items of an entry. */
export function checkItemExpressions({ source }: Compilation, entry: Node, schema: TSchema): void {
  const inputs = field(entry, 'inputs')
  // What a template gives is known in the run.
  if (inputs && inputs.kind !== 'map') return
  const names = inputs ? [...inputs.entries.keys()] : []
  for (const given of itemExpressionsIn(entry, schema)) {
    const text = String(given.value)
    if (hasTemplate(text)) continue
    for (const { offset, message } of parseForItems(text, names).mistakes) {
      source.report({ offset: source.within(given, offset), path: given.path }, message)
    }
  }
}

function* itemExpressionsIn(node: Node, schema: TSchema): Generator<Scalar, void> {
  const { properties = {}, patternProperties = {}, anyOf = [], ...rule } = schema as Rule
  if (node.kind === 'scalar') {
    if (rule['x-item-expression'] && typeof node.value === 'string') yield node
    return
  }
  for (const branch of anyOf) yield* itemExpressionsIn(node, branch)
  if (node.kind !== 'map') return
  for (const [name, { node: value }] of node.entries) {
    const below = Object.hasOwn(properties, name) ? [properties[name]!] : Object.values(patternProperties)
    for (const each of below) yield* itemExpressionsIn(value, each)
  }
}

/** Checks the JSON Schemas that stand in `node` where `schema` says so. What is in templates is checked in the run. */
export function checkForeign({ source, patterns }: Compilation, node: Node, schema: TSchema): void {
  for (const given of foreignIn(node, schema)) {
    for (const { path, message } of schemaProblems(toJson(given), patterns, hasTemplate)) {
      source.report(placeOf(given, path), message)
    }
  }
}

function* foreignIn(node: Node, schema: TSchema): Generator<Node, void> {
  const { properties = {}, items, 'x-json-schema': isForeign } = schema as Rule
  if (isForeign && node.kind === 'map') yield node
  for (const [name, below] of Object.entries(properties)) {
    const value = field(node, name)
    if (value) yield* foreignIn(value, below)
  }
  if (items) for (const item of itemsOf(node)) yield* foreignIn(item, items)
}

/** The place of a part of a node: of its key, where it has one. */
function placeOf(node: Node, pointer: string): Place {
  let [place, part]: [Place, Node | undefined] = [node, node]
  for (const piece of pointer.split('/').slice(1)) {
    const key = piece.replaceAll('~1', '/').replaceAll('~0', '~')
    if (part?.kind === 'map') {
      const entry = part.entries.get(key)
      place = entry?.node ?? place
      part = entry?.node
    } else {
      part = part?.kind === 'list' ? part.items[Number(key)] : undefined
      place = part ?? place
    }
  }
  return place
}
