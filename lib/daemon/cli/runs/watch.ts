// Follows a run to its end, or to the point where only a person can continue it, and then says what can be done next.

import { join } from 'node:path'
import { formatDuration } from '../../../duration.ts'
import type { JsonObject } from '../../../json.ts'
import { runDetail, why } from '../../../run/engine.ts'
import { createPaint, line, nothing, type Printable, paragraph, type Shown } from '../../../text/printable.ts'
import { print, printJson, printMessage } from '../../../text/terminal.ts'
import { pause } from '../../../wait.ts'
import type { Explanation, RunView } from '../../../wire/records/run-records.ts'
import { tookMs } from '../../../wire/records/words.ts'
import { itemsFailed } from '../../../wire/why/explain.ts'
import { shown } from '../../runs/interrupted.ts'
import type { CommandHost } from '../backend/command-host.ts'
import { backendOf } from '../backend/home-backend.ts'
import type { BackendOptions, RunBackend, Runner } from '../backend/run-backend.ts'
import { EXIT } from '../kit/exit.ts'
import { Signals } from '../kit/signals.ts'
import { createScreen } from '../terminal/progress-screen.ts'
import type { RunModel } from '../terminal/run-model.ts'
import { stateWord } from '../terminal/state-symbols.ts'
import { table } from '../terminal/table.ts'

export interface WatchOptions {
  backend: RunBackend
  /** Print the run record as JSON, not the outputs as text. */
  json: boolean
  /** Follow it on while only a person can continue it. */
  untilEnd?: boolean
  /** Of a resume: when it was called. What ended earlier is not told again. */
  since?: number
  /** What a Ctrl-C does where nobody can be asked. */
  unasked?: 'cancel' | 'leave'
}

/** If nothing has been running for this long and a person is asked, the run counts as waiting. */
const QUIET_MS = 150
/** How long to wait before a run is followed at another address. */
const AGAIN_MS = 50
/** The states of a run that a process executes. */
const GOING = new Set<string>(['queued', 'running', 'awaiting_input'])

/** `watch RUN`: like `run`, for a run that another process executes. */
export async function watchRun(typed: string, options: BackendOptions & { json?: boolean }): Promise<number> {
  const backend = await backendOf(options)
  const json = options.json ?? false
  const runId = await backend.runId(typed)
  const runner = await backend.served()
  if (runner) return watch(runner, runId, { backend, json, unasked: 'leave' })
  const record = await recordOf(backend, runId)
  const { tree } = await import('./tree.ts')
  if (!json) await tree(runId, options)
  const code = printOutcome(record, { backend, json })
  if (record.state === 'completed' && !json) await printFailedItems(runId, null, backend)
  return code
}

/**
 * Follows a run and returns the exit code. If this process holds the home, it stays until everything that runs in it
 * has ended, and then releases the home.
 */
export async function watch(runner: Runner, runId: string, options: WatchOptions): Promise<number> {
  const screen = createScreen(runId, options.since)
  const followed = { runner }
  using signals = new Signals({
    cancel: () => followed.runner.cancel(runId),
    detaches: runner.host === null,
    unasked: process.stderr.isTTY ? null : (options.unasked ?? 'cancel'),
    notify: line => screen.notify(line),
  })
  try {
    const code = await follow(followed, runId, screen, signals, options)
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
    printMessage(line`runs of other commands go on in this process, which ends with the last of them`)
  }
  await host.finish(leaving)
}

