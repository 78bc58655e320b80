// Commands that change a run: cancel, resume.

import { CadreError } from '../../../error.ts'
import { line, type Shown } from '../../../text/printable.ts'
import { print, printJson, printMessage } from '../../../text/terminal.ts'
import { GetRun, ResumeRun } from '../../../wire/calls/runs.ts'
import { isPlan } from '../../../wire/records/resume-plan.ts'
import { ENDED_RUN_STATES } from '../../../wire/states.ts'
import { homeFolder } from '../../home/home.ts'
import { backendOf } from '../backend/home-backend.ts'
import { inputsOfRun } from '../backend/run-answers.ts'
import type { BackendOptions } from '../backend/run-backend.ts'
import { EXIT } from '../kit/exit.ts'
import { readInputs } from '../kit/inputs.ts'
import { Signals } from '../kit/signals.ts'
import { resumePlanLines, writesText } from './resume-plan.ts'
import { watch } from './watch.ts'

const printLine = (text: Shown): void => printMessage(line`${text}`)

/** Cancels a run. If no process holds the home, this process takes the run up and ends it. */
export async function cancel(typed: string, options: BackendOptions): Promise<void> {
  const backend = await backendOf(options)
  const runId = await backend.runId(typed)
  const { runner, result } = await backend.open('cancel', runner => runner.cancel(runId))
  if (result.cleanup.length > 0) {
    const names = result.cleanup.join(', ')
    printLine(`cancelling; cleanup phases still run (${names}): cancel again to stop them`)
  }
  if (runner.host) {
    using signals = new Signals({
      cancel: () => runner.cancel(runId),
      detaches: false,
      unasked: 'cancel',
      notify: printLine,
    })
    try {
      await runner.host.finish(signals.leaving)
    } finally {
      await runner.host.close()
    }
  }
  const { state: shownState, attempt, root_run_id } = await backend.ask(runs => runs.call(GetRun, { run_id: runId }))
  const state = shownState === 'interrupted' ? 'running' : shownState
  if (state === 'cancelled' && backend.hub && attempt === 0)
    printLine('cancelled before a daemon took it; dispatch it again')
  else if (state === 'cancelled')
    printLine(`cancelled; to repeat what did not complete: ${backend.command('resume', root_run_id)}`)
  else if (ENDED_RUN_STATES.includes(state)) printLine(`the run had already ${state}: ${backend.command('why', runId)}`)
  else if (result.already_waits)
    printLine(`a cancel already waits for the daemon of the run, which ends it: ${backend.command('watch', runId)}`)
  else if (backend.hub) printLine(`cancelling; its daemon ends it: ${backend.command('watch', runId)}`)
  else if (result.cleanup.length === 0) printLine(`cancelling; it ends within 5 s: ${backend.command('watch', runId)}`)
}

export interface ResumeOptions extends BackendOptions {
  from?: string
  failed?: boolean
  outputs?: boolean
  plan?: boolean
  input?: string[]
  json?: boolean
}

/**
 * Says what will be repeated, then follows the run; with `plan` only says it. A run of a hub is not followed, because its daemon may be away.
 * Returns the exit code.
 */
export async function resume(typed: string, options: ResumeOptions): Promise<number> {
  const backend = await backendOf(options)
  const runId = await backend.runId(typed)
  const { input, from, failed, outputs } = options
  if (backend.hub && (input || options.plan)) {
    throw new CadreError('invalid_request', '--plan and -i work only on the machine of the run, without --hub')
  }
  const inputs = input ? await readInputs(await inputsOfRun(homeFolder(options.home), runId), { input }) : undefined
  const { parent_run_id, root_run_id } = await backend.ask(runs => runs.call(GetRun, { run_id: runId }))
  if (parent_run_id !== null) {
    const top = backend.command('resume', root_run_id)
    throw new CadreError('invalid_state', `run ${runId} is a sub-run; resume its top run with: ${top}`)
  }
  const request = {
    ...(from !== undefined && { from_phase: from }),
    ...(failed && { failed }),
    ...(outputs && { outputs }),
    ...(inputs && { inputs }),
  }
  if (options.plan) {
    const plan = await backend.ask(runs => runs.call(ResumeRun, { run_id: runId, ...request, plan: true }))
    if (!isPlan(plan)) throw new CadreError('internal', 'the daemon resumed the run and did not plan it')
    if (options.json) printJson(plan)
    else print(resumePlanLines(plan))
    return EXIT.done
  }
  const since = Date.now()
  const { runner, result } = await backend.open('resume', runner => runner.resume(runId, request))
  if (result === null) {
    printLine(`its daemon gets the order: ${backend.command('watch', runId)}`)
    return EXIT.done
  }
  const { continued, repeats, written } = result
  printLine(continued ? 'continues where it was interrupted' : `runs again: ${repeats.join(', ') || 'nothing'}`)
  if (written.length > 0) {
    printLine(`already written, and not sent again: ${writesText(written)}`)
  }
  return watch(runner, runId, { backend, json: options.json ?? false, since })
}
