// What is known of values before a run: the states that a phase can have, the declared types of inputs, and what an
// expression gives. An equality that can never be true is reported when a team is read, because the run would not fail: it
// would do the other thing.

import type { ASTNode } from '@marcbachmann/cel-js'
import { didYouMean, type OtherNames } from '../../text/spelling.ts'
import type { FieldType } from '../../wire/records/forms.ts'
import { PHASE_STATES } from '../../wire/states.ts'
import type { Mistake } from './hints.ts'
import { isAccess, type Path, pathOf } from './path.ts'

/** The declared types of the inputs, by name. */
export type InputTypes = ReadonlyMap<string, FieldType>

/** What a value is, in words. */
export type Kind = 'text' | 'a number' | 'true or false' | 'a list' | 'an object'

export const KINDS: Readonly<Record<FieldType, Kind>> = {
  string: 'text',
  file: 'text',
  number: 'a number',
  boolean: 'true or false',
  list: 'a list',
  object: 'an object',
}

const EQUALITIES = ['==', '!=']

const STATES: readonly string[] = PHASE_STATES

/** The names of the states in other pipelines. */
const OTHER_STATES: OtherNames = {
  completed: ['success', 'succeeded', 'successful', 'passed', 'pass', 'done', 'finished', 'ended', 'ok', 'green'],
  failed: ['failure', 'fail', 'error', 'errored', 'red', 'timeout', 'timed_out'],
  cancelled: ['aborted', 'stopped'],
  skipped: ['skip'],
}

/**
 * The mistakes of an equality with a literal, or of `in` a list of them. Of states, those for which it is known what was
 * meant. `bound` has the variables of the loops around it.
 */
export function neverTrue(node: ASTNode, types: InputTypes, bound: readonly string[]): Mistake[] {
  const sides = sidesOf(node)
  if (!sides) return []
  return sides.flatMap(([side, literal]) => {
    const path = pathOf(side)
    const mistake = path && !bound.includes(path.root) ? differs(path, literal, types) : null
    return mistake ? [{ offset: literal.start, message: mistake }] : []
  })
}

/** What is compared with what: both ways round, and with each item of a list after `in`. */
function sidesOf({ op, args }: ASTNode): [side: ASTNode, literal: ASTNode][] | null {
  if (EQUALITIES.includes(op)) {
    const [left, right] = args as [ASTNode, ASTNode]
    return [
      [left, right],
      [right, left],
    ]
  }
  if (op !== 'in') return null
  const [item, list] = args as [ASTNode, ASTNode]
  return list.op === 'list' ? (list.args as ASTNode[]).map(each => [item, each]) : null
}

function differs({ root, keys }: Path, literal: ASTNode, types: InputTypes): string | null {
  const [first, second] = keys
  const kind = kindOf(literal)
  if (root === 'phases' && keys.length === 2 && second!.name === 'state') {
    const state = String(literal.args)
    if (kind !== 'text' || STATES.includes(state)) return null
    const hint = didYouMean(state.toLowerCase(), STATES, OTHER_STATES)
    return hint && `a phase is never \`${state}\`${hint}: its states are ${STATES.join(', ')}`
  }
  const type = root === 'inputs' && keys.length === 1 ? types.get(first!.name) : undefined
  if (!type || !kind || kind === KINDS[type]) return null
  return `input \`${first!.name}\` is ${KINDS[type]} and is compared with ${kind} here`
}

function kindOf(literal: ASTNode): Kind | null {
  if (literal.op === 'list') return 'a list'
  if (literal.op === 'map') return 'an object'
  if (literal.op !== 'value') return null
  switch (typeof literal.args) {
    case 'string':
      return 'text'
    case 'bigint':
    case 'number':
      return 'a number'
    case 'boolean':
      return 'true or false'
    default:
      return null
  }
}

/** The kinds of CEL's types, by their names without those of their parts. A time becomes a text. */
const OF_CEL: Readonly<Record<string, Kind>> = {
  ...{ int: 'a number', uint: 'a number', double: 'a number', string: 'text', bool: 'true or false', list: 'a list' },
  ...{ map: 'an object', 'google.protobuf.Timestamp': 'text', 'google.protobuf.Duration': 'text' },
}

const OF_PHASE: Readonly<Record<string, Kind>> = { state: 'text', reason: 'text', text: 'text', files: 'a list' }
const OF_MAP: Readonly<Record<string, Kind>> = {
  ...{ total: 'a number', completed: 'a number', failed: 'a number', cancelled: 'a number', items: 'a list' },
}
const OF_RUN: Readonly<Record<string, Kind>> = { id: 'text', name: 'text', started_at: 'a number', environment: 'text' }

/** Functions whose type cel-js takes from one of the values that they may give. */
const ONE_OF = ['bind', 'first', 'last', 'or', 'orValue', 'value']

/**
 * What a checked expression gives in every run in which it gives something; null when that is not known. It may always give
 * null, or fail: an input may not be given, and a phase may not complete. `maps` are the phases of type map.
 */
export function kindGiven(node: ASTNode, types: InputTypes, maps: ReadonlySet<string>): Kind | null {
  const path = pathOf(node)
  if (path) return kindAt(path, types, maps)
  const both = ([one, other]: readonly ASTNode[]) => {
    const kind = kindGiven(one!, types, maps)
    return kind === kindGiven(other!, types, maps) ? kind : null
  }
  if (node.op === '?:') return both((node.args as ASTNode[]).slice(1))
  if (node.op === 'call' && node.args[0] === 'or') return both(node.args[1])
  // Of an item of a list or a map, CEL knows the type of one of them.
  if (isAccess(node) || ((node.op === 'call' || node.op === 'rcall') && ONE_OF.includes(node.args[0]))) return null
  const type = String((node as { checkedType?: unknown }).checkedType ?? 'dyn').replace(/<.*$/, '')
  return Object.hasOwn(OF_CEL, type) ? OF_CEL[type]! : null
}

function kindAt({ root, keys }: Path, types: InputTypes, maps: ReadonlySet<string>): Kind | null {
  const [first, second, third] = keys.map(({ name }) => name)
  if (first === undefined) return root === 'index' ? 'a number' : root === 'inputs' ? 'an object' : null
  const of = (kinds: Readonly<Record<string, Kind>>, name: string) => (Object.hasOwn(kinds, name) ? kinds[name]! : null)
  if (keys.length === 1) {
    const type = root === 'inputs' ? types.get(first) : undefined
    if (type) return KINDS[type]
    return root === 'run' ? of(OF_RUN, first) : root === 'secrets' ? 'text' : null
  }
  if (root !== 'phases') return null
  if (keys.length === 2) return of(OF_PHASE, second!)
  return keys.length === 3 && second === 'data' && maps.has(first) ? of(OF_MAP, third!) : null
}

/** How the length of a value is written, for somebody who looked for a field with that name. */
export function lengthHint(key: string): string {
  return key === 'length' ? ': the length of a text or a list is written `size(x)`' : ''
}
