// The order in which people have to look at the runs of a tree: what failed, then what waits, runs and is done. A run stands
// where the worst of the runs below it would stand, so a failure is near the top however deep it is.

import type { Static } from 'typebox'
import type { TreeView } from '../../wire/records/run-records.ts'

export type Branch = Static<typeof TreeView>['runs'][number]

/** From the worst state to the best. A state that only a newer program knows comes before those that need nobody. */
const ORDER = ['failed', 'crashed', 'awaiting_input', 'interrupted', 'running', 'queued', '', 'cancelled', 'completed']
const UNKNOWN = ORDER.indexOf('')

export const rankOf = (state: string): number => {
  const at = ORDER.indexOf(state)
  return at < 0 ? UNKNOWN : at
}
const bitOf = (state: string): number => 1 << rankOf(state)
const hasFailed = ({ state }: Branch): boolean => rankOf(state) <= rankOf('crashed')

export interface Ranked {
  run: Branch
  /** Whether it has runs below it. */
  parent: boolean
  /** Whether it failed, and no run right below it did. */
  cause: boolean
  /** How many rows, from this one on, are of the run and of the runs below it. */
  size: number
  /** The states of the run and of the runs below it, as bits. */
  states: number
  /** Whether no run below it has its state: it is one of those that are counted. */
  counts: boolean
}

/** The same runs with the worst first among those that have one parent. `runs` is in depth-first order. */
export function ranked(runs: readonly Branch[]): Ranked[] {
  const rows = runs.map(run => ({
    run,
    parent: false,
    cause: hasFailed(run),
    size: 1,
    states: bitOf(run.state),
    counts: true,
  }))
  const above = parentsOf(runs)
  // A run comes after all that is above it, so going backwards each is complete before it is added to its parent.
  for (let index = rows.length - 1; index >= 0; index--) {
    const row = rows[index]!
    const top = rows[above[index]!]
    if (!top) continue
    top.parent = true
    top.size += row.size
    top.states |= row.states
    if (hasFailed(row.run)) top.cause = false
    if ((row.states & bitOf(top.run.state)) !== 0) top.counts = false
  }
  return inOrder(rows, above)
}

/** For each run the index of the run above it; -1 for one whose parent is not here. */
function parentsOf(runs: readonly Branch[]): number[] {
  const path: number[] = []
  return runs.map(({ call_depth }, index) => {
    while (path.length > 0 && runs[path.at(-1)!]!.call_depth >= call_depth) path.pop()
    const parent = path.at(-1) ?? -1
    path.push(index)
    return parent
  })
}

/** Puts each row at its place: behind its parent and those of its siblings that are worse, with all that is below them. */
function inOrder(rows: readonly Ranked[], above: readonly number[]): Ranked[] {
  const children = new Map<number, number[]>()
  for (const [index, parent] of above.entries()) {
    const known = children.get(parent)
    if (known) known.push(index)
    else children.set(parent, [index])
  }
  const places = new Array<number>(rows.length)
  const place = (parent: number, first: number): void => {
    let next = first
    // Sorting keeps the order of equal ones.
    for (const index of children.get(parent)?.sort((one, other) => worst(rows[one]!) - worst(rows[other]!)) ?? []) {
      places[index] = next
      next += rows[index]!.size
    }
  }
  place(-1, 0)
  // Parents come before their children.
  for (const [index, row] of rows.entries()) if (row.parent) place(index, places[index]! + 1)
  const ordered = new Array<Ranked>(rows.length)
  for (const [index, row] of rows.entries()) ordered[places[index]!] = row
  return ordered
}

/** The rank of the worst state of a run and of those below it. */
const worst = ({ states }: Ranked): number => Math.clz32(1) - Math.clz32(states & -states)

/** How many runs are in which state, the worst first. Of those above others in the same state only the lowest count. */
export function countsOf(rows: readonly Ranked[]): [state: string, count: number][] {
  const counts = new Map<string, number>()
  for (const { run, counts: isCounted } of rows) {
    if (isCounted) counts.set(run.state, (counts.get(run.state) ?? 0) + 1)
  }
  return [...counts].sort(([one], [other]) => rankOf(one) - rankOf(other))
}

/** The rows of open branches. With a state, only runs in that state, and what is above them. */
export function openRows(rows: readonly Ranked[], closed: ReadonlySet<string>, state: string): Ranked[] {
  const open: Ranked[] = []
  for (let index = 0; index < rows.length; ) {
    const row = rows[index]!
    const fits = state === '' || (row.states & bitOf(state)) !== 0
    if (fits) open.push(row)
    index += fits && !closed.has(row.run.run_id) ? 1 : row.size
  }
  return open
}

/** The run of the failure that comes after a run; after the last one the first. */
export function failureAfter(rows: readonly Ranked[], shown: string | null): string | null {
  const at = rows.findIndex(({ run }) => run.run_id === shown)
  const found = rows.find(({ cause }, index) => cause && index > at) ?? rows.find(({ cause }) => cause)
  return found?.run.run_id ?? null
}
