// What a resume would do, in advance. It asks the same functions as the resume. It cannot know which inputs a repeated
// phase will give to a sub-run: one that gets other inputs is repeated whole.

import { hasSubRuns, type Phase, runsCommands } from '../../../team/team.ts'
import type { Fate, MapBelow, ResumePlan, RunsBelow } from '../../../wire/records/resume-plan.ts'
import { parse, phaseEnded, type ReceiptRow, type Repetition, type RunRow } from '../../core/core.ts'
import type { ChildRow } from '../../store/store.ts'
import { countedChildren, PassedOver, type Rows, repetitionsBelow, repetitionsOf, teamOf } from '../run/repeated.ts'
import { fromPhase, makesOnlyOutputs, type ResumeOptions, resumable } from './resume.ts'
import { written } from './written.ts'

/** How many keys of items a plan names for each map. */
const NAMES = 20
const WRITES = 1_000

/**
 * Throws the same errors as `resume`, except for secret inputs. `interrupted`: the run has not ended, and continues where
 * it was.
 */
export function planResume(rows: Rows, runId: string, options: ResumeOptions, interrupted = false): ResumePlan {
  const { store } = rows
  const row = interrupted ? store.runs.get(runId)! : resumable(rows, runId, options)
  const team = teamOf(rows, row)
  const states = store.phases.states(runId)
  const passedOver = options.failed ? new PassedOver(rows) : null
  const made = interrupted
    ? states.map(({ state }): Repetition => (phaseEnded(state) ? 'keep' : 'rest'))
    : makesOnlyOutputs(row, options)
      ? states.map((): Repetition => 'keep')
      : repetitionsOf(rows, row, passedOver, fromPhase(team, options))
  const ended = team.phases.map(({ index, name }) => ({
    phase: name,
    state: states[index]!.state,
    reason: states[index]!.reason,
  }))
  const receipts = store.receipts.below(row.root_id, row.tree_key)
  const told = receipts.slice(0, WRITES)
  const fateOf = fates(rows, row, made, passedOver)
  const writes = written(store, told, run => teamOf(rows, run).phases)
  return {
    run_id: runId,
    kept: ended.filter((_, at) => made[at] === 'keep'),
    repeated: team.phases.flatMap(phase => {
      const repetition = made[phase.index]!
      if (repetition === 'keep') return []
      const children = hasSubRuns(phase) ? countedChildren(rows, runId, phase) : null
      const runs = children && runsBelow(rows, row, phase, repetition, children, passedOver)
      const how = { whole: repetition === 'whole', renewed: phase.type === 'map' && repetition !== 'rest' }
      const isInPart = children && !interrupted && repetition !== 'whole'
      const maps = isInPart ? mapsBelow(rows, phase, children, passedOver) : []
      return [{ ...ended[phase.index]!, ...how, runs, maps }]
    }),
    new: [],
    removed: [],
    writes: writes.map((write, at) => ({ ...write, fate: fateOf(told[at]!) })),
    writes_more: receipts.length - told.length,
  }
}

/** The maps in the sub-runs of a phase that are repeated in part, each over all runs that have it. */
function mapsBelow(rows: Rows, phase: Phase, children: readonly ChildRow[], passedOver: PassedOver | null): MapBelow[] {
  const maps = new Map<string, MapBelow>()
  const add = (name: string, { kept, repeated, names }: RunsBelow): void => {
    const map = maps.get(name) ?? { phase: name, kept: 0, repeated: 0, names: [] }
    map.kept += kept
    map.repeated += repeated
    map.names.push(...names.slice(0, NAMES - map.names.length))
    maps.set(name, map)
  }
  const walk = (runs: readonly ChildRow[], path: string): void => {
    for (const run of runs) {
      const made = repetitionsBelow(rows, run, passedOver)
      for (const each of made === null ? [] : teamOf(rows, run).phases) {
        const how = made![each.index]!
        if (how === 'keep' || !hasSubRuns(each)) continue
        const name = `${path}/${each.name}`
        const below = countedChildren(rows, run.id, each)
        const counts = each.type === 'map' ? runsBelow(rows, run, each, how, below, passedOver) : null
        if (counts) add(name, counts)
        if (how !== 'whole') walk(below, name)
      }
    }
  }
  walk(children, phase.name)
  return [...maps.values()]
}

function runsBelow(
  rows: Rows,
  row: Pick<RunRow, 'id'>,
  phase: Phase,
  repetition: Repetition,
  children: readonly ChildRow[],
  passedOver: PassedOver | null,
): RunsBelow | null {
  const total = phase.type === 'map' ? rows.store.phases.total(row.id, phase.index) : 1
  // Which items it has is known when it evaluates them.
  if (total === null) return null
  const stays = (child: ChildRow) => repetition !== 'whole' && child.state === 'completed' && !passedOver?.in(child)
  const again = children.filter(child => !stays(child))
  const kept = children.length - again.length
  const names = again.slice(0, NAMES).flatMap(({ run_name }) => run_name ?? [])
  return { kept, repeated: total - kept, names }
}

/** What becomes of a receipt of the tree. */
function fates(
  rows: Rows,
  top: RunRow,
  made: readonly Repetition[],
  passedOver: PassedOver | null,
): (receipt: ReceiptRow) => Fate {
  const known = new Map<string, readonly Repetition[] | 'keep' | 'whole'>([[top.id, made]])
  const ofRun = (id: string): readonly Repetition[] | 'keep' | 'whole' => {
    const found = known.get(id) ?? below(rows.store.runs.get(id)!)
    known.set(id, found)
    return found
  }
  const below = (row: RunRow) => {
    const above = ofPhase(row.parent_id!, row.parent_position!)
    if (above === 'keep' || above === 'whole') return above
    const total = rows.store.phases.total(row.parent_id!, row.parent_position!)
    if (total === null && row.run_name !== null) return 'whole'
    if (total !== null && row.item! >= total) return 'keep'
    return repetitionsBelow(rows, row, passedOver) ?? 'keep'
  }
  const ofPhase = (id: string, position: number): Repetition => {
    const of = ofRun(id)
    return typeof of === 'string' ? of : of[position]!
  }
  return ({ run_id, position, state, result }) => {
    const repetition = ofPhase(run_id, position)
    if (repetition === 'keep') return 'kept'
    if (state === 'partial') return 'sent'
    const isVouched = parse<{ vouched?: boolean }>(result)?.vouched === true
    if (state === 'done' && !(repetition === 'whole' && isVouched)) return 'skipped'
    const phase = teamOf(rows, rows.store.runs.get(run_id)!).phases[position]!
    return runsCommands(phase) ? 'person' : 'asked'
  }
}
