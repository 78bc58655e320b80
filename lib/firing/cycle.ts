// Chains that would start each other for ever, found before one of them is enabled. Pure.

import { type ChainSpec, follows } from './chain-kind.ts'

/** A chain that is enabled: `starts` is the name of the team that it starts. */
export interface Link extends Pick<ChainSpec, 'after'> {
  name: string
  starts: string
}

/** The names of chains by which `first` comes back to itself, from `first` to `first`; null when it does not. */
export function cycleOf(first: Link, chains: readonly Link[]): string[] | null {
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
