// Follows a run to its end, or to the point where only a person can continue it, and then says what can be done next.

import { join } from 'node:path'
import { commandLine } from '../../called-as.ts'
import { formatDuration } from '../../duration.ts'
import type { JsonObject } from '../../json.ts'
import type { RunRecord } from '../../run/engine.ts'
import { GetRun } from '../../wire/daemon-calls.ts'
import { runIdOf } from '../calls/ids.ts'
import { askAboutRuns } from '../calls/run-answers.ts'
import { type Runner, servedRunner } from '../calls/runner.ts'
import { homeFolder } from '../home.ts'
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
  /** What a Ctrl-C does where nobody can be asked. */
  unasked?: 'cancel' | 'leave'
}

/** If nothing has been running for this long and a person is asked, the run counts as waiting. */
const QUIET_MS = 150

/** `watch RUN`: like `run`, for a run that another process executes. */
export async function watchRun(typed: string, options: { home?: string; json?: boolean }): Promise<number> {
  const home = homeFolder(options.home)
  const runId = await runIdOf(home, typed)
  const runner = await servedRunner(home)
  if (runner) return watch(runner, runId, { home, json: options.json ?? false, unasked: 'leave' })
  const record = await askAboutRuns(home, runs => runs.call(GetRun, { run_id: runId }))
  const { tree } = await import('./tree.ts')
  if (!options.json) await tree(runId, { home })
  return told(record, { home, json: options.json ?? false })
}

/**
 * Follows a run and returns the exit code. If this process holds the home, it stays until everything that runs in it
 * has ended, and then releases the home.
 */
export async function watch(runner: Runner, runId: string, options: WatchOptions): Promise<number> {
  const screen = createScreen(runId)
  using signals = new Signals({
    cancel: () => runner.cancel(runId),
    detaches: runner.host === null,
    unasked: process.stderr.isTTY ? null : (options.unasked ?? 'cancel'),
    say: line => screen.say(line),
  })
  try {
    const code = await follow(runner, runId, screen, signals, options)
    await stay(runner, signals)
    return code
  } finally {
    await runner.host?.close()
  }
}

/** Waits for runs that other commands started through this process. */
async function stay({ host }: Runner, { leaving }: Pick<Signals, 'leaving'>): Promise<void> {
  if (!host || leaving.aborted) return
  if (host.atWork) {
    process.stderr.write('runs of other commands go on in this process, which ends with the last of them\n')
  }
  await host.finish(leaving)
}

async function follow(
  runner: Runner,
  runId: string,
  screen: ReturnType<typeof createScreen>,
  signals: Signals,
  options: WatchOptions,
): Promise<number> {
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
    record = await askAboutRuns(options.home, runs => runs.call(GetRun, { run_id: runId }))
  if (!record) return EXIT.interrupted
  // The run stops with this process.
  if (runner.host && signals.leaving.aborted) record = shown(record)
  if (signals.leaving.aborted && !signals.interrupted && !runner.host && record.completed_at === null) {
    process.stderr.write(`the run goes on: ${commandLine('watch', runId)}\n`)
    return EXIT.interrupted
  }
  const code = told(record, options)
  if (record.state === 'awaiting_input' && !signals.leaving.aborted) {
    await tellQuestions(runner, screen.model)
  }
  return signals.interrupted ? EXIT.interrupted : code
}

/** Prints how a run stands, and returns the exit code for it. */
function told(record: Shown<RunRecord>, { home, json }: WatchOptions): number {
  if (json) process.stdout.write(`${JSON.stringify(record, null, 2)}\n`)
  else tellEnd(record, home)
  if (record.state === 'completed') return EXIT.done
  if (record.state === 'awaiting_input') return EXIT.waiting
  return record.completed_at === null ? EXIT.interrupted : EXIT.failed
}

function tellEnd(record: Shown<RunRecord>, home: string): void {
  const { run_id, root_run_id, state, outputs, error, started_at, completed_at } = record
  const paint = createPaint(process.stderr)
  const say = (line: string): void => void process.stderr.write(`${line}\n`)
  const next = (...args: string[]) => say(paint.dim(`  ${commandLine(...args)}`))
  if (state === 'completed') {
    const lines = outputLines(outputs ?? {}, join(home, 'runs', run_id))
    if (lines.length > 0 && process.stderr.isTTY) say('')
    for (const line of lines) process.stdout.write(`${line}\n`)
  }
  const took = completed_at !== null && started_at !== null ? `  ${formatDuration(completed_at - started_at)}` : ''
  say(`\n${stateWord(paint, state)}  ${record.team}${took}  ${paint.dim(run_id)}`)
  if (error) say(printable(error.message))
  if (error?.hint) say(paint.dim(printable(error.hint)))
  switch (state) {
    case 'completed':
      return next('show', run_id)
    case 'failed':
      next('why', run_id)
      next('logs', error?.run_id ?? run_id)
      return next('resume', root_run_id)
    case 'cancelled':
    case 'interrupted':
      return next('resume', root_run_id)
    case 'awaiting_input':
      return
    default:
      next('watch', run_id)
      return next('cancel', run_id)
  }
}

/** Prints the questions to people, each with the command that answers it. */
async function tellQuestions(runner: Runner, model: RunModel): Promise<void> {
  const paint = createPaint(process.stderr)
  for (const { id, run_id, phase, reason, prompt } of await runner.pending()) {
    if (!model.node(run_id)) continue
    const place = [...model.path(run_id), phase].join('/')
    process.stderr.write(`${paint.bold(printable(prompt || reason))}  ${paint.dim(inline(place))}\n`)
    process.stderr.write(`${paint.dim(`  ${commandLine('decide', id)}`)}\n`)
  }
}

/** Outputs aligned by name; files of the run as absolute paths. */
export function outputLines(outputs: JsonObject, stateDir: string): string[] {
  return table(
    Object.entries(outputs).map(([name, value]) => {
      if (typeof value !== 'string') return [name, JSON.stringify(value)]
      return [name, printable(value.startsWith('files/') ? join(stateDir, value) : value)]
    }),
  )
}
