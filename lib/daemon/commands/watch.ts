// Follows a run to its end, or to the point where only a person can continue it. Ctrl-C cancels it.

import { join } from 'node:path'
import type { JsonObject } from '../../json.ts'
import type { RunRecord } from '../../run/engine.ts'
import { CHOICES } from '../../run/engine.ts'
import { GetRun } from '../../wire/daemon-calls.ts'
import { askAboutRuns } from '../calls/run-answers.ts'
import type { Runner } from '../calls/runner.ts'
import { type Shown, shown } from '../interrupted.ts'
import { createScreen } from '../terminal/live.ts'
import type { RunModel } from '../terminal/model.ts'
import { createPaint, inline, printable, stateWord } from '../terminal/paint.ts'
import { table } from '../terminal/table.ts'
import { EXIT } from './exit.ts'
import { Signals } from './signals.ts'

export interface WatchOptions {
  home: string
  /** Print the run record as JSON, not the outputs as text. */
  json: boolean
}

/** If nothing has been running for this long and a person is asked, the run counts as waiting. */
const QUIET_MS = 150

/**
 * Follows a run and returns the exit code. If this process holds the home, it stays until everything that runs in it
 * has ended, and then releases the home.
 */
export async function watch(runner: Runner, runId: string, options: WatchOptions): Promise<number> {
  using signals = new Signals(() => runner.cancel(runId))
  try {
    const code = await follow(runner, runId, signals, options)
    await stay(runner, signals)
    return code
  } finally {
    await runner.host?.close()
  }
}

/** Waits for runs that other commands started through this process. */
export async function stay({ host }: Runner, { leaving }: Pick<Signals, 'leaving'>): Promise<void> {
  if (!host || leaving.aborted) return
  if (host.atWork) {
    process.stderr.write('runs of other commands go on in this process, which ends with the last of them\n')
  }
  await host.finish(leaving)
}

async function follow(runner: Runner, runId: string, signals: Signals, { home, json }: WatchOptions): Promise<number> {
  const screen = createScreen(runId)
  const enough = new AbortController()
  const until = AbortSignal.any([signals.leaving, enough.signal])
  let quiet: Timer | undefined
  let record: Shown<RunRecord> | undefined
  try {
    for await (const event of runner.events(runId, until)) {
      screen.show(event)
      record = screen.model.root?.record
      clearTimeout(quiet)
      const waits = record?.state === 'awaiting_input' && !screen.model.atWork
      if (waits) quiet = setTimeout(() => enough.abort(), QUIET_MS)
    }
  } catch (error) {
    if (!until.aborted && runner.host) throw error
  } finally {
    clearTimeout(quiet)
    screen.close()
  }
  // The process that executed the run is gone, after its last run or too early.
  if (!until.aborted && record?.completed_at == null)
    record = await askAboutRuns(home, runs => runs.call(GetRun, { run_id: runId }))
  if (!record) return EXIT.interrupted
  // The run stops with this process.
  if (runner.host && signals.leaving.aborted) record = shown(record)
  if (json) process.stdout.write(`${JSON.stringify(record, null, 2)}\n`)
  else tellEnd(record, home)
  if (record.state === 'awaiting_input' && !signals.interrupted) await tellQuestions(runner, screen.model)
  if (signals.interrupted) return EXIT.interrupted
  if (record.state === 'completed') return EXIT.done
  if (record.state === 'awaiting_input') return EXIT.waiting
  return record.completed_at === null ? EXIT.interrupted : EXIT.failed
}

function tellEnd(record: Shown<RunRecord>, home: string): void {
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
  if (state === 'failed') say(paint.dim(`  bun daemon.ts logs ${error?.run_id ?? run_id}`))
  else if (state !== 'interrupted') return
  say(paint.dim(`  bun daemon.ts resume ${run_id}`))
}

/** Prints the questions to people, each with the command that answers it. */
async function tellQuestions(runner: Runner, model: RunModel): Promise<void> {
  const paint = createPaint(process.stderr)
  for (const { id, run_id, phase, kind, reason, prompt } of await runner.pending()) {
    if (!model.node(run_id)) continue
    const place = [...model.path(run_id), phase].join('/')
    process.stderr.write(`\n${paint.bold(printable(prompt || reason))}  ${paint.dim(inline(place))}\n`)
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
