// Commands that act on a run: cancel, resume, decide.

import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { createLog } from '../../log.ts'
import { CHOICES, type Decision } from '../../run/engine.ts'
import { homeFolder } from '../home.ts'
import { openRunner } from '../runner.ts'
import { EXIT, watch } from './watch.ts'

export async function cancel(runId: string, { home }: { home?: string }): Promise<void> {
  const runner = await openRunner(homeFolder(home), createLog({ level: 'warn' }))
  try {
    await runner.cancel(runId)
  } finally {
    await runner.close()
  }
}

/** Says what will be repeated, then follows the run. Returns the exit code. */
export async function resume(
  runId: string,
  options: { home?: string; from?: string; json?: boolean },
): Promise<number> {
  const home = homeFolder(options.home)
  const runner = await openRunner(home, createLog({ level: 'warn' }))
  try {
    const { repeats, written } = await runner.resume(runId, options.from ?? null)
    process.stderr.write(`runs again: ${repeats.join(', ') || 'nothing'}\n`)
    if (written.length > 0) {
      const shown = written
        .slice(0, 10)
        .map(({ phase, entry, url, id }) => `${phase}/${entry}${(url ?? id) ? ` (${url ?? id})` : ''}`)
      const more = written.length > 10 ? `, and ${written.length - 10} more` : ''
      process.stderr.write(`was written, and is not sent again: ${shown.join('; ')}${more}\n`)
    }
    return await watch(runner, runId, { home, json: options.json ?? false })
  } finally {
    await runner.close()
  }
}

export interface DecideOptions {
  home?: string
  comment?: string
  values?: string
}

/** Without a daemon the run goes on in this process, so it is followed. Returns the exit code. */
export async function decide(reviewId: string, decision: string, options: DecideOptions): Promise<number> {
  const answer = {
    decision: decisionOf(decision),
    ...(options.comment !== undefined && { comment: options.comment }),
    ...(options.values !== undefined && { values: valuesOf(options.values) }),
  }
  const home = homeFolder(options.home)
  const runner = await openRunner(home, createLog({ level: 'warn' }))
  try {
    const { run_id } = await runner.decide(reviewId, answer)
    return runner.remote ? EXIT.done : await watch(runner, run_id, { home, json: false })
  } finally {
    await runner.close()
  }
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
