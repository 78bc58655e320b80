// Commands that change a run: cancel, resume.

import { commandLine } from '../../called-as.ts'
import { createLog } from '../../log.ts'
import { runEnded } from '../../run/engine.ts'
import { GetRun } from '../../wire/daemon-calls.ts'
import { runIdOf } from '../calls/ids.ts'
import { askAboutRuns, inputsOfRun } from '../calls/run-answers.ts'
import { openRunner, type Runner } from '../calls/runner.ts'
import { homeFolder } from '../home.ts'
import { readInputs } from './inputs.ts'
import { Signals } from './signals.ts'
import { watch } from './watch.ts'

const open = <T>(home: string, command: string, first: (runner: Runner) => Promise<T>) =>
  openRunner(home, command, createLog({ level: 'warn' }), first)

const say = (line: string): void => void process.stderr.write(`${line}\n`)

/** Cancels a run. If no process holds the home, this process takes the run up and ends it. */
export async function cancel(typed: string, options: { home?: string }): Promise<void> {
  const home = homeFolder(options.home)
  const runId = await runIdOf(home, typed)
  const { runner, result } = await open(home, 'cancel', runner => runner.cancel(runId))
  if (result.cleanup.length > 0) {
    const names = result.cleanup.join(', ')
    say(`cancelling; cleanup phases still run (${names}): cancel again to stop them`)
  }
  if (runner.host) {
    using signals = new Signals({ cancel: () => runner.cancel(runId), detaches: false, unasked: 'cancel', say })
    try {
      await runner.host.finish(signals.leaving)
    } finally {
      await runner.host.close()
    }
  }
  const { state: told, root_run_id } = await askAboutRuns(home, runs => runs.call(GetRun, { run_id: runId }))
  const state = told === 'interrupted' ? 'running' : told
  if (state === 'cancelled') say(`cancelled; to repeat what did not complete: ${commandLine('resume', root_run_id)}`)
  else if (runEnded(state)) say(`the run had already ${state}: ${commandLine('why', runId)}`)
  else if (result.cleanup.length === 0) say(`cancelling; it ends within 5 s: ${commandLine('watch', runId)}`)
}

export interface ResumeOptions {
  home?: string
  from?: string
  failed?: boolean
  input?: string[]
  json?: boolean
}

/** Says what will be repeated, then follows the run. Returns the exit code. */
export async function resume(typed: string, options: ResumeOptions): Promise<number> {
  const home = homeFolder(options.home)
  const runId = await runIdOf(home, typed)
  const { input, from, failed } = options
  const inputs = input ? await readInputs(inputsOfRun(home, runId), { input }) : undefined
  const request = {
    ...(from !== undefined && { from_phase: from }),
    ...(failed && { failed }),
    ...(inputs && { inputs }),
  }
  const { runner, result } = await open(home, 'resume', runner => runner.resume(runId, request))
  const { continued, repeats, written } = result
  say(continued ? 'continues where it was interrupted' : `runs again: ${repeats.join(', ') || 'nothing'}`)
  if (written.length > 0) {
    const shown = written
      .slice(0, 10)
      .map(({ phase, entry, url, id }) => `${phase}/${entry}${(url ?? id) ? ` (${url ?? id})` : ''}`)
    const more = written.length > 10 ? `, and ${written.length - 10} more` : ''
    say(`already written, and not sent again: ${shown.join('; ')}${more}`)
  }
  return watch(runner, runId, { home, json: options.json ?? false })
}
