// `tree RUN`: every run of a tree, with the phases of each: how they ended, how long they took, what they wait for, and
// which failures were tolerated.

import type { Static } from 'typebox'
import { isObject } from '../../../json.ts'
import { commandLine } from '../../../program/called-as.ts'
import type { Paint } from '../../../text/printable.ts'
import { joined, line, type Printable, type Shown } from '../../../text/printable.ts'
import { printMessage } from '../../../text/terminal.ts'
import { GetPhases, GetRun, GetTree } from '../../../wire/calls/runs.ts'
import type { PhasesView, RunDetailView, TreeView } from '../../../wire/records/run-records.ts'
import { waitText } from '../../../wire/records/words.ts'
import { backendOf } from '../backend/home-backend.ts'
import type { Callee } from '../backend/home-client.ts'
import type { BackendOptions } from '../backend/run-backend.ts'
import { show, took } from '../kit/print.ts'
import { symbol } from '../terminal/state-symbols.ts'

type Entry = Static<typeof TreeView>['runs'][number]
type Phase = Static<typeof PhasesView>['phases'][number]

interface Node {
  entry: Entry
  /** Empty when only the run is shown. */
  phases: readonly Phase[]
  /** What its record has that an entry of a tree has not; null when only the run is shown. */
  record: RunDetailView | null
  below: Node[]
}

/** In a larger tree, runs that completed are one line. */
const DETAILED = 300
/** Failures are looked for in so many runs. A run that completed may have phases whose failure was passed over. */
const MOST_LOOKED = 10_000
const AT_ONCE = 16

export interface TreeOptions extends BackendOptions {
  json?: boolean
  /** Only what failed, and what is above it. */
  failed?: boolean
}

export async function tree(typed: string, { json, failed, ...where }: TreeOptions): Promise<void> {
  const backend = await backendOf(where)
  const run_id = await backend.runId(typed)
  const { found, root } = await backend.ask(async runs => {
    const found = await runs.call(GetTree, { run_id })
    const nodes = json && !failed ? null : await detailed(runs, nodesOf(found.runs), failed ?? false)
    return { found, root: nodes && failed ? { ...nodes, ...onlyFailed(nodes) } : nodes }
  })
  if (failed && found.runs.length > MOST_LOOKED) {
    printMessage(line`${found.runs.length - MOST_LOOKED} more runs of this tree were not looked into`)
  } else if (!json && !failed && found.runs.length > DETAILED) {
    const [one, failures] = [commandLine('tree', 'RUN'), commandLine('tree', run_id, '--failed')]
    printMessage(line`a run that completed is one line here; its phases: ${one}; all that failed: ${failures}`)
  }
  const shown = failed ? { ...found, runs: root ? flat(root).map(({ entry }) => entry) : [] } : found
  show(json, shown, paint => (root ? rowsOf(root, paint) : []))
}

/** The phases of a run that failed or have something below them that did, and the runs below it for which that holds. */
function onlyFailed(node: Node): Pick<Node, 'phases' | 'below'> {
  const below = node.below.flatMap(each => {
    const kept = { ...each, ...onlyFailed(each) }
    return each.entry.state === 'failed' || kept.below.length > 0 || kept.phases.length > 0 ? [kept] : []
  })
  const above = new Set(below.map(({ entry }) => entry.parent_phase))
  return { below, phases: node.phases.filter(phase => hasFailed(phase) || above.has(phase.name)) }
}

/** Of something that completed all the same. */
export const toleratedText = (count: number): string => `${count.toLocaleString('en')} failed, tolerated`

/** Whether a phase failed, or items of it did. */
export const hasFailed = ({ state, type, data }: Phase): boolean =>
  state === 'failed' || (type === 'map' && isObject(data) && Number(data.failed) > 0)

/** The entries come depth first, so the parent of each is the last one that is a level higher. */
function nodesOf(entries: readonly Entry[]): Node | null {
  const path: Node[] = []
  for (const entry of entries) {
    const node: Node = { entry, phases: [], record: null, below: [] }
    path[entry.call_depth] = node
    // The run above may be missing in what the hub has.
    const above = path[entry.call_depth - 1] ?? path.slice(0, entry.call_depth).findLast(Boolean)
    above?.below.push(node)
  }
  return path.find(Boolean) ?? null
}

