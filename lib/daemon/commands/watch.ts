// Follows a run to its end, or to the point where only a person can help it on. Ctrl-C cancels it.

import { join } from 'node:path'
import type { JsonObject } from '../../json.ts'
import type { RunRecord } from '../../run/engine.ts'
import { CHOICES } from '../../run/engine.ts'
import type { Runner } from '../runner.ts'
import { createScreen } from '../terminal/live.ts'
import type { RunModel } from '../terminal/model.ts'
import { createPaint, printable, stateWord } from '../terminal/paint.ts'
import { table } from '../terminal/table.ts'

/** Exit codes of a command that runs something. */
export const EXIT = { done: 0, failed: 1, usage: 2, waiting: 3, interrupted: 130 } as const

export interface WatchOptions {
  home: string
  /** Print the run record as JSON, not the outputs as text. */
  json: boolean
}

/** Nothing is at work for this long and a person is asked: the run waits. */
const QUIET_MS = 150

/** Returns the exit code. */
export async function watch(runner: Runner, runId: string, { home, json }: WatchOptions): Promise<number> {
  const screen = createScreen(runId)
  const leave = new AbortController()
  let quiet: Timer | undefined
  let interrupted = false
  const interrupt = () => {
    if (interrupted) process.exit(EXIT.interrupted)
    interrupted = true
    runner.cancel(runId).catch(() => leave.abort())
  }
  // A run in this process ends with it, and goes on at the next start.
  const terminate = () => leave.abort()
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', terminate)
  let record: RunRecord | undefined
  try {
    for await (const event of runner.events(runId, leave.signal)) {
      screen.show(event)
      record = screen.model.root?.record
      clearTimeout(quiet)
      const waits = record?.state === 'awaiting_input' && !screen.model.atWork
      if (waits) quiet = setTimeout(() => leave.abort(), QUIET_MS)
    }
  } catch (error) {
    if (!leave.signal.aborted) throw error
  } finally {
    clearTimeout(quiet)
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', terminate)
    screen.close()
  }
  if (!record) return EXIT.interrupted
  if (record.completed_at !== null || record.state === 'awaiting_input') await runner.told()
  if (json) process.stdout.write(`${JSON.stringify(record, null, 2)}\n`)
  else tellEnd(record, home)
  if (record.state === 'awaiting_input' && !interrupted) await tellQuestions(runner, screen.model)
  if (interrupted) return EXIT.interrupted
  if (record.state === 'completed') return EXIT.done
  if (record.state === 'awaiting_input') return EXIT.waiting
  return record.completed_at === null ? EXIT.interrupted : EXIT.failed
}

function tellEnd(record: RunRecord, home: string): void {
  const { run_id, state, outputs, error } = record
  if (state === 'completed') {
    const lines = outputLines(outputs ?? {}, join(home, 'runs', run_id))
    if (lines.length > 0 && process.stderr.isTTY) process.stderr.write('\n')
    for (const line of lines) process.stdout.write(`${line}\n`)
    return
  }
  const paint = createPaint(process.stderr)
  const say = (line: string) => process.stderr.write(`${line}\n`)
  say(`\n${stateWord(paint, state)}  ${record.team}  ${paint.dim(run_id)}`)
  if (error) say(printable(error.message))
  if (error?.hint) say(paint.dim(printable(error.hint)))
  if (state !== 'failed') return
  say(paint.dim(`  bun daemon.ts logs ${error?.run_id ?? run_id}`))
  say(paint.dim(`  bun daemon.ts resume ${run_id}`))
}

/** What people are asked, each with the command that answers it. */
async function tellQuestions(runner: Runner, model: RunModel): Promise<void> {
  const paint = createPaint(process.stderr)
  for (const { id, run_id, phase, kind, reason, prompt } of await runner.pending()) {
    if (!model.node(run_id)) continue
    const place = [...model.path(run_id), phase].join('/')
    process.stderr.write(`\n${paint.bold(printable(prompt || reason))}  ${paint.dim(printable(place))}\n`)
    process.stderr.write(`  bun daemon.ts decide ${id} ${CHOICES[kind].join('|')}\n`)
  }
}

/** Outputs aligned by name; files of the run as absolute paths. */
function outputLines(outputs: JsonObject, stateDir: string): string[] {
  return table(
    Object.entries(outputs).map(([name, value]) => {
      if (typeof value !== 'string') return [name, JSON.stringify(value)]
      return [name, printable(value.startsWith('files/') ? join(stateDir, value) : value)]
    }),
  )
}
