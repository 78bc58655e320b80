// What an error about a null or a value that is not there adds: the call of `or` that gives another value instead.

import type { ASTNode } from '@marcbachmann/cel-js'
import { type Mistake, mistakeOf } from './hints.ts'
import { isAccess, nodesIn } from './path.ts'

/** An error of cel-js. */
interface Fault {
  code?: string
  node?: ASTNode
}

/** The codes of errors that say that a value is not there. */
export const ABSENCE = ['no_such_key', 'index_out_of_bounds']

/** Longer texts are not repeated in a hint. */
const MAX_LENGTH = 80

/** A value that stands for none, by the type that the place needs. */
const NONE: Record<string, string> = { int: '0', uint: '0', double: '0', bool: 'false', list: '[]', map: '{}' }

/** What the argument of a function, or the value before it, is. */
const ARGUMENTS: Record<string, string> = { double: 'double', int: 'int', join: 'list', size: 'list' }

/**
 * Adds to an error of an evaluation or a check how the expression gives a value where there is none. `nodes` are those of
 * the expression, outer ones first.
 */
export function withInstead(mistake: Mistake, error: unknown, nodes: readonly ASTNode[]): Mistake {
  const { code, node } = error as Fault
  if (!node || mistake.isCorrected) return mistake
  const form = formOf(ABSENCE.includes(code!) ? wholeOf(node, nodes) : node, code, mistakeOf(error).message)
  return form ? { ...mistake, message: `${mistake.message}: ${form}` } : mistake
}

/** How an expression gives another value where it gives null. */
export function insteadOf(text: string, other: string): string {
  return `\`or(${text}, ${other})\` gives a value instead`
}

/** The whole of `a.b.c`, of which `node` is `a.b`. */
function wholeOf(node: ASTNode, nodes: readonly ASTNode[]): ASTNode {
  return nodes.find(each => isAccess(each) && reaches(each, node)) ?? node
}

function reaches(from: ASTNode, node: ASTNode): boolean {
  return from === node || (isAccess(from) && reaches((from.args as [ASTNode])[0], node))
}

function formOf(node: ASTNode, code: string | undefined, message: string): string | null {
  const gives = (value: ASTNode, type: string) => ofNode(value, NONE[type] ?? "'-'")
  switch (code) {
    case 'no_such_key':
    case 'index_out_of_bounds':
      return gives(node, '')
    case 'no_such_overload': {
      const [, left = '', right = ''] = /: (?:dyn<)?(\w+).*? (?:[-+*/%]|[<>]=?|in) (?:dyn<)?(\w+)/.exec(message) ?? []
      const [first, second] = nodesIn(node.args)
      if (left === 'null') return gives(first!, right)
      return right === 'null' ? gives(second!, node.op === 'in' ? 'list' : left) : null
    }
    case 'no_matching_overload':
      return nullOfCall(node, message, gives)
    case 'invalid_comprehension_range':
    case 'invalid_logical_operand':
    case 'invalid_condition_type':
      return message.includes("'null'") ? gives(node, code === 'invalid_comprehension_range' ? 'list' : 'bool') : null
    default:
      return null
  }
}

/** Of a call: its receiver or an argument that is null. */
function nullOfCall(node: ASTNode, message: string, gives: (value: ASTNode, type: string) => string): string | null {
  const [, receiver, given = ''] = /^found no matching overload for '(?:([^'(]*)\.)?\w+\((.*)\)'/.exec(message) ?? []
  if (node.op !== 'rcall' && node.op !== 'call') return null
  const type = ARGUMENTS[node.args[0]] ?? ''
  if (node.op === 'rcall' && receiver === 'null') return gives(node.args[1], type)
  const args = node.op === 'rcall' ? node.args[2] : node.args[1]
  const value = args[given.split(', ').indexOf('null')]
  return value ? gives(value, type) : null
}

/** The form for a node. A value that already has another one in the form of optional values is written anew. */
function ofNode(node: ASTNode, other: string): string {
  if (node.op === 'value') return insteadOf('a.b', other)
  const isOrValue = node.op === 'rcall' && node.args[0] === 'orValue'
  const [value, given] = isOrValue ? [node.args[1], node.args[2][0]!] : [node, null]
  const text = textOf(value)?.replaceAll('.?', '.').replaceAll('[?', '[')
  return insteadOf(text ?? 'a.b', (given && textOf(given)) ?? other)
}

function textOf({ input, start, end }: ASTNode): string | null {
  return end - start > MAX_LENGTH ? null : input.slice(start, end)
}
