// Shows the progress of a run: a tree that is redrawn in place on a terminal, and one line for each event elsewhere.
// Everything goes to stderr, because stdout is for the result.

import { formatDuration } from '../../duration.ts'
import type { RunEvent } from '../../wire/run-records.ts'
import { RunModel, triedText } from './model.ts'
import { createPaint, inline, printable, stateWord } from './paint.ts'
import { drawRun } from './tree.ts'

export interface Screen {
  readonly model: RunModel
  show(event: RunEvent): void
  /** A line to the reader, below what is shown. */
  say(line: string): void
  /** Draws the last state, which stays. */
  close(): void
}

const REDRAW_MS = 80

export function createScreen(runId: string, stream: NodeJS.WriteStream = process.stderr): Screen {
  return stream.isTTY ? createLiveTree(runId, stream) : createLines(runId, stream)
}

/** Rows that the last picture leaves to what is printed after it. */
const ROWS_AFTER = 8

function createLiveTree(runId: string, stream: NodeJS.WriteStream): Screen {
  const model = new RunModel(runId)
  const paint = createPaint(stream)
  let drawn: string[] = []
  let notice = ''
  const draw = (live: boolean) => {
    if (!model.root) return
    const { columns = 80, rows = 24 } = stream
    const said = live && notice !== '' ? Bun.wrapAnsi(paint.yellow(notice), columns, { hard: true }).split('\n') : []
    const room = Math.max(3, live ? rows - 1 - said.length : rows - ROWS_AFTER)
    const lines = [...drawRun(model.root, { paint, now: Date.now(), live, columns, rows: room }), ...said]
    // A window that became narrower wraps what is in it. The cursor is then further below the first line.
    const above = Math.min(rows - 1, sum(drawn.map(line => Math.ceil(Bun.stringWidth(line) / columns) || 1)))
    const up = above > 0 ? `\r\x1b[${above}A` : ''
    // Each line is erased before it is written, and only what is below the last one by ESC[0J: from the top row of a
    // window, tmux would move the whole window into its history.
    const text = lines.map(line => `\x1b[2K${line}\n`).join('')
    // One synchronized update, so that a half-drawn picture is never visible.
    stream.write(`\x1b[?2026h${up}${text}\x1b[0J\x1b[?2026l`)
    drawn = lines
  }
  const redraw = () => draw(true)
  const showCursor = () => stream.write('\x1b[?25h')
  stream.write('\x1b[?25l')
  process.on('exit', showCursor)
  stream.on('resize', redraw)
  const timer = setInterval(redraw, REDRAW_MS)
  return {
    model,
    show: event => model.apply(event),
    say(line) {
      notice = line
      redraw()
    },
    close() {
      clearInterval(timer)
      stream.off('resize', redraw)
      draw(false)
      showCursor()
      process.off('exit', showCursor)
    },
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)

function createLines(runId: string, stream: NodeJS.WriteStream): Screen {
  const model = new RunModel(runId)
  const paint = createPaint(stream)
  const told = new Map<string, string>()
  const tell = (key: string, state: string, path: string[], rest: string) => {
    if (told.get(key) === state || state === 'pending') return
    told.set(key, state)
    const at = new Date().toTimeString().slice(0, 8)
    stream.write(`${at}  ${stateWord(paint, state).padEnd(14)}  ${inline(path.join('/'))}${rest}\n`)
  }
  return {
    model,
    show(event) {
      model.apply(event)
      if (event.event === 'phase') {
        const { run_id, name, state, attempt, started_at, completed_at, error } = event.data
        const took =
          completed_at !== null && started_at !== null ? `  ${formatDuration(completed_at - started_at)}` : ''
        const why = error && state === 'failed' ? `  ${printable(error.message.split('\n', 1)[0]!)}` : ''
        const path = [...model.path(run_id), name]
        const tried = triedText(event.data)
        if (tried === undefined) tell(`${run_id}:${name}:${attempt}`, state, path, took + why)
        else tell(`${run_id}:${name}:${attempt}`, 'tries again', path, `  ${tried}`)
      } else if (event.event === 'run' && event.data.state === 'queued' && event.data.parent_run_id === null) {
        const { run_id, team, reason } = event.data
        tell(run_id, 'queued', [team], reason === null ? '' : `  ${printable(reason)}`)
      } else if (event.event === 'end') {
        const { run_id, team, state } = event.data
        tell(run_id, state, [team], `  ${run_id}`)
      }
    },
    say: line => void stream.write(`${line}\n`),
    close() {},
  }
}
