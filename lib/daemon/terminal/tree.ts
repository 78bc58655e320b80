// A run drawn as a tree: phases in file order, and sub-runs below the phase that started them. A completed phase is one
// line. A map with many items shows counts, its running items and its failed items.

import { formatDuration } from '../../duration.ts'
import type { RunError } from '../../run/engine.ts'
import type { PhaseEvent } from '../../wire/run-records.ts'
import { hasEnded, type RunNode } from './model.ts'
import { inline, type Paint, printable, symbol } from './paint.ts'
import { pad } from './table.ts'

export interface DrawOptions {
  paint: Paint
  now: number
  /** Whether the symbols of running phases turn. */
  live: boolean
  columns: number
  /** The maximum number of lines. By default all are drawn. */
  rows?: number
}

/** A map with more items shows counts instead of all items. */
const SHOWN_ITEMS = 8
const SHOWN_OF_MANY = 5
const INDENT = '  '

interface Line {
  depth: number
  state: string
  label: string
  note: string
  time: string
  /** Text under a line, without symbol and time. */
  aside?: boolean
}

export function drawRun(root: RunNode, options: DrawOptions): string[] {
  const { paint, now, live } = options
  const { record } = root
  const name = record.run_name === null ? '' : ` ${paint.dim(inline(record.run_name))}`
  const title: Line = {
    depth: 0,
    state: record.state,
    label: paint.bold(record.team) + name,
    note: '',
    time: elapsed(record, now),
  }
  const lines = fitted([title, ...ownErrorLines(root, 0, options), ...phaseLines(root, 1, options)], options.rows)
  const width = Math.min(
    Math.max(...lines.map(line => (line.aside ? 0 : widthOf(line)))) + 2,
    Math.max(24, options.columns - 10),
  )
  return lines.map(line => {
    const head = INDENT.repeat(line.depth)
    if (line.aside) return clip(head + INDENT + line.label, options.columns)
    const mark = symbol(paint, line.state, live ? now : undefined)
    const text = `${head}${mark} ${line.label}${line.note && `  ${line.note}`}`
    return `${pad(clip(text, width), width)}${paint.dim(line.time.padStart(7))}`.trimEnd()
  })
}

function phaseLines(node: RunNode, depth: number, options: DrawOptions): Line[] {
  return node.phases.flatMap(phase => {
    if (!phase) return []
    const runs = node.below.get(phase.name) ?? []
    const line: Line = { ...lineOf(phase, options), depth, note: noteOf(phase, runs, options.paint) }
    return [line, ...errorLines(phase, depth, options), ...below(phase, runs, depth + 1, options)]
  })
}

function lineOf({ name, state, started_at, completed_at }: PhaseEvent, { paint, now }: DrawOptions) {
  const waiting = state === 'pending' || state === 'skipped'
  return {
    state,
    label: waiting ? paint.dim(name) : name,
    time: state === 'pending' ? '' : elapsed({ started_at, completed_at }, now),
  }
}

function noteOf(phase: PhaseEvent, runs: readonly RunNode[], paint: Paint): string {
  if (phase.state === 'awaiting_input') return paint.yellow(phase.reason ?? 'waits for a person')
  if (phase.state === 'skipped') return paint.dim(phase.reason ?? '')
  if (phase.state === 'pending' && phase.reason === 'retry') return paint.yellow('tries again')
  if (phase.type !== 'map' || phase.items === null) return ''
  const count = (state: string) => runs.filter(({ record }) => record.state === state).length
  const failed = count('failed')
  const parts = [paint.dim(`${count('completed') + failed + count('cancelled')}/${phase.items}`)]
  if (failed > 0) parts.push(paint.red(`${failed} failed`))
  return parts.join(' ')
}

/** The lines of an error. They are drawn only where it began, because the phases above repeat it. */
function errorLines(phase: PhaseEvent, depth: number, options: DrawOptions): Line[] {
  if (!phase.error || phase.state === 'completed' || phase.type === 'team') return []
  // If a map could not evaluate its items, no sub-run failed, so the error is drawn here.
  if (phase.type === 'map' && phase.items) return []
  return asides(phase.error, depth, options)
}

