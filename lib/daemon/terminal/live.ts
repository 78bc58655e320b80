// Shows the progress of a run: a tree that is redrawn in place on a terminal, and one line for each event elsewhere.
// Everything goes to stderr, because stdout is for the result.

import { formatDuration } from '../../duration.ts'
import type { RunEvent } from '../../wire/run-records.ts'
import { RunModel } from './model.ts'
import { createPaint, inline, printable, stateWord } from './paint.ts'
import { drawRun } from './tree.ts'

export interface Screen {
  readonly model: RunModel
  show(event: RunEvent): void
  /** Draws the last state, which stays. */
  close(): void
}

const REDRAW_MS = 80

export function createScreen(runId: string, stream: NodeJS.WriteStream = process.stderr): Screen {
  return stream.isTTY ? createLiveTree(runId, stream) : createLines(runId, stream)
}

function createLiveTree(runId: string, stream: NodeJS.WriteStream): Screen {
  const model = new RunModel(runId)
  const paint = createPaint(stream)
  let drawn = 0
  const draw = (live: boolean) => {
    if (!model.root) return
    const { columns = 80, rows = 24 } = stream
    const lines = drawRun(model.root, { paint, now: Date.now(), live, columns, ...(live && { rows: rows - 1 }) })
    const up = drawn > 0 ? `\r\x1b[${drawn}A` : ''
    // One synchronized update, so that a half-drawn picture is never visible.
    stream.write(`\x1b[?2026h${up}\x1b[0J${lines.join('\n')}\n\x1b[?2026l`)
    drawn = lines.length
  }
  const showCursor = () => stream.write('\x1b[?25h')
  stream.write('\x1b[?25l')
  process.on('exit', showCursor)
  const timer = setInterval(() => draw(true), REDRAW_MS)
  return {
    model,
    show: event => model.apply(event),
    close() {
      clearInterval(timer)
      draw(false)
      showCursor()
      process.off('exit', showCursor)
    },
  }
}

function createLines(runId: string, stream: NodeJS.WriteStream): Screen {
  const model = new RunModel(runId)
  const paint = createPaint(stream)
  const told = new Map<string, string>()
  const tell = (key: string, state: string, path: string[], rest: string) => {
    if (told.get(key) === state || state === 'pending' || state === 'queued') return
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
        tell(`${run_id}:${name}:${attempt}`, state, [...model.path(run_id), name], took + why)
      } else if (event.event === 'end') {
        const { run_id, team, state } = event.data
        tell(run_id, state, [team], `  ${run_id}`)
      }
    },
    close() {},
  }
}