/** `followed.runner` is replaced when the process that executes the run serves at another address. */
async function follow(
  followed: { runner: Runner },
  runId: string,
  screen: ReturnType<typeof createScreen>,
  signals: Signals,
  options: WatchOptions,
): Promise<number> {
  const enough = new AbortController()
  const until = AbortSignal.any([signals.leaving, enough.signal])
  let quiet: Timer | undefined
  const waitsForPerson = () => {
    if (options.untilEnd) screen.notify(`the run waits for a person: ${options.backend.command('reviews')}`)
    else enough.abort()
  }
  let record: RunView | undefined
  try {
    for (;;) {
      try {
        for await (const event of followed.runner.events(runId, until, line => screen.notify(line))) {
          screen.show(event)
          record = screen.model.root?.record
          clearTimeout(quiet)
          const waits = record?.state === 'awaiting_input' && !screen.model.atWork
          if (waits) quiet = setTimeout(waitsForPerson, QUIET_MS)
        }
      } catch (error) {
        if (!until.aborted && followed.runner.host) throw error
      }
      if (until.aborted || record?.completed_at != null) break
      // The process that executed the run is gone, after its last run or too early, or serves at another address.
      record = await recordOf(options.backend, runId)
      if (record.completed_at !== null || !GOING.has(record.state)) break
      const again = await options.backend.served()
      if (!again) break
      followed.runner = again
      await pause(AGAIN_MS, until)
    }
  } finally {
    clearTimeout(quiet)
    screen.close()
  }
  const { runner } = followed
  if (!record) return EXIT.interrupted
  // The run stops with this process.
  if (runner.host && signals.leaving.aborted) record = shown(record)
  if (signals.leaving.aborted && !signals.interrupted && !runner.host && record.completed_at === null) {
    printMessage(line`the run goes on: ${options.backend.command('watch', runId)}`)
    return EXIT.interrupted
  }
  const code = printOutcome(record, options)
  if (record.state === 'completed' && screen.model.hasSubRuns && !options.json) {
    await printFailedItems(runId, runner.host, options.backend)
  }
  if (record.completed_at !== null && !signals.leaving.aborted) await printUndelivered(runId, runner, options.backend)
  if (record.state === 'awaiting_input' && !signals.leaving.aborted) {
    await printReviews(runner, screen.model, options)
  }
  return signals.interrupted ? EXIT.interrupted : code
}

/** Prints how a run stands, and returns the exit code for it. */
function printOutcome(record: RunView, { backend, json }: WatchOptions): number {
  if (json) printJson(record)
  else printEnd(record, backend)
  if (record.state === 'completed') return EXIT.done
  if (record.state === 'awaiting_input') return EXIT.waiting
  return record.completed_at === null ? EXIT.interrupted : EXIT.failed
}

