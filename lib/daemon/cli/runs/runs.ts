// `runs`: lists runs a page at a time, newest first. `runs delete` removes an ended one.

import { CadreError } from '../../../error.ts'
import { createLog } from '../../../log/log.ts'
import { problems } from '../../../schema/schema.ts'
import { line } from '../../../text/printable.ts'
import { printMessage } from '../../../text/terminal.ts'
import { ListRuns } from '../../../wire/calls/runs.ts'
import { StarterFilter } from '../../../wire/records/started-by.ts'
import { homeFolder } from '../../home/home.ts'
import { backendOf } from '../backend/home-backend.ts'
import { openRunner } from '../backend/home-runner.ts'
import type { BackendOptions } from '../backend/run-backend.ts'
import { runIdOf } from '../backend/typed-ids.ts'
import { columns, printHowMany, show, took } from '../kit/print.ts'
import { stateWord, symbol } from '../terminal/state-symbols.ts'
import { clock } from '../terminal/table.ts'
import { toleratedText } from './tree.ts'

export interface RunsOptions extends BackendOptions {
  json?: boolean
  limit?: number
  offset?: number
  all?: boolean
  state?: string
  team?: string
  startedBy?: string
  since?: number
  search?: string
}

/** A terminal of at least this width also shows the state of a run as a word, and whole ids. */
const ROOMY = 100
/** A narrower one has no room for the time of the start. */
const NARROW = 64
/** The beginning of an id that has the whole time of its start, to the millisecond. */
const SHORTEST = 13

export async function runs(options: RunsOptions): Promise<void> {
  const { json, limit = 20, offset = 0, all, state, team, startedBy, since, search } = options
  const backend = await backendOf(options)
  if (state === (backend.hub ? 'interrupted' : 'crashed')) {
    throw new CadreError(
      'invalid_request',
      `--state ${state}: runs are ${state} ${backend.hub ? 'without' : 'with'} --hub only`,
    )
  }
  const [misfit] = startedBy === undefined ? [] : problems(StarterFilter, startedBy)
  if (misfit) throw new CadreError('invalid_request', `--started-by ${startedBy}: ${misfit.message}`)
  const query = {
    root_only: !all,
    limit,
    offset,
    ...(state !== undefined && { state }),
    ...(team !== undefined && { team }),
    ...(startedBy !== undefined && { started_by: startedBy }),
    ...(since !== undefined && { since }),
    ...(search !== undefined && { search }),
  }
  const found = await backend.ask(runs => runs.call(ListRuns, query))
  const ids = shortened(found.runs.map(({ run_id }) => run_id))
  show(json, found, paint =>
    found.runs.map((run, at) => [
      columns() < ROOMY ? symbol(paint, run.state) : line`${symbol(paint, run.state)} ${stateWord(paint, run.state)}`,
      run.team +
        (run.run_name === null ? '' : ` ${run.run_name}`) +
        (run.environment ? paint.dim(` in ${run.environment}`) : '') +
        (run.state === 'queued' && run.reason !== null ? paint.dim(` ${run.reason}`) : '') +
        (run.tolerated ? paint.yellow(` ${toleratedText(run.tolerated)}`) : ''),
      ...(columns() < NARROW ? [] : [clock(run.started_at)]),
      took(run),
      paint.dim(ids[at]!),
    ]),
  )
  if (!json && found.indexed_until !== undefined) {
    printMessage(line`the search does not cover all changes since ${new Date(found.indexed_until).toISOString()} yet`)
  }
  if (!json) printHowMany({ ...found, offset, shown: found.runs.length })
}

/** On a terminal without room for whole ids, beginnings that differ from each other. */
function shortened(ids: readonly string[]): readonly string[] {
  if (columns() >= ROOMY) return ids
  for (let length = SHORTEST; ; length++) {
    const short = ids.map(id => id.slice(0, length))
    if (new Set(short).size === ids.length) return short
  }
}

/** Without a daemon, this process holds the home meanwhile. */
export async function deleteRun(typed: string, options: { home?: string }): Promise<void> {
  const home = homeFolder(options.home)
  const runId = await runIdOf(home, typed)
  const { runner } = await openRunner(home, 'runs delete', createLog({ level: 'warn' }), runner => runner.remove(runId))
  await runner.host?.close()
  printMessage(line`deleted run ${runId}, all runs below it, and their files`)
}
