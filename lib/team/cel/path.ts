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
  if (!isAccess(node)) return null
  const [left, right] = node.args as [ASTNode, string | ASTNode]
  const name = typeof right === 'string' ? right : right.op === 'value' ? right.args : null
  if (typeof name !== 'string') return null
  const path = pathOf(left)
  if (!path) return null
  path.keys.push({ name, offset: typeof right === 'string' ? node.pos : right.start, node })
  return path
}

/** Whether a node is a field or an item of another value. */
export function isAccess({ op }: ASTNode): boolean {
  return op === '.' || op === '.?' || op === '[]' || op === '[?]'
}

/** The phases that `node` names, at any depth. */
export function* phasesIn(node: ASTNode): Iterable<string> {
  const path = pathOf(node)
  if (path?.root === 'phases' && path.keys.length > 0) yield path.keys[0]!.name
  else if (!path) for (const each of nodesIn(node.args)) yield* phasesIn(each)
}

/** The nodes among the arguments of another, which may be lists of lists. */
export function nodesIn(args: unknown): readonly ASTNode[] {
  if (Array.isArray(args)) return args.flatMap(nodesIn)
  return typeof args === 'object' && args !== null && 'op' in args ? [args as ASTNode] : []
}
