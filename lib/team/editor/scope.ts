// The names that expressions can use at a place: phases, inputs and what an item of a map has, with where each is declared.

import type { Handler } from '../../agent/define.ts'
import { field, itemsOf, type Mapping, type Node, textOf } from '../yaml/yaml.ts'
import type { Around } from './around.ts'
import { nodeAt } from './place.ts'
import type { Path } from './schema-fields.ts'

export interface Declared {
  name: string
  /** What declares it. */
  node: Mapping
}

/** Whether the value at a path is a phase. */
export const isPhase = (path: Path): boolean => path.at(-2) === 'phases' && typeof path.at(-1) === 'number'

/** The path of the phase that a place is in; null outside of phases. */
export function phasePath(path: Path): Path | null {
  for (let length = path.length; length > 1; length--) {
    const above = path.slice(0, length)
    if (isPhase(above)) return above
  }
  return null
}

/** The phases that a place can name, listeners included: those beside its own, or below it for the outputs of a map. */
export function phasesFor(root: Node, path: Path): Declared[] {
  const own = phasePath(path)
  const inside = own && path[own.length] === 'outputs' ? nodeAt(root, [...own, 'phases']) : undefined
  return declaredIn(inside ?? (own ? nodeAt(root, own.slice(0, -1)) : field(root, 'phases')))
}

export const inputsOf = (root: Node): Declared[] => declaredIn(field(root, 'inputs'))

/** Whether `item` and `index` exist at a place: in what a map gives to each item, and in its own phases. */
export function hasItem(root: Node, path: Path): boolean {
  for (let own = phasePath(path); own; own = phasePath(own.slice(0, -1))) {
    const isMap = textOf(field(nodeAt(root, own), 'type')) === 'map'
    if (isMap && ['inputs', 'key', 'phases', 'outputs'].includes(String(path[own.length]))) return true
  }
  return false
}

/** Whether `secrets` can be used at a place. */
export function hasSecrets(root: Node, path: Path): boolean {
  const own = phasePath(path)
  if (!own || path.at(-1) === 'when') return false
  const type = textOf(field(nodeAt(root, own), 'type')) ?? 'standard'
  return type === 'standard' || (type === 'gate' && path.includes('env'))
}

function declaredIn(list: Node | undefined): Declared[] {
  return itemsOf(list).flatMap(node => {
    const name = textOf(field(node, 'name'))
    return node.kind === 'map' && name ? [{ name, node }] : []
  })
}

/** What an agent does in a phase; none when the agent, or its action, is not known. */
export function handlersOf({ agents }: Around, phase: Node | undefined): Handler[] {
  const name = textOf(field(phase, 'agent'))?.split('@', 1)[0]
  const definition = name === undefined || !agents.names().includes(name) ? undefined : agents.get(name)
  if (!definition) return []
  const action = textOf(field(phase, 'action'))
  const { actions = {}, source, target, phase: own } = definition
  if (action !== undefined) return Object.hasOwn(actions, action) ? [actions[action]!] : []
  return [source, target, own].filter(each => each !== undefined)
}

/** What a team gives to the phase that calls it, or takes from it. */
export function fieldsOfTeam(around: Around, phase: Node | undefined, which: 'inputs' | 'outputs'): Declared[] {
  const ref = textOf(field(phase, 'team'))
  const team = ref === undefined ? null : around.team(ref)
  return team ? declaredIn(field(team.root, which)) : []
}
