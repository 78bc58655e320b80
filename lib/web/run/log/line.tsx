// One line of a log: its number, which is its address, its time, the phase that said it, and its text.

import { useMemo } from 'preact/hooks'
import { Coloured } from '../../kit/parts.tsx'
import { go, route, toLines } from '../../kit/route.ts'
import type { Lines, LoggedLine } from './lines.ts'
import { LineTime } from './times.tsx'

/** The phases and names that lead to a run, by the id of the run. */
export type Paths = ReadonlyMap<string, string>

export const pathOf = ({ run_id, phase }: LoggedLine, paths: Paths | null): string =>
  [paths?.get(run_id), phase].filter(Boolean).join('/')

/** A line never changes, so it is drawn once while it is visible. */
export function Line({
  lines,
  at,
  paths,
  started,
  chosen,
  indent,
  wraps,
}: {
  lines: Lines
  at: number
  paths: Paths | null
  /** When the run of the page started. */
  started: number
  chosen: boolean
  /** How far the text stands to the right, in pixels. */
  indent: number
  /** Whether it may be higher than one line. */
  wraps: boolean
}) {
  return useMemo(
    () => lineElement(lines.at(at), at, paths, started, chosen, indent, wraps),
    [lines, at, paths, started, chosen, indent, wraps],
  )
}

function lineElement(
  line: LoggedLine | undefined,
  index: number,
  paths: Paths | null,
  started: number,
  chosen: boolean,
  indent: number,
  wraps: boolean,
) {
  if (!line) return <div class="line" />
  const path = pathOf(line, paths)
  return (
    <div class={`line ${line.stream} ${chosen ? 'chosen' : ''}`} aria-current={chosen ? 'true' : undefined}>
      <NumberOf line={line} />
      <LineTime at={line.at} started={started} />
      <span class="quiet phase-name" title={path}>
        {path}
      </span>
      <span
        class="text"
        data-at={index}
        style={indent > 0 ? { marginLeft: `${indent}px` } : undefined}
        title={line.text.length > 200 ? line.text.slice(0, 2_000) : undefined}
      >
        <Coloured text={wraps ? line.text : line.text.replaceAll('\n', ' ↵ ')} />
        {line.stream === 'log' && line.fields && <span class="quiet"> {JSON.stringify(line.fields)}</span>}
      </span>
    </div>
  )
}

/** The number of a line, which is a link to it. */
export function NumberOf({ line }: { line: LoggedLine }) {
  return (
    <a
      class="quiet seq"
      tabIndex={-1}
      href={toLines(line.run_id, line.seq)}
      onClick={event => event.shiftKey && extend(event, line)}
      aria-label={`Line ${line.seq}`}
    >
      {line.seq}
    </a>
  )
}

/** Shift and a click choose the lines from the one that the address has to this one. */
function extend(event: Event, { run_id, seq }: LoggedLine): void {
  const { parts, query, lines } = route.peek()
  // Otherwise the browser would open the link in another window.
  event.preventDefault()
  const isOfRun = parts[1] === run_id
  go(toLines(run_id, isOfRun && lines ? lines.from : seq, seq, isOfRun ? Object.fromEntries(query) : {}))
}
