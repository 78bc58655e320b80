// What stands where in a team's file: the key or the value at an offset, and the value at a path.

import { field, type Node, type Scalar } from '../yaml/yaml.ts'
import type { Path } from './schema-fields.ts'

/** A part of a text, by offsets. */
export interface Range {
  from: number
  to: number
}

/** The key or the scalar at an offset. The path is that of the value, for a key, too. */
export type Found = Range & { path: Path } & ({ part: 'key' } | { part: 'value'; scalar: Scalar })

/** Null where neither a key nor a scalar stands, such as in a comment. */
export function findAt(text: string, root: Node, offset: number): Found | null {
  for (const found of placesIn(text, root)) if (found.from <= offset && offset <= found.to) return found
  return null
}

/** Every key and every scalar with its range. An alias is passed over: what it means stands elsewhere. */
export function* placesIn(text: string, node: Node, path: Path = [], after = -1): Generator<Found> {
  if (node.offset < after) return
  if (node.kind === 'scalar') yield { part: 'value', path, scalar: node, ...rangeOf(node) }
  else if (node.kind === 'list') {
    for (const [at, item] of node.items.entries()) yield* placesIn(text, item, [...path, at], node.offset)
  } else {
    for (const [name, { key, node: value }] of node.entries) {
      const below = [...path, name]
      yield { part: 'key', path: below, ...keyRange(text, key.offset, name) }
      // A key without a value has one that is empty and stands at the key.
      if (value.offset !== key.offset) yield* placesIn(text, value, below, key.offset)
    }
  }
}

/** The range of a scalar, without the line break that ends a block. */
export function rangeOf({ offset, end, style, written }: Scalar): Range {
  if (style !== 'block') return { from: offset, to: end }
  return { from: offset, to: written.endsWith('\n') ? end - 1 : end }
}

export function keyRange(text: string, from: number, name: string): Range {
  const quote = text[from] === '"' || text[from] === "'" ? 2 : 0
  return { from, to: from + name.length + quote }
}

export function nodeAt(root: Node | undefined, path: Path): Node | undefined {
  let node = root
  for (const step of path) {
    node = typeof step === 'string' ? field(node, step) : node?.kind === 'list' ? node.items[step] : undefined
  }
  return node
}
