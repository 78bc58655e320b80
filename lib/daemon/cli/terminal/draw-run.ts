// A run drawn as a tree that fits a window: phases in file order, and sub-runs below the phase that started them. The
// items of a map are drawn most urgent first: failed, waiting for a person, running. When the window is too small, the
// most urgent lines stay, each with the lines above it in the tree, and the last line counts the rest.

import { formatDuration } from '../../../duration.ts'
import type { RunError } from '../../../run/engine.ts'
import {
  clip,
  joined,
  line,
  lines,
  nothing,
  type Paint,
  type Printable,
  pad,
  trimmed,
  wrap,
} from '../../../text/printable.ts'
import type { PhaseEvent } from '../../../wire/records/run-records.ts'
import { type RunTimes, tookMs } from '../../../wire/records/words.ts'
import { hasEnded, isBegunAgain, type RunNode } from './run-model.ts'
import { symbol } from './state-symbols.ts'

export interface DrawOptions {
  paint: Paint
  now: number
  /** Whether the symbols of running phases turn. */
  live: boolean
  columns: number
  rows: number
}

/** A map with more items does not show those that are neither failed nor at work. */
const SHOWN_ITEMS = 8
const INDENT = '  '
/** Columns of a duration, and the two before it. */
const TIME = 7
const GAP = 2
/** Lines of an error's message. */
const MESSAGE = 6

interface Line {
  parent: Line | null
  depth: number
  state: string
  label: Printable
  note: Printable
  time: string
  /** Text below a line, which stays or goes with it. It has no symbol and no time, and may take several rows. */
  asides: readonly Printable[]
  /** How many items it stands for; 1 where it is absent. */
  count?: number
}

const URGENCY: Readonly<Record<string, number>> = { failed: 0, awaiting_input: 1, running: 2, retry: 2 }
const urgency = ({ state }: Pick<Line, 'state'>): number => URGENCY[state] ?? 3

export function drawRun(root: RunNode, options: DrawOptions): Printable[] {
  const { record } = root
  const { paint } = options
  const name = record.run_name === null ? '' : line` ${paint.dim(record.run_name)}`
  const place = record.environment ? line` ${paint.dim(`in ${record.environment}`)}` : ''
  const title: Line = {
    parent: null,
    depth: 0,
    state: record.state,
    label: line`${paint.bold(record.team)}${name}${place}`,
    note: record.state === 'queued' && record.reason !== null ? paint.yellow(record.reason) : nothing,
    time: elapsed(record, options.now),
    asides: ownErrorLines(root),
  }
  const { kept, hidden } = fitted([title, ...phaseLines(root, title, options)], options)
  const width = Math.min(Math.max(...kept.map(widthOf)) + GAP, Math.max(16, options.columns - TIME - 1))
  const drawn = kept.flatMap(each => drawLine(each, width, options))
  if (hidden.length > 0) drawn.push(clip(options.paint.dim(`${INDENT}… ${counted(hidden)}`), options.columns))
  // A long error alone can be higher than a low window.
  return drawn.slice(0, options.rows)
}

function drawLine(drawn: Line, width: number, options: DrawOptions): Printable[] {
  const { paint, now, live, columns } = options
  const { state, depth, label, note, time } = drawn
  const mark = symbol(paint, state === 'retry' ? 'pending' : state, live ? now : undefined)
  const text = line`${INDENT.repeat(depth)}${mark} ${label}${note.isEmpty ? '' : line`  ${note}`}`
  const first = trimmed(line`${pad(clip(text, width), width)}${paint.dim(time.padStart(TIME))}`, 'end')
  return [first, ...asideRows(drawn, columns).map(row => paint.dim(row))]
}

/** The texts below a line, wrapped where they would leave the window. */
function asideRows({ asides, depth }: Line, columns: number): Printable[] {
  const head = INDENT.repeat(depth + 1)
  const room = Math.max(16, columns - head.length)
  return asides.flatMap(text => wrap(text, room).slice(0, MESSAGE)).map(row => line`${head}${row}`)
}

