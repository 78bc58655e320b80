// The graph of phases. Finds cycles, and checks that expressions name only phases that have ended before.

import { didYouMean } from '../../text/spelling.ts'
import { NEXT_PAGE } from '../cel/cel.ts'
import { field, itemsOf, type Mapping, textOf } from '../yaml/yaml.ts'
import type { Compilation } from './compilation.ts'

export interface GraphPhase {
  name: string
  node: Mapping
}

export interface Edges {
  dependsOn: number[]
  dependants: number[]
}

/** The edges of each phase, by position in `phases`. Mistakes are reported. */
export function buildGraph(
  compilation: Compilation,
  phases: readonly GraphPhase[],
  listeners: ReadonlySet<string>,
): Edges[] {
  const positions = new Map<string, number>()
  for (const [at, { name }] of phases.entries()) if (!positions.has(name)) positions.set(name, at)
  const edges: Edges[] = phases.map(() => ({ dependsOn: [], dependants: [] }))
  for (const [at, { name, node }] of phases.entries()) {
    for (const item of itemsOf(field(node, 'depends_on'))) {
      const wanted = textOf(item)
      if (wanted === undefined) continue
      const position = positions.get(wanted)
      if (wanted === name) compilation.source.report(item, `\`${name}\` cannot depend on itself`)
      else if (listeners.has(wanted))
        compilation.source.report(item, `\`${wanted}\` is a listener: nothing can depend on it`)
      else if (position === undefined && compilation.around?.has(wanted)) {
        const why = 'the map begins after the phases in its own `depends_on`'
        compilation.source.report(item, `\`${wanted}\` is outside of this map: ${why}`)
      } else if (position === undefined) {
        compilation.source.report(item, `there is no phase \`${wanted}\`${didYouMean(wanted, positions.keys())}`)
      } else if (edges[at]!.dependsOn.includes(position))
        compilation.source.report(item, `\`${wanted}\` is listed twice`)
      else {
        edges[at]!.dependsOn.push(position)
        edges[position]!.dependants.push(at)
      }
    }
  }
  const order = topological(edges)
  if (order.length < phases.length) reportCircle(compilation, phases, edges, new Set(order))
  else checkUses(compilation, phases, listeners, ancestorsOf(edges, order))
  return edges
}

function topological(edges: readonly Edges[]): number[] {
  const open = edges.map(edge => edge.dependsOn.length)
  const order = edges.flatMap((edge, at) => (edge.dependsOn.length === 0 ? [at] : []))
  for (let next = 0; next < order.length; next++) {
    for (const dependant of edges[order[next]!]!.dependants) if (--open[dependant]! === 0) order.push(dependant)
  }
  return order
}

/**
 * Reports a cycle. Every phase that is not in the order has a dependency that is not in it either, and following these
 * leads into a cycle.
 */
function reportCircle(
  compilation: Compilation,
  phases: readonly GraphPhase[],
  edges: readonly Edges[],
  ordered: Set<number>,
): void {
  const path: number[] = []
  let at = phases.findIndex((_, position) => !ordered.has(position))
  while (!path.includes(at)) {
    path.push(at)
    at = edges[at]!.dependsOn.find(position => !ordered.has(position))!
  }
  const circle = path.slice(path.indexOf(at))
  const first = Math.min(...circle)
  const turned = [...circle.slice(circle.indexOf(first)), ...circle.slice(0, circle.indexOf(first)), first]
  const { node } = phases[first]!
  const place = field(node, 'depends_on') ?? node
  compilation.source.report(
    place,
    `phases depend on each other in a circle: ${turned.map(each => phases[each]!.name).join(' → ')}`,
  )
}

/** The ancestors of each phase as one bit per phase: 125 kB for 1,000 phases. */
function ancestorsOf(edges: readonly Edges[], order: readonly number[]): Uint32Array[] {
  const words = Math.ceil(edges.length / 32)
  const ancestors = edges.map(() => new Uint32Array(words))
  for (const at of order) {
    const mine = ancestors[at]!
    for (const parent of edges[at]!.dependsOn) {
      const theirs = ancestors[parent]!
      for (let word = 0; word < words; word++) mine[word]! |= theirs[word]!
      mine[parent >> 5]! |= 1 << (parent & 31)
    }
  }
  return ancestors
}

function checkUses(
  compilation: Compilation,
  phases: readonly GraphPhase[],
  listeners: ReadonlySet<string>,
  ancestors: readonly Uint32Array[],
): void {
  const positions = new Map(phases.map(({ name }, at) => [name, at]))
  for (const { name, by, place } of compilation.uses) {
    const position = positions.get(name)
    if (listeners.has(name)) compilation.source.report(place, `\`${name}\` is a listener: it has no result`)
    else if (by === null || position === undefined) continue
    else if (by === name) {
      const hint = phases[position]!.node.entries.has('repeat') ? `; in \`until\` it is \`result\`; ${NEXT_PAGE}` : ''
      compilation.source.report(place, `\`${name}\` cannot use its own result${hint}`)
    } else if (!(ancestors[positions.get(by)!]![position >> 5]! & (1 << (position & 31)))) {
      compilation.source.report(place, `\`${name}\` may not have run before \`${by}\`: add it to \`depends_on\``)
    }
  }
}
