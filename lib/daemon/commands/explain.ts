// Commands about one run: why it ended as it did, its phases, and `show`, which has everything that is recorded of it.

import { sizeText } from '../../size.ts'
import { GetPhases, GetRun, GetWhy } from '../../wire/daemon-calls.ts'
import { doubtfulFirst, nameOfWrite } from '../../wire/run-records.ts'
import { createPaint, inline, printable, stateWord, symbol } from '../terminal/paint.ts'
import { clock, table } from '../terminal/table.ts'
import { placeOf } from './place-of.ts'
import { show, took } from './print.ts'
import type { PlaceOptions } from './run-place.ts'
import { outputLines } from './watch.ts'

interface Options extends PlaceOptions {
  json?: boolean
}

export async function why(typed: string, { json, ...where }: Options): Promise<void> {
  const place = await placeOf(where)
  const run_id = await place.runId(typed)
  const found = await place.ask(runs => runs.call(GetWhy, { run_id }))
  if (json) return void process.stdout.write(`${JSON.stringify(found, null, 2)}\n`)
  const paint = createPaint(process.stdout)
  for (const line of found.lines) process.stdout.write(`${printable(line)}\n`)
  for (const args of found.next) process.stdout.write(`${paint.dim(`  ${place.command(...args)}`)}\n`)
}

export async function phases(typed: string, { json, ...where }: Options): Promise<void> {
  const place = await placeOf(where)
  const run_id = await place.runId(typed)
  const found = await place.ask(runs => runs.call(GetPhases, { run_id }))
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

/** The inputs, outputs, files and outside writes of a run. */
export async function showRun(typed: string, { json, ...where }: Options): Promise<void> {
  const place = await placeOf(where)
  const run_id = await place.runId(typed)
  const { record, files, written } = await place.ask(async runs => {
    const [record, { phases }, { written }] = await Promise.all([
      runs.call(GetRun, { run_id }),
      runs.call(GetPhases, { run_id }),
      runs.call(GetWhy, { run_id }),
    ])
    return { record, files: phases.flatMap(({ files }) => files), written }
  })
  if (json) return void process.stdout.write(`${JSON.stringify({ ...record, files, written }, null, 2)}\n`)
  const paint = createPaint(process.stdout)
  const { team, version, run_name, state, error, started_at, completed_at, attempt, workspace, inputs } = record
  const time = took(started_at, completed_at)
  const facts = [
    ['run', run_id],
    ['started', `${clock(started_at)}${attempt > 1 ? `, attempt ${attempt}` : ''}`],
    ...(workspace === null ? [] : [['works in', inline(workspace)]]),
    ...(error === null ? [] : [['error', printable(error.message)]]),
  ]
  const section = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : ['', paint.bold(title), ...lines.map(line => `  ${line}`)]
  const name = run_name === null ? '' : `  ${inline(run_name)}`
  const lines = [
    `${symbol(paint, state)} ${paint.bold(`${team} ${version}`.trimEnd())}${name}  ${stateWord(paint, state)}${time && ` ${time}`}`,
    ...table(facts).map(line => `  ${line}`),
    ...section('inputs', table(Object.entries(inputs).map(([key, value]) => [key, printable(JSON.stringify(value))]))),
    ...section('outputs', outputLines(record.outputs ?? {}, place.folderOf(run_id))),
    ...section('files', table(files.map(({ path, bytes }) => [inline(path), sizeText(bytes)]))),
    ...section(
      'written outside',
      table(
        doubtfulFirst(written).map(write => [
          inline(nameOfWrite(write)),
          write.state === 'done' ? 'arrived' : 'may or may not have arrived',
          inline(write.url ?? write.id ?? ''),
        ]),
      ),
    ),
    ...section(
      'told',
      table(record.deliveries.map(({ phase, event, state, error }) => [phase, event, state, inline(error ?? '')])),
    ),
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
  const next = [
    ['tree', run_id],
    ['logs', run_id],
    ...(files.length > 0 && !place.hub ? [['files', run_id, 'get', files[0]!.path]] : []),
  ]
  for (const args of next) process.stderr.write(`${createPaint(process.stderr).dim(`  ${place.command(...args)}`)}\n`)
}