function phaseLines(node: RunNode, parent: Line, options: DrawOptions): Line[] {
  return node.phases.flatMap((phase, position) => {
    if (!phase) return []
    const runs = node.below.get(phase.name) ?? []
    const own: Line = {
      ...lineOf(phase, options),
      parent,
      depth: parent.depth + 1,
      note: noteOf(phase, runs, options.paint),
      asides: node.tried[position] === undefined ? errorLines(phase) : [line`${node.tried[position]}`],
    }
    return [own, ...below(phase, runs, own, options)]
  })
}

function lineOf({ name, state, reason, started_at, completed_at }: PhaseEvent, { paint, now }: DrawOptions) {
  const waiting = state === 'pending' || state === 'skipped'
  return {
    state: isBegunAgain({ state, reason }) ? 'retry' : state,
    label: waiting ? paint.dim(name) : line`${name}`,
    time: state === 'pending' ? '' : elapsed({ started_at, completed_at }, now),
  }
}

function noteOf(phase: PhaseEvent, runs: readonly RunNode[], paint: Paint): Printable {
  if (phase.type === 'map' && phase.items != null) return mapNote(phase.items, runs, paint)
  if (phase.state === 'awaiting_input') return paint.yellow(waitText(phase.reason))
  if (phase.state === 'skipped') return paint.dim(phase.reason ?? '')
  const turn = phase.turns?.at(-1)
  if (turn && phase.state === 'pending' && phase.reason === 'repeat') return paint.dim(`waits after turn ${turn.turn}`)
  if (isBegunAgain(phase)) return paint.yellow('tries again')
  if (turn && phase.state === 'running') return paint.dim(`turn ${turn.turn}`)
  return nothing
}

function waitText(reason: string | null): string {
  return reason === null || reason === 'review' ? 'waits for a person' : `waits for a person: ${reason}`
}

function mapNote(items: number, runs: readonly RunNode[], paint: Paint): Printable {
  const number = { completed: 0, failed: 0, cancelled: 0, awaiting_input: 0 } as Record<string, number>
  for (const { record } of runs) number[record.state] = (number[record.state] ?? 0) + 1
  const { completed = 0, failed = 0, cancelled = 0, awaiting_input: waiting = 0 } = number
  const parts = [paint.dim(`${completed + failed + cancelled}/${items}`)]
  if (failed > 0) parts.push(paint.red(`${failed} failed`))
  if (waiting > 0) parts.push(paint.yellow(`${waiting} waiting`))
  return joined(parts, ' ')
}

/** The lines of an error. They are drawn only where it began, because the phases above repeat it. */
function errorLines(phase: PhaseEvent): Printable[] {
  if (!phase.error || phase.state === 'completed' || phase.type === 'team') return []
  // If a map could not evaluate its items, no sub-run failed, so the error is drawn here.
  if (phase.type === 'map' && phase.items) return []
  return asideTexts(phase.error)
}

/**
 * A run can fail by itself, because of its outputs or its time-out. Of a run that had ended before anyone looked, the
 * phases are not known, but its error names the one that failed.
 */
function ownErrorLines({ record: { error }, phases }: RunNode): Printable[] {
  if (!error || phases.some(phase => phase?.state === 'failed')) return []
  const prefix = phases.length === 0 && error.phase !== undefined ? `${error.phase}: ` : ''
  return asideTexts({ ...error, message: prefix + error.message })
}

function asideTexts({ message, hint }: RunError): Printable[] {
  return [...lines(message).slice(0, MESSAGE), ...(hint ? [line`${hint}`] : [])]
}

