// Chains that would start each other for ever: found before one of them is enabled, and at each start by the runs above it.

import { CadreError } from '../error.ts'
import type { StartedBy } from '../wire/records/started-by.ts'
import { type ChainSpec, depthOf, type EndedRun, follows } from './chain-kind.ts'
import type { Halt } from './halt.ts'
import type { Trigger } from './trigger.ts'

/** A chain that is enabled: `starts` is the name of the team that it starts. */
export interface Link extends Pick<ChainSpec, 'after'> {
  name: string
  starts: string
}

/** Throws `conflict` when `first` would come back to itself. `chains`: the others that are enabled. */
export function mustNotComeBack(first: Link, chains: readonly Link[]): void {
  const cycle = cycleOf(first, chains)
  if (cycle) throw new CadreError('conflict', `these chains would start each other for ever: ${cycle.join(' → ')}`)
}

/** The names of chains by which `first` comes back to itself, from `first` to `first`; null when it does not. */
function cycleOf(first: Link, chains: readonly Link[]): string[] | null {
  const seen = new Set<string>()
  const paths: Link[][] = [[first]]
  for (let path = paths.shift(); path; path = paths.shift()) {
    const { starts } = path.at(-1)!
    if (follows(first, starts)) return [...path, first].map(({ name }) => name)
    for (const next of chains) {
      if (seen.has(next.name) || next.name === first.name || !follows(next, starts)) continue
      seen.add(next.name)
      paths.push([...path, next])
    }
  }
  return null
}

/** The runs of a chain that a chain starts are at most so many. */
const MOST_DEPTH = 16

/**
 * Why the end of a run starts nothing, by what started the runs above it. `starterOf`: what started a run; null where it is
 * not kept.
 */
export async function forbiddenAfter(
  { id, name }: Pick<Trigger, 'id' | 'name'>,
  run: EndedRun,
  starterOf: (runId: string) => Promise<StartedBy | null>,
): Promise<Halt | null> {
  if (depthOf(run) > MOST_DEPTH) {
    const detail = `${MOST_DEPTH} runs were started one by another before it`
    return { state: 'refused', reason: 'depth', detail }
  }
  let by: StartedBy | null = run.started_by
  for (let above = 0; by?.kind === 'chain' && above <= MOST_DEPTH; above++) {
    if (by.trigger === id) {
      return { state: 'refused', reason: 'cycle', detail: `${name} has started a run above this one already` }
    }
    by = await starterOf(by.run_id)
  }
  return null
}
