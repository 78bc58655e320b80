// Shows the progress of a run: a tree that is redrawn in place on a terminal, and one line for each event elsewhere.
// Everything goes to stderr, because stdout is for the result.

import { formatDuration } from '../../../duration.ts'
import { clockText } from '../../../text/clock.ts'
import { createPaint, line, nothing, type Printable, pad, type Shown, wrap } from '../../../text/printable.ts'
import { Picture, printMessage as print } from '../../../text/terminal.ts'
import type { RunEvent } from '../../../wire/records/run-records.ts'
import { drawRun } from './draw-run.ts'
import { RunModel, triedText } from './run-model.ts'
import { stateWord } from './state-symbols.ts'

export interface Screen {
  readonly model: RunModel
  show(event: RunEvent): void
  /** A line to the reader, below what is shown. */
  notify(text: Shown): void
  /** Draws the last state, which stays. */
  close(): void
}

const REDRAW_MS = 80

/** `since`: where each event is a line, what ended before then is not told. */
export function createScreen(runId: string, since = 0): Screen {
  return process.stderr.isTTY ? createLiveTree(runId, process.stderr) : createLines(runId, since)
}

/** Rows that the last picture leaves to what is printed after it. */
const ROWS_AFTER = 8

function createLiveTree(runId: string, stream: NodeJS.WriteStream): Screen {
  const model = new RunModel(runId)
  const paint = createPaint(stream)
  const picture = new Picture(stream)
  let notice: Printable = nothing
  const draw = (live: boolean) => {
    if (!model.root) return
    const { columns = 80, rows = 24 } = stream
    const noticeLines = live && !notice.isEmpty ? wrap(paint.yellow(notice), columns) : []
    const room = Math.max(3, live ? rows - 1 - noticeLines.length : rows - ROWS_AFTER)
    picture.draw([...drawRun(model.root, { paint, now: Date.now(), live, columns, rows: room }), ...noticeLines])
  }
  const redraw = () => draw(true)
  stream.on('resize', redraw)
  const timer = setInterval(redraw, REDRAW_MS)
  return {
    model,
    show: event => model.apply(event),
    notify(text) {
      notice = line`${text}`
      redraw()
    },
    close() {
      clearInterval(timer)
      stream.off('resize', redraw)
      draw(false)
      picture.close()
    },
  }
}

function createLines(runId: string, since: number): Screen {
  const model = new RunModel(runId)
  const paint = createPaint(process.stderr)
  const printed = new Map<string, string>()
  const printState = (key: string, state: string, path: string[], rest: Shown) => {
    if (printed.get(key) === state || state === 'pending') return
    printed.set(key, state)
    print(line`${clockText(Date.now())}  ${pad(stateWord(paint, state), 14)}  ${path.join('/')}${rest}`)
  }
  return {
    model,
    show(event) {
      model.apply(event)
      if (event.event === 'phase') {
        const { run_id, name, state, attempt, started_at, completed_at, error } = event.data
        if (completed_at !== null && completed_at < since) return
        const took =
          completed_at !== null && started_at !== null ? `  ${formatDuration(completed_at - started_at)}` : ''
        const why = error && state === 'failed' ? `  ${error.message.split('\n', 1)[0]}` : ''
        const path = [...model.path(run_id), name]
        const tried = triedText(event.data)
        if (tried === undefined) printState(`${run_id}:${name}:${attempt}`, state, path, took + why)
        else printState(`${run_id}:${name}:${attempt}`, 'tries again', path, `  ${tried}`)
      } else if (event.event === 'run' && event.data.state === 'queued' && event.data.parent_run_id === null) {
        const { run_id, team, reason } = event.data
        printState(run_id, 'queued', [team], reason === null ? '' : `  ${reason}`)
      } else if (event.event === 'end') {
        const { run_id, team, state } = event.data
        printState(run_id, state, [team], `  ${run_id}`)
      }
    },
    notify: text => print(line`${text}`),
    close() {},
  }
}
