// Commands that show what is recorded: runs, tree, phases, logs, why, reviews, workspaces.

import { formatDuration } from '../../duration.ts'
import type { LogLine } from '../../run/engine.ts'
import { runEnded } from '../../run/engine.ts'
import {
  GetLogs,
  GetPhases,
  GetRun,
  GetTree,
  GetWhy,
  ListReviews,
  ListRuns,
  ListWorkspaces,
} from '../../wire/daemon-calls.ts'
import { GetTree as GetTreeOfHub } from '../../wire/hub-calls.ts'
import { askAboutRuns } from '../calls/run-answers.ts'
import { homeFolder } from '../home.ts'
import { createPaint, inline, type Paint, printable, stateWord, symbol } from '../terminal/paint.ts'
import { clock, table } from '../terminal/table.ts'

export interface ListOptions {
  home?: string
  json?: boolean
  limit?: number
  all?: boolean
}

/** A terminal of at least this width also shows the state of a run as a word. */
const ROOMY = 100
const LOG_PAGE = 1_000
const FOLLOW_MS = 300

export async function runs({ home, json, limit, all }: ListOptions): Promise<void> {
  const query = { root_only: !all, limit: limit ?? 20, offset: 0 }
  const found = await askAboutRuns(homeFolder(home), runs => runs.call(ListRuns, query))
  show(json, found, paint =>
    found.runs.map(({ run_id, team, run_name, state, started_at, completed_at }) => [
      columns() < ROOMY ? symbol(paint, state) : `${symbol(paint, state)} ${stateWord(paint, state)}`,
      team + (run_name === null ? '' : ` ${inline(run_name)}`),
      clock(started_at),
      took(started_at, completed_at),
      paint.dim(run_id),
    ]),
  )
}

async function treeOfHub(runId: string, home: string | undefined, hub: string | true) {
  const { hubOf } = await import('./hub.ts')
  const client = await hubOf(homeFolder(home), hub === true ? {} : { hub })
  return client.call(GetTreeOfHub, { run_id: runId })
}

/** `hub` shows the tree as the hub has it. A text is the address of the hub. */
export async function tree(runId: string, options: ListOptions & { hub?: string | true }): Promise<void> {
  const { home, json, hub } = options
  const found = hub
    ? await treeOfHub(runId, home, hub)
    : await askAboutRuns(homeFolder(home), runs => runs.call(GetTree, { run_id: runId }))
  show(json, found, paint =>
    found.runs.map(({ run_id, run_name, state, call_path, call_depth, parent_phase, started_at, completed_at }) => {
      const name = call_depth === 0 ? call_path[0]! : [parent_phase, run_name].filter(part => part !== null).join('/')
      return [
        `${'  '.repeat(call_depth)}${symbol(paint, state)} ${inline(name)}`,
        took(started_at, completed_at),
        paint.dim(run_id),
      ]
    }),
  )
}

export async function phases(runId: string, { home, json }: ListOptions): Promise<void> {
  const found = await askAboutRuns(homeFolder(home), runs => runs.call(GetPhases, { run_id: runId }))
  show(json, found, paint =>
    found.phases.map(({ name, type, agent, action, state, reason, started_at, completed_at, text, error, waiting }) => [
      `${symbol(paint, state)} ${name}`,
      paint.dim([agent ?? type, action].filter(part => part !== null).join('.')),
      stateWord(paint, state) + (reason === null ? '' : paint.dim(` (${reason})`)),
      took(started_at, completed_at),
      printable((error?.message ?? (waiting === null ? text : `waiting: ${waiting}`)).split('\n', 1)[0]!),
    ]),
  )
}

export async function why(runId: string, { home, json }: ListOptions): Promise<void> {
  const found = await askAboutRuns(homeFolder(home), runs => runs.call(GetWhy, { run_id: runId }))
  process.stdout.write(`${json ? JSON.stringify(found, null, 2) : printable(found.text)}\n`)
}

export async function reviews({ home, json, limit, all }: ListOptions): Promise<void> {
  const query = { limit: limit ?? 20, offset: 0, ...(!all && { state: 'pending' as const }) }
  const found = await askAboutRuns(homeFolder(home), runs => runs.call(ListReviews, query))
  show(json, found, paint =>
    found.reviews.map(({ id, kind, phase, run_name, state, decision, prompt, reason, created_at }) => [
      state === 'pending' ? paint.yellow(kind) : `${kind} ${decision}`,
      inline([run_name, phase].filter(part => part !== null).join('/')),
      clock(created_at),
      paint.dim(id),
      printable((prompt || reason).split('\n', 1)[0]!),
    ]),
  )
}

export async function workspaces({ home, json }: ListOptions): Promise<void> {
  const found = await askAboutRuns(homeFolder(home), runs => runs.call(ListWorkspaces, {}))
  show(json, found, paint =>
    found.workspaces.map(({ workspace_id, name, path, active_runs }) => [
      inline(name),
      inline(path),
      active_runs > 0 ? paint.cyan(`${active_runs} active`) : '',
      paint.dim(workspace_id),
    ]),
  )
}

export async function logs(runId: string, options: ListOptions & { phase?: string; follow?: boolean }): Promise<void> {
  const home = homeFolder(options.home)
  const paint = createPaint(process.stdout)
  let afterSeq = 0
  for (;;) {
    // The state is read before the lines, so that for an ended run the lines are complete.
    const { state } = await askAboutRuns(home, runs => runs.call(GetRun, { run_id: runId }))
    afterSeq = await printLines(home, runId, afterSeq, options, paint)
    if (!options.follow || state === 'interrupted' || runEnded(state)) return
    await Bun.sleep(FOLLOW_MS)
  }
}

/** Prints what came after a line, and returns the number of the last one. */
async function printLines(
  home: string,
  runId: string,
  from: number,
  { phase, json }: { phase?: string; json?: boolean },
  paint: Paint,
): Promise<number> {
  for (let afterSeq = from; ; ) {
    const query = { run_id: runId, after_seq: afterSeq, limit: LOG_PAGE, ...(phase !== undefined && { phase }) }
    const { lines, next } = await askAboutRuns(home, runs => runs.call(GetLogs, query))
    for (const line of lines) process.stdout.write(`${json ? JSON.stringify(line) : plainLine(line, paint)}\n`)
    if (next === afterSeq) return next
    afterSeq = next
  }
}

function plainLine({ at, phase, stream, text, fields }: LogLine, paint: Paint): string {
  const time = paint.dim(new Date(at).toTimeString().slice(0, 8))
  const extra =
    fields && Object.keys(fields).length > 0 && stream === 'log' ? paint.dim(` ${JSON.stringify(fields)}`) : ''
  // A line of the log begins with a time, so continuation lines are indented to tell them apart.
  const indented = printable(text).replaceAll('\n', '\n          ')
  return `${time}  ${paint.dim(phase ?? '')}  ${indented}${extra}`
}

function show(json: boolean | undefined, data: unknown, rows: (paint: Paint) => string[][]): void {
  if (json) return void process.stdout.write(`${JSON.stringify(data, null, 2)}\n`)
  const lines = table(rows(createPaint(process.stdout)))
  if (lines.length === 0) process.stderr.write('none\n')
  for (const line of lines) process.stdout.write(`${line}\n`)
}

/** The width of the terminal. No limit when the output is not a terminal. */
function columns(): number {
  return process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY
}

function took(started: number | null, completed: number | null): string {
  if (started === null) return ''
  return completed === null ? '…' : formatDuration(completed - started)
}
