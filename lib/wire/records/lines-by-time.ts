// The logs of several runs in the order of time. A run says nothing before it starts, so only runs that overlap are read
// at the same time, and any number of runs takes little memory.

import type { LogLine, TreeLines } from './run-records.ts'

export interface LogStart {
  run_id: string
  started_at: number
}

/** Reads the next lines of a run after the line with this number. None: there are no more. */
export type ReadLines = (runId: string, after: number) => Promise<readonly LogLine[]>

interface Source extends LogStart {
  lines: readonly LogLine[]
  /** The next line of `lines`. */
  next: number
}

/** The lines of runs, which are in the order of their start, in pieces of one run each. */
export async function* linesByTime(starts: readonly LogStart[], read: ReadLines): AsyncGenerator<TreeLines> {
  const open: Source[] = []
  for (let at = 0; at < starts.length || open.length > 0; ) {
    const first = open.reduce<Source | null>(
      (least, source) => (least && timeOf(least) <= timeOf(source) ? least : source),
      null,
    )
    const start = starts[at]
    if (start && (!first || start.started_at <= timeOf(first))) {
      at++
      const lines = await read(start.run_id, 0)
      if (lines.length > 0) open.push({ ...start, lines, next: 0 })
      continue
    }
    // All lines of this run that come before those of any other are one piece.
    const others = open.reduce(
      (least, source) => (source === first ? least : Math.min(least, timeOf(source))),
      start?.started_at ?? Number.POSITIVE_INFINITY,
    )
    const from = first!.next++
    while (first!.next < first!.lines.length && timeOf(first!) <= others) first!.next++
    yield { run_id: first!.run_id, lines: first!.lines.slice(from, first!.next) }
    if (first!.next < first!.lines.length) continue
    const lines = await read(first!.run_id, first!.lines.at(-1)!.seq)
    if (lines.length > 0) Object.assign(first!, { lines, next: 0 })
    else open.splice(open.indexOf(first!), 1)
  }
}

const timeOf = ({ lines, next }: Source): number => lines[next]!.at
