// What a place of the file is about: a field, an agent, a phase or an input that is named there. Hover shows it, and "go to
// definition" leads to it.

import { field, type Node, readBroken, textOf } from '../yaml/yaml.ts'
import type { Around, OtherTeam } from './around.ts'
import { type Chain, chainAt } from './chain.ts'
import { isCondition } from './cursor.ts'
import { type Found, findAt, nodeAt, type Range } from './place.ts'
import type { Path } from './schema-fields.ts'
import { type Declared, fieldsOfTeam, inputsOf, isPhase, phasesFor } from './scope.ts'

export type Meaning = Range & { root: Node; path: Path } & (
    | { about: 'field' }
    | { about: 'agent'; agent: string }
    | { about: 'action'; agent: string; action: string }
    | { about: 'phase'; phase: Declared }
    | { about: 'input'; input: Declared }
    | { about: 'team'; team: OtherTeam }
    /** An input of the team that the phase calls. */
    | { about: 'input-of-team'; team: OtherTeam; input: Declared }
    | { about: 'secret'; name: string }
    /** A name that is not declared in a file, such as `phases.fetch.data`. */
    | { about: 'name'; above: readonly string[]; name: string }
  )

/** Null where nothing is known of a place. */
export function meaningAt(text: string, offset: number, around: Around): Meaning | null {
  const root = readBroken(text)
  const found = root && findAt(text, root, offset)
  if (!found) return null
  const { path, from, to } = found
  const at = { root, path, from, to }
  if (found.part === 'key') {
    return ofInputOfTeam(at, around) ?? { about: 'field', ...at }
  }
  const chain = chainIn(text, found, offset)
  if (chain) {
    const { from: begin, to: end } = chain.at(-1)!
    return ofChain({ ...at, from: begin, to: end }, chain)
  }
  return ofValue(at, textOf(found.scalar) ?? '', around)
}

type At = Range & { root: Node; path: Path }

function ofInputOfTeam(at: At, around: Around): Meaning | null {
  const { root, path } = at
  const phase = path.slice(0, -2)
  if (path.at(-2) !== 'inputs' || !isPhase(phase)) return null
  const team = around.team(textOf(field(nodeAt(root, phase), 'team')) ?? '')
  const input = fieldsOfTeam(around, nodeAt(root, phase), 'inputs').find(({ name }) => name === path.at(-1))
  return team && input ? { about: 'input-of-team', ...at, team, input } : null
}

function ofValue(at: At, value: string, around: Around): Meaning | null {
  const { root, path } = at
  const above = path.slice(0, -1)
  if (isPhase(above)) {
    const agent = path.at(-1) === 'agent' ? value : textOf(field(nodeAt(root, above), 'agent'))
    if (path.at(-1) === 'agent') return { about: 'agent', ...at, agent: value }
    if (path.at(-1) === 'action' && agent !== undefined) return { about: 'action', ...at, agent, action: value }
    const team = path.at(-1) === 'team' ? around.team(value) : null
    if (team) return { about: 'team', ...at, team }
  }
  const named =
    above.at(-1) === 'depends_on' || path.at(-1) === 'depends_on' ? value : /^files\/([^/]+)\//.exec(value)?.[1]
  const phase = named && phasesFor(root, path).find(({ name }) => name === named)
  if (phase) return { about: 'phase', ...at, phase }
  // A value of a list of choices is explained with its field.
  return typeof path.at(-1) === 'string' ? { about: 'field', ...at } : null
}

function ofChain(at: At, chain: Chain): Meaning | null {
  const { root, path } = at
  const names = chain.map(({ name }) => name)
  const [first, second] = names
  if (names.length === 2) {
    if (first === 'secrets') return { about: 'secret', ...at, name: second! }
    const phase = first === 'phases' && phasesFor(root, path).find(({ name }) => name === second)
    if (phase) return { about: 'phase', ...at, phase }
    const input = first === 'inputs' && inputsOf(root).find(({ name }) => name === second)
    if (input) return { about: 'input', ...at, input }
  }
  return { about: 'name', ...at, above: names.slice(0, -1), name: names.at(-1)! }
}

/** The names at an offset in an expression, with their offsets in the text; null outside of expressions. */
function chainIn(text: string, found: Found, offset: number): Chain | null {
  const { from, to, path } = found
  const value = text.slice(from, to)
  const index = offset - from
  const open = value.lastIndexOf('{{', index - 1)
  const isOpen = open !== -1 && !value.slice(open + 2, index).includes('}}')
  if (!isOpen && !isCondition(path)) return null
  const quoted = /^["']/.test(value) ? 1 : 0
  const begin = isOpen ? open + 2 : quoted
  const close = value.indexOf('}}', begin)
  const expression = value.slice(begin, isOpen && close !== -1 ? close : value.length - quoted)
  const chain = chainAt(expression, index - begin)
  if (!chain) return null
  return chain.map(({ name, from: start, to: end }) => {
    return { name, from: from + begin + start, to: from + begin + end }
  })
}
