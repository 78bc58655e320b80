// What the phase printed that asks a person, from its beginning, so that nobody approves what they have not seen. The
// commands and the pages show the same of it, and say what they leave out and what is not there.

import { splitLines } from '../../text/one-line.ts'
import { type LogState, lackSoFar } from './log-lacks.ts'

/** How many lines are shown. */
const SHOWN_LINES = 200
const PAGE = 1_000

export interface AskedOutput {
  /** The attempt that asks. */
  attempt: number
  /** What earlier attempts printed, where there is room for all of it. */
  earlier: string[]
  hasEarlier: boolean
  /** What the attempt that asks printed. */
  present: string[]
  /** How many lines are not shown. */
  left: number
  /** What the hub does not have of the log of the run, in words. */
  lacks: string | null
}

interface Source {
  phases(): Promise<{ phases: readonly { name: string; attempt: number; started_at: number | null }[] }>
  lines(
    after_seq: number,
    limit: number,
  ): Promise<LogState & { lines: readonly { text: string; at: number }[]; next: number }>
}

export async function askedOutput(phase: string, source: Source): Promise<AskedOutput> {
  const { phases } = await source.phases()
  // The review may name a phase that the run does not have.
  const { attempt, started_at } = phases.find(({ name }) => name === phase) ?? { attempt: 1, started_at: null }
  const earlier: string[] = []
  const present: string[] = []
  let total = 0
  for (let after = 0; ; ) {
    const found = await source.lines(after, PAGE)
    for (const { text, at } of found.lines) {
      const kept = at < (started_at ?? 0) ? earlier : present
      const parts = splitLines(text)
      total += parts.length
      kept.push(...parts.slice(0, SHOWN_LINES + 1 - kept.length))
    }
    if (found.next !== after) {
      after = found.next
      continue
    }
    const hasRoom = earlier.length + present.length <= SHOWN_LINES
    const shown = { earlier: hasRoom ? earlier : [], present: present.slice(0, SHOWN_LINES) }
    const left = total - shown.earlier.length - shown.present.length
    return { attempt, ...shown, hasEarlier: earlier.length > 0, left, lacks: lackSoFar(found) }
  }
}

/** What stands between the lines of earlier attempts and those of the attempt that asks. */
export const markOf = ({ attempt, present }: AskedOutput): string =>
  `(attempt ${attempt}${present.length === 0 ? ' printed nothing' : ''})`
