// Commands about one run: why it ended as it did, its phases, and `show`, which has everything that is recorded of it.

import { CadreError } from '../../../error.ts'
import { createLog } from '../../../log/log.ts'
import { sizeText } from '../../../size.ts'
import { createPaint, line, nothing, type Printable } from '../../../text/printable.ts'
import { print, printJson, printMessage } from '../../../text/terminal.ts'
import { ListReviews } from '../../../wire/calls/reviews.ts'
import { GetPhases, GetRun, GetWhy } from '../../../wire/calls/runs.ts'
import type { AskedReview } from '../../../wire/records/review-records.ts'
import type { Why } from '../../../wire/records/run-records.ts'
import { doubtfulFirst, fateOf, nameOfWrite, viewedStarter, waitText } from '../../../wire/records/words.ts'
import { homeFolder } from '../../home/home.ts'
import { backendOf } from '../backend/home-backend.ts'
import { type HomeRunner, openRunner } from '../backend/home-runner.ts'
import type { BackendOptions } from '../backend/run-backend.ts'
import { show, took } from '../kit/print.ts'
import { stateWord, symbol } from '../terminal/state-symbols.ts'
import { clock, table } from '../terminal/table.ts'
import { THE_RUN } from './reviews.ts'
import { hasFailed } from './tree.ts'
import { outputLines, resumeCommand } from './watch.ts'

interface Options extends BackendOptions {
  json?: boolean
}

export async function why(typed: string, options: Options & { ask?: boolean; realm?: string }): Promise<void> {
  if (options.realm !== undefined) {
    if (await (await import('./why-trigger.ts')).whyTrigger(typed, options)) return
    throw new CadreError('not_found', `realm ${options.realm} has no trigger ${typed}`)
  }
  try {
    await whyRun(typed, options)
  } catch (thrown) {
    const isOther = thrown instanceof CadreError && ['not_found', 'invalid_request'].includes(thrown.code)
    if (!isOther || options.hub !== undefined || options.ask) throw thrown
    // Runs come first, because the name of a trigger may look like the beginning of an id.
    if (await (await import('./why-trigger.ts')).whyTrigger(typed, options)) return
    const isName =
      thrown.code === 'not_found' && /^[a-z0-9][a-z0-9-]*$/.test(typed) && !['last', 'last-failed'].includes(typed)
    throw isName ? new CadreError('not_found', `${thrown.message}, and no trigger ${typed}`) : thrown
  }
}

async function whyRun(typed: string, { json, ask, ...where }: Options & { ask?: boolean }): Promise<void> {
  const backend = await backendOf(where)
  const run_id = await backend.runId(typed)
  if (ask && backend.hub) {
    throw new CadreError('invalid_request', '--ask works on the machine of the run, not with --hub')
  }
  const found = await (ask ? askOthers(where.home, run_id) : backend.ask(runs => runs.call(GetWhy, { run_id })))
  if (json) return void printJson(found)
  const paint = createPaint(process.stdout)
  print(
    found.lines.map(each => line`${each}`),
    found.next.map(args => {
      const [name, id, ...more] = args
      const resumes = name === 'resume' && more.length === 0
      return paint.dim(
        `  ${resumes ? resumeCommand(backend, { run_id: id!, team: found.chain[0]!.team }) : backend.command(...args)}`,
      )
    }),
  )
}

async function askOthers(home: string | undefined, run_id: string): Promise<Why> {
  const asking = (runner: HomeRunner) => runner.askAgain(run_id)
  const { runner, result } = await openRunner(homeFolder(home), 'why', createLog({ level: 'warn' }), asking)
  await runner.host?.close()
  return result
}

