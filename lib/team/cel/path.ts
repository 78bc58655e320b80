// A value that an expression reaches from one of its names by names alone, such as `phases.fetch.data.?total`.

import type { ASTNode } from '@marcbachmann/cel-js'

export interface Key {
  name: string
  offset: number
  node: ASTNode
}

export interface Path {
  root: string
  offset: number
  keys: Key[]
}

/** `a.b['c'].?d` as a root and its keys; null when it is not reached by names alone. */
export function pathOf(node: ASTNode): Path | null {
  if (node.op === 'id') return { root: node.args, offset: node.start, keys: [] }
  if (node.op !== '.' && node.op !== '.?' && node.op !== '[]' && node.op !== '[?]') return null
  const [left, right] = node.args as [ASTNode, string | ASTNode]
  const name = typeof right === 'string' ? right : right.op === 'value' ? right.args : null
  if (typeof name !== 'string') return null
  const path = pathOf(left)
  if (!path) return null
  path.keys.push({ name, offset: typeof right === 'string' ? node.pos : right.start, node })
  return path
}