async function detailed(runs: Callee, root: Node | null, failed: boolean): Promise<Node | null> {
  if (!root) return null
  const all = flat(root)
  const isWanted = ({ entry }: Node) =>
    failed || all.length <= DETAILED || !entry.call_depth || entry.state !== 'completed'
  const wanted = all.filter(isWanted).slice(0, MOST_LOOKED)
  for (let at = 0; at < wanted.length; at += AT_ONCE) {
    await Promise.all(
      wanted.slice(at, at + AT_ONCE).map(async node => {
        const { run_id } = node.entry
        const [{ phases }, record] = await Promise.all([
          runs.call(GetPhases, { run_id }),
          runs.call(GetRun, { run_id }),
        ])
        Object.assign(node, { phases, record })
      }),
    )
  }
  return root
}

const flat = (node: Node): Node[] => [node, ...node.below.flatMap(flat)]

function rowsOf(node: Node, paint: Paint, depth = 0): Shown[][] {
  const { entry, phases, record, below } = node
  const { run_name, call_path, parent_phase, state, run_id } = entry
  const shownBefore = depth > 0 && node.phases.length > 0
  const name = (depth === 0 ? call_path[0] : (run_name ?? (shownBefore ? call_path.at(-1) : parent_phase))) ?? run_id
  const title = depth === 0 && run_name !== null ? `${name} ${run_name}` : name
  const place = depth === 0 && record?.environment ? paint.dim(` in ${record.environment}`) : ''
  const row = (deep: number, mark: string, text: Shown, time: string, note: Shown) => [
    line`${'  '.repeat(deep)}${symbol(paint, mark)} ${text}`,
    time,
    note,
  ]
  const known = new Set(phases.map(phase => phase.name))
  return [
    row(
      depth,
      state,
      line`${title}${place}`,
      took({ ...entry, lived_ms: record?.lived_ms }),
      joined([paint.dim(run_id), ...(entry.tolerated ? [paint.yellow(toleratedText(entry.tolerated))] : [])], '  '),
    ),
    ...phases.flatMap(phase => [
      row(depth + 1, phase.state, phase.name, took(phase), noteOf(phase, state, paint)),
      ...below.filter(({ entry }) => entry.parent_phase === phase.name).flatMap(each => rowsOf(each, paint, depth + 2)),
    ]),
    // Runs whose phases are not shown.
    ...below
      .filter(({ entry }) => !known.has(entry.parent_phase ?? ''))
      .flatMap(each => rowsOf(named(each), paint, depth + 1)),
    ...(record?.deliveries ?? [])
      .filter(each => each.state === 'failed' || each.state === 'unknown')
      .map(({ phase, event, error, state }) =>
        row(
          depth + 1,
          'failed',
          phase,
          '',
          paint.red(
            `${event} ${state === 'failed' ? 'was not delivered' : 'may not have been delivered'}: ${oneLineOf(error)}`,
          ),
        ),
      ),
  ]
}

/** A run below a phase that is not shown bears the name of the phase too. */
function named(node: Node): Node {
  const { entry } = node
  const run_name = [entry.parent_phase, entry.run_name].filter(part => part !== null).join('/')
  return { ...node, entry: { ...entry, run_name } }
}

const oneLineOf = (text: string | null): string => (text ?? '').split('\n', 1)[0]!

function noteOf(
  { type, agent, action, state, reason, error, waiting, attempt, data }: Phase,
  run: string,
  paint: Paint,
): Printable {
  const what = paint.dim([agent ?? type, action].filter(part => part !== null).join('.'))
  // Before a run has completed, a failure may still end it.
  const isTolerated = state === 'failed' && run === 'completed'
  const items = type === 'map' && state === 'completed' && isObject(data) ? Number(data.failed) : 0
  const waits = (waiting && waitText(waiting)) ?? (state === 'awaiting_input' ? 'a person' : null)
  return joined(
    [
      what,
      ...(attempt > 1 ? [paint.dim(`attempt ${attempt}`)] : []),
      ...(isTolerated ? [paint.yellow('tolerated')] : []),
      ...(items > 0 ? [paint.yellow(toleratedText(items))] : []),
      ...(waits === null ? [] : [paint.yellow(`${waiting && state === 'running' ? 'waits:' : 'waits for'} ${waits}`)]),
      ...(error === null ? [] : [paint.red(oneLineOf(error.message))]),
      ...(error === null && waits === null && reason !== null ? [paint.dim(reason)] : []),
    ],
    '  ',
  )
}