export async function phases(typed: string, { json, failed, ...where }: Options & { failed?: boolean }): Promise<void> {
  const backend = await backendOf(where)
  const run_id = await backend.runId(typed)
  const all = await backend.ask(runs => runs.call(GetPhases, { run_id }))
  const found = failed ? { ...all, phases: all.phases.filter(hasFailed) } : all
  show(json, found, paint =>
    found.phases.map(
      ({ name, type, agent, action, state, reason, started_at, completed_at, error, waiting, ...phase }) => [
        line`${symbol(paint, state)} ${name}`,
        paint.dim([agent ?? type, action].filter(part => part !== null).join('.')),
        line`${stateWord(paint, state)}${reason === null ? '' : paint.dim(` (${reason})`)}`,
        took({ started_at, completed_at }),
        (error?.message ?? (!waiting ? textOf(phase) : `waiting: ${waitText(waiting)}`)).split('\n', 1)[0]!,
      ],
    ),
  )
}

/** The text of a phase, or how large it is when the reply had no room for it. */
const textOf = ({ text, text_bytes = 0 }: { text: string | null; text_bytes?: number }) =>
  text ?? `… (${sizeText(text_bytes)})`

/** What was asked, what was decided, by whom and when, and what that person said. */
const decisionRow = ({ phase, decision, decided_by, decided_at, comment }: AskedReview) => [
  phase ?? THE_RUN,
  `${decision}${decided_by === null ? '' : ` by ${decided_by}`}`,
  clock(decided_at),
  comment?.split('\n', 1)[0] ?? '',
]

/** The inputs, decisions, outputs, files and outside writes of a run. */
export async function showRun(typed: string, { json, ...where }: Options): Promise<void> {
  const backend = await backendOf(where)
  const run_id = await backend.runId(typed)
  const { record, files, written, decided } = await backend.ask(async runs => {
    const [record, { phases }, { written }, { reviews }] = await Promise.all([
      runs.call(GetRun, { run_id }),
      runs.call(GetPhases, { run_id }),
      runs.call(GetWhy, { run_id }),
      runs.call(ListReviews, { run_id, state: 'decided' }),
    ])
    return { record, files: phases.flatMap(({ files }) => files), written, decided: reviews.toReversed() }
  })
  if (json) return void printJson({ ...record, files, written, decided })
  const paint = createPaint(process.stdout)
  const { team, version, run_name, state, error, started_at, attempt, workspace, environment, inputs } = record
  const time = took(record)
  const starter = viewedStarter(record.started_by)
  const facts = [
    ['run', run_id],
    ['started', `${clock(started_at)}${attempt > 1 ? `, attempt ${attempt}` : ''}`],
    ...(starter === null ? [] : [['started by', starter]]),
    ...(environment ? [['environment', environment]] : []),
    ...(workspace === null ? [] : [['works in', workspace]]),
    ...(error === null ? [] : [['error', error.message]]),
  ]
  const section = (title: string, rows: readonly Printable[]) =>
    rows.length === 0 ? [] : [nothing, paint.bold(title), ...rows.map(row => line`  ${row}`)]
  const name = run_name === null ? '' : `  ${run_name}`
  print([
    line`${symbol(paint, state)} ${paint.bold(`${team} ${version}`.trimEnd())}${name}  ${stateWord(paint, state)}${time && ` ${time}`}`,
    ...table(facts).map(fact => line`  ${fact}`),
    ...section('inputs', table(Object.entries(inputs).map(([key, value]) => [key, JSON.stringify(value)]))),
    ...section('decided', table(decided.map(decisionRow))),
    ...section('outputs', outputLines(record.outputs ?? {}, backend.folderOf(run_id))),
    ...section('files', table(files.map(({ path, bytes }) => [path, sizeText(bytes)]))),
    ...section(
      'written outside',
      table(doubtfulFirst(written).map(write => [nameOfWrite(write), fateOf(write), write.url ?? write.id ?? ''])),
    ),
    ...section(
      'listeners',
      table(record.deliveries.map(({ phase, event, state, error }) => [phase, event, state, error ?? ''])),
    ),
  ])
  const next = [
    ['tree', run_id],
    ['logs', run_id],
    ...(files.length > 0 && !backend.hub ? [['files', run_id, 'get', files[0]!.path]] : []),
  ]
  printMessage(next.map(args => createPaint(process.stderr).dim(`  ${backend.command(...args)}`)))
}
