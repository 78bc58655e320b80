// Commands that act on a run: cancel, resume, decide.

import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { createLog } from '../../log.ts'
import { CHOICES, type Decision } from '../../run/engine.ts'
import { inputsOfRun } from '../calls/run-answers.ts'
import { openRunner, type Runner } from '../calls/runner.ts'
import { homeFolder } from '../home.ts'
import { EXIT } from './exit.ts'
import { readInputs } from './inputs.ts'
import { Signals } from './signals.ts'
import { watch } from './watch.ts'

const open = <T>(home: string, command: string, first: (runner: Runner) => Promise<T>) =>
  openRunner(home, command, createLog({ level: 'warn' }), first)

/** Cancels a run. If no process holds the home, this process takes the run up and ends it. */
export async function cancel(runId: string, options: { home?: string }): Promise<void> {
  const { runner, result } = await open(homeFolder(options.home), 'cancel', runner => runner.cancel(runId))
  if (result.cleanup.length > 0) {
    const names = result.cleanup.join(', ')
    process.stderr.write(`cancelling; cleanup phases still run (${names}): cancel again to stop them\n`)
  }
  if (!runner.host) return
  using signals = new Signals(() => runner.cancel(runId))
  try {
    await runner.host.finish(signals.leaving)
  } finally {
    await runner.host.close()
  }
}

export interface ResumeOptions {
  home?: string
  from?: string
  failed?: boolean
  input?: string[]
  json?: boolean
}

/** Says what will be repeated, then follows the run. Returns the exit code. */
export async function resume(runId: string, options: ResumeOptions): Promise<number> {
  const home = homeFolder(options.home)
  const { input, from, failed } = options
  const inputs = input ? await readInputs(inputsOfRun(home, runId), { input }) : undefined
  const request = {
    ...(from !== undefined && { from_phase: from }),
    ...(failed && { failed }),
    ...(inputs && { inputs }),
  }
  const { runner, result } = await open(home, 'resume', runner => runner.resume(runId, request))
  const { continued, repeats, written } = result
  const goesOn = continued ? 'continues where it was interrupted' : `runs again: ${repeats.join(', ') || 'nothing'}`
  process.stderr.write(`${goesOn}\n`)
  if (written.length > 0) {
    const shown = written
      .slice(0, 10)
      .map(({ phase, entry, url, id }) => `${phase}/${entry}${(url ?? id) ? ` (${url ?? id})` : ''}`)
    const more = written.length > 10 ? `, and ${written.length - 10} more` : ''
    process.stderr.write(`already written, and not sent again: ${shown.join('; ')}${more}\n`)
  }
  return watch(runner, runId, { home, json: options.json ?? false })
}

export interface DecideOptions {
  home?: string
  comment?: string
  values?: string
}

/** Answers a review. Without a daemon the run continues in this process, so it is followed. Returns the exit code. */
export async function decide(reviewId: string, decision: string, options: DecideOptions): Promise<number> {
  const answer = {
    decision: decisionOf(decision),
    ...(options.comment !== undefined && { comment: options.comment }),
    ...(options.values !== undefined && { values: valuesOf(options.values) }),
  }
  const home = homeFolder(options.home)
  const { runner, result } = await open(home, 'decide', runner => runner.decide(reviewId, answer))
  return runner.host ? watch(runner, result.run_id, { home, json: false }) : EXIT.done
}

function decisionOf(word: string): Decision['decision'] {
  const all = [...CHOICES.gate, ...CHOICES.escalation]
  const known = all.find(each => each === word)
  if (known) return known
  throw new CadreError('invalid_request', `${word}: expected one of ${all.join(', ')}`)
}

function valuesOf(text: string): JsonObject {
  try {
    return JSON.parse(text)
  } catch {
    throw new CadreError('invalid_request', `--values: expected a JSON object, such as '{"name":"value"}'`)
  }
}