function below(phase: PhaseEvent, runs: readonly RunNode[], parent: Line, options: DrawOptions): Line[] {
  if (phase.type === 'team')
    return runs.flatMap(run => (run.record.state === 'completed' ? [] : phaseLines(run, parent, options)))
  if ((phase.items ?? runs.length) <= SHOWN_ITEMS) {
    const allWell = phase.state === 'completed' && runs.every(({ record }) => record.state === 'completed')
    return allWell ? [] : runs.flatMap(run => itemLines(run, parent, options))
  }
  return [0, 1, 2].flatMap(level => {
    const ofLevel = runs.filter(({ record }) => urgency(record) === level)
    // More than fit in the window are only counted.
    const more = ofLevel.length - options.rows
    const drawn = ofLevel.slice(0, options.rows).flatMap(run => itemLines(run, parent, options))
    return more <= 0 ? drawn : [...drawn, moreLine(more, ofLevel[0]!.record.state, parent, options)]
  })
}

function moreLine(count: number, state: string, parent: Line, { paint }: DrawOptions): Line {
  const label = paint.dim(`${count} more`)
  return { parent, depth: parent.depth + 1, state, label, note: nothing, time: '', asides: [], count }
}

function itemLines(run: RunNode, parent: Line, options: DrawOptions): Line[] {
  const { record } = run
  const own: Line = {
    parent,
    depth: parent.depth + 1,
    state: record.state,
    label: line`${record.run_name ?? record.team}`,
    note: nothing,
    time: elapsed(record, options.now),
    asides: ownErrorLines(run),
  }
  return [own, ...(hasEnded(run) && record.state === 'completed' ? [] : phaseLines(run, own, options))]
}

/**
 * The most urgent lines that fit, with all lines above them in the tree, in their order, and what is missing directly
 * below these.
 */
function fitted(all: readonly Line[], { rows, columns }: DrawOptions): { kept: Line[]; hidden: Line[] } {
  const height = (drawn: Line) => 1 + asideRows(drawn, columns).length
  if (all.reduce((sum, drawn) => sum + height(drawn), 0) <= rows) return { kept: [...all], hidden: [] }
  const kept = new Set<Line>()
  let left = rows - 1
  const parents = new Set(all.map(({ parent }) => parent))
  const leaves = all.filter(drawn => !parents.has(drawn))
  // The first of each urgency has a place before all others. The sort is stable, so equals stay in their order.
  const sorted = leaves.toSorted((a, b) => urgency(a) - urgency(b))
  const firsts = [0, 1, 2].flatMap(level => sorted.find(leaf => urgency(leaf) === level) ?? [])
  for (const leaf of new Set([...firsts, ...sorted])) {
    const missing: Line[] = []
    for (let at: Line | null = leaf; at && !kept.has(at); at = at.parent) missing.push(at)
    const needed = missing.reduce((sum, each) => sum + height(each), 0)
    if (needed > left && kept.size > 0) continue
    for (const each of missing) kept.add(each)
    left -= needed
  }
  const hidden = all.filter(({ parent }) => parent !== null && kept.has(parent)).filter(each => !kept.has(each))
  return { kept: all.filter(drawn => kept.has(drawn)), hidden }
}

/** `and 3 failed, 9 pending`. */
function counted(hidden: readonly Line[]): string {
  const states = Map.groupBy(
    hidden.toSorted((a, b) => urgency(a) - urgency(b)),
    ({ state }) => state,
  )
  const sum = (lines: readonly Line[]) => lines.reduce((total, { count = 1 }) => total + count, 0)
  const parts = Array.from(states, ([state, lines]) => `${sum(lines)} ${state.replaceAll('_', ' ')}`)
  return `and ${parts.join(', ')}`
}

function widthOf({ depth, label, note }: Line): number {
  return depth * INDENT.length + 2 + label.width + (note.isEmpty ? 0 : 2 + note.width)
}

/** Shows the time of what still runs in tenths of a second, which is calmer to look at than milliseconds. */
function elapsed(of: RunTimes, now: number): string {
  const whole = tookMs(of)
  if (whole !== null) return formatDuration(whole)
  if (of.started_at === null) return ''
  const ms = Math.max(0, now - of.started_at)
  return ms < 10_000 ? `${(ms / 1_000).toFixed(1)}s` : formatDuration(ms)
}