function printEnd(record: RunView, backend: RunBackend): void {
  const { run_id, root_run_id, state, outputs, attempt, error, completed_at } = record
  const paint = createPaint(process.stderr)
  const printLine = (text: Shown): void => printMessage(line`${text}`)
  const next = (...args: string[]) => printLine(paint.dim(`  ${backend.command(...args)}`))
  if (state === 'completed') {
    const rows = outputLines(outputs ?? {}, backend.folderOf(run_id))
    if (rows.length > 0 && process.stderr.isTTY) printMessage(nothing)
    print(rows)
  }
  const ms = tookMs(record)
  const time = ms === null ? '' : `  ${formatDuration(ms)}`
  printMessage(nothing, line`${stateWord(paint, state)}  ${record.team}${time}  ${paint.dim(run_id)}`)
  if (error) printMessage(paragraph(error.message))
  if (error?.hint) printLine(paint.dim(error.hint))
  // It ended in the queue of the hub, so that no daemon has anything to resume.
  if (backend.hub && attempt === 0 && completed_at !== null) return next('why', run_id)
  switch (state) {
    case 'completed':
      return next(error ? 'why' : 'show', run_id)
    case 'failed':
      next('why', run_id)
      // The outputs do not fit, which neither a log nor a resume changes; `why` says what does.
      if (record.reason === 'outputs') return
      next('logs', error?.run_id ?? run_id)
      return printLine(paint.dim(`  ${resumeCommand(backend, { run_id: root_run_id, team: record.team })}`))
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

/** The command that resumes a failed run. People correct their team.yml first, which a resume does not read again. */
export const resumeCommand = (backend: RunBackend, { run_id, team }: { run_id: string; team: string }): string =>
  `${backend.command('resume', run_id)}${team.startsWith('@local/') ? KEEPS_TEAM : ''}`
const KEEPS_TEAM = '     # keeps the old team.yml; if you corrected it, start a new run'

/** The record of a run, from its backend. Most runs of a command need only their events. */
async function recordOf({ ask }: RunBackend, run_id: string) {
  const { GetRun } = await import('../../../wire/calls/runs.ts')
  return ask(runs => runs.call(GetRun, { run_id }))
}

/** The record of a run of this process, which need not serve its API for that. */
async function recordIn({ daemon: { engine } }: CommandHost, runId: string) {
  await engine.untilQuiet()
  return runDetail(engine.store, runId)
}

/** Says how many items failed in a run that completed without them, and what shows and repeats them. */
async function printFailedItems(run_id: string, host: CommandHost | null, backend: RunBackend): Promise<void> {
  const { items = [], next } = host ? await whyIn(host, run_id) : await whyOf(backend, run_id)
  const about = next.filter(args => args.includes('--failed'))
  if (about.length === 0) return
  const paint = createPaint(process.stderr)
  const counts = items.map(each => line`${itemsFailed(each)}`)
  // Below no map there are only phases that were passed over.
  const said = counts.length > 0 ? counts : [line`phases of runs below it failed, and were passed over`]
  printMessage(said.map(text => paint.yellow(text)))
  printMessage([['why', run_id], ...about].map(args => paint.dim(line`  ${backend.command(...args)}`)))
}

async function whyOf({ ask }: RunBackend, run_id: string): Promise<Explanation> {
  const { GetWhy } = await import('../../../wire/calls/runs.ts')
  return ask(runs => runs.call(GetWhy, { run_id }))
}

async function whyIn({ daemon: { engine } }: CommandHost, runId: string): Promise<Explanation> {
  await engine.untilQuiet()
  return why(engine.store, runId, id => engine.bundle(id))
}

/** Says which events listeners could not deliver. That does not change how the run ended. */
async function printUndelivered(run_id: string, { host }: Runner, backend: RunBackend): Promise<void> {
  const { deliveries } = host ? await recordIn(host, run_id) : await recordOf(backend, run_id)
  const lost = deliveries.filter(({ state }) => state === 'failed' || state === 'unknown')
  // What failed for the same reason is one line.
  for (const all of Map.groupBy(lost, ({ phase, state, error }) => JSON.stringify([phase, state, error])).values()) {
    const { phase, state, error } = all[0]!
    const events = all.map(({ event }) => event).join(', ')
    const what = state === 'failed' ? 'could not deliver' : 'may not have delivered'
    const where = backend.hub ? ' on the daemon of the run' : `: ${backend.command('doctor')}`
    const why = `${error}`.replace(/\.$/, '')
    printMessage(line`listener ${phase} ${what} ${events}, and does not try again: ${why}. Check its settings${where}`)
  }
}

/** Prints the questions to people, each with the command that answers it. */
async function printReviews(runner: Runner, model: RunModel, { backend }: WatchOptions): Promise<void> {
  const paint = createPaint(process.stderr)
  for (const { id, run_id, phase, reason, prompt } of await runner.pending()) {
    if (!model.node(run_id)) continue
    const name = [...model.path(run_id), ...(phase === null ? [] : [phase])].join('/')
    printMessage(line`${paint.bold(prompt || reason)}  ${paint.dim(name)}`)
    printMessage(paint.dim(`  ${backend.command('decide', id)}`))
  }
}

/** Outputs aligned by name; files of the run as absolute paths where they are on this machine. */
export function outputLines(outputs: JsonObject, stateDir: string | null): Printable[] {
  return table(
    Object.entries(outputs).map(([name, value]) => {
      if (typeof value !== 'string') return [name, JSON.stringify(value)]
      return [name, stateDir !== null && value.startsWith('files/') ? join(stateDir, value) : value]
    }),
  )
}
