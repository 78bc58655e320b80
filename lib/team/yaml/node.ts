// The content of a YAML file: JSON values that know their places in the file.

import type { Json, JsonObject } from '../../json.ts'

export interface Place {
  /** Index into the file's text. */
  readonly offset: number
  /** JSON pointer. */
  readonly path: string
}

export interface Scalar extends Place {
  readonly kind: 'scalar'
  readonly value: null | boolean | number | string
  /** As it was written, before YAML read it: `00123`, `1e3`. */
  readonly written: string
  readonly style: 'plain' | 'single' | 'double' | 'block'
  readonly end: number
}

export interface List extends Place {
  readonly kind: 'list'
  readonly items: readonly Node[]
}

export interface Mapping extends Place {
  readonly kind: 'map'
  readonly entries: ReadonlyMap<string, { key: Place; node: Node }>
}

export type Node = Scalar | List | Mapping

export function toJson(node: Node): Json {
  if (node.kind === 'scalar') return node.value
  if (node.kind === 'list') return node.items.map(toJson)
  const object: JsonObject = {}
  for (const [key, { node: value }] of node.entries) object[key] = toJson(value)
  return object
}

/** The value under `key`, when `node` is a mapping that has it. */
export function field(node: Node | undefined, key: string): Node | undefined {
  return node?.kind === 'map' ? node.entries.get(key)?.node : undefined
}

export function textOf(node: Node | undefined): string | undefined {
  return node?.kind === 'scalar' && typeof node.value === 'string' ? node.value : undefined
}

export function itemsOf(node: Node | undefined): readonly Node[] {
  return node?.kind === 'list' ? node.items : []
}

/** The kind of a value, in words. */
export function kindOf(node: Node): string {
  if (node.kind !== 'scalar') return node.kind === 'list' ? 'a list' : 'a mapping'
  if (node.value === null) return 'nothing'
  if (typeof node.value === 'string') return `the text ${JSON.stringify(short(node.value))}`
  return typeof node.value === 'number' ? `the number ${short(node.written)}` : `${node.value}`
}

function short(text: string): string {
  return text.length > 40 ? `${text.slice(0, 39)}…` : text
}
