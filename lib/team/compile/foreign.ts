// JSON Schemas in a team's file, such as the one for a reply of a language model: what is wrong with them is reported at
// its place before the team runs.

import type { TSchema } from 'typebox'
import { schemaProblems } from '../../schema/foreign-schema.ts'
import { hasTemplate } from '../cel/cel.ts'
import { field, itemsOf, type Node, type Place, toJson } from '../yaml/yaml.ts'
import type { Compilation } from './compilation.ts'

interface Rule {
  properties?: Record<string, TSchema>
  items?: TSchema
  /** Whether the value is itself a JSON Schema, by which a value will be judged. */
  'x-json-schema'?: boolean
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