/** A run can fail by itself, because of its outputs or its time-out. */
function ownErrorLines({ record, phases }: RunNode, depth: number, options: DrawOptions): Line[] {
  if (!record.error || phases.some(phase => phase?.state === 'failed')) return []
  return asides(record.error, depth, options)
}

function asides({ message, hint }: RunError, depth: number, { paint }: DrawOptions): Line[] {
  const texts = [...message.split('\n').slice(0, 6), ...(hint ? [hint] : [])]
  return texts.map(text => ({
    depth,
    state: 'failed',
    label: paint.dim(printable(text)),
    note: '',
    time: '',
    aside: true,
  }))
}

function below(phase: PhaseEvent, runs: readonly RunNode[], depth: number, options: DrawOptions): Line[] {
  if (phase.type === 'team')
    return runs.flatMap(run => (run.record.state === 'completed' ? [] : phaseLines(run, depth, options)))
  if (phase.state === 'completed' && runs.every(({ record }) => record.state === 'completed')) return []
  if ((phase.items ?? runs.length) <= SHOWN_ITEMS) return runs.flatMap(run => itemLines(run, depth, options))
  const failed = runs.filter(({ record }) => record.state === 'failed')
  const busy = runs.filter(run => !hasEnded(run))
  const more = (count: number, what: string): Line[] =>
    count <= 0
      ? []
      : [{ depth, state: what, label: options.paint.dim(`… ${count} more ${what}`), note: '', time: '', aside: true }]
  return [
    ...failed.slice(0, SHOWN_OF_MANY).flatMap(run => itemLines(run, depth, options)),
    ...more(failed.length - SHOWN_OF_MANY, 'failed'),
    ...busy.slice(0, SHOWN_OF_MANY).flatMap(run => itemLines(run, depth, options)),
    ...more(busy.length - SHOWN_OF_MANY, 'running'),
  ]
}

function itemLines(run: RunNode, depth: number, options: DrawOptions): Line[] {
  const { record } = run
  const line = {
    depth,
    state: record.state,
    label: inline(record.run_name ?? record.team),
    note: '',
    time: elapsed(record, options.now),
  }
  if (record.state === 'completed') return [line]
  return [line, ...ownErrorLines(run, depth, options), ...phaseLines(run, depth + 1, options)]
}

/**
 * Removes lines until the rest fits. Completed and waiting phases go first, the deepest before others, and then the
 * last lines.
 */
function fitted(lines: Line[], rows: number | undefined): Line[] {
  if (rows === undefined || lines.length <= rows) return lines
  const quiet = ['completed', 'pending', 'skipped', 'queued']
  let kept = lines
  for (let depth = Math.max(...lines.map(line => line.depth)); depth > 0 && kept.length > rows; depth--) {
    kept = kept.filter(line => line.depth < depth || !quiet.includes(line.state))
  }
  if (kept.length <= rows) return kept
  const rest = kept.length - rows + 1
  return [
    ...kept.slice(0, rows - 1),
    { depth: 1, state: '', label: `… ${rest} more lines`, note: '', time: '', aside: true },
  ]
}

function widthOf({ depth, label, note }: Line): number {
  return depth * INDENT.length + 2 + Bun.stringWidth(label) + (note ? 2 + Bun.stringWidth(note) : 0)
}

function clip(text: string, width: number): string {
  return Bun.stringWidth(text) <= width ? text : `${Bun.sliceAnsi(text, 0, width - 1)}…`
}

/** Shows the time of what still runs in tenths of a second, which is calmer to look at than milliseconds. */
function elapsed(times: { started_at: number | null; completed_at: number | null }, now: number): string {
  if (times.started_at === null) return ''
  const ms = Math.max(0, (times.completed_at ?? now) - times.started_at)
  return times.completed_at === null && ms < 10_000 ? `${(ms / 1_000).toFixed(1)}s` : formatDuration(ms)
}
