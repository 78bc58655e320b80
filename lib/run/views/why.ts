// Why a run ended as it did, from the rows of this machine. lib/wire/why/explain.ts puts it into words.

import { CadreError } from '../../error.ts'
import { type Bundle, type Phase, readersOf, type Team } from '../../team/team.ts'
import { oneLine } from '../../text/one-line.ts'
import type { Explanation, Waiting } from '../../wire/records/run-records.ts'
import { approvalText, isCertain, nameOfWrite, waitText } from '../../wire/records/words.ts'
import { explain } from '../../wire/why/explain.ts'
import { NOTHING_BELOW, type PhaseFacts, type RunFacts } from '../../wire/why/facts.ts'
import {
  type PhaseRow,
  parse,
  phaseEnded,
  type ReceiptRow,
  type RunError,
  type RunRow,
  runEnded,
  START,
  startReviewers,
} from '../core/core.ts'
import { type Written, written } from '../steps/steps.ts'
import type { EntryId, Store, Unasked } from '../store/store.ts'
import { causesOf } from './failed-items.ts'
import { failuresBelow } from './failures-below.ts'
import { turnOfRun, turnText } from './waits.ts'

/** What each phase of a run waits for. */
type Waits = readonly (Waiting | null)[]

/** A run on the way to the leaf that decided its end, and the run below it on that way. */
export interface Step {
  row: RunRow
  facts: RunFacts
  below: string | null
}

interface Question {
  /** What each phase of a run waits for. It returns nothing where no process executes the run. */
  waitsOf?: (runId: string) => Waits
  /** What the end of a run waits for whose phases have all ended. */
  endWaitOf?: (runId: string) => string | null
  /** What other systems were just asked about in vain. */
  unasked?: readonly Unasked[] | null
  /** Steps that were taken for other runs of the same tree. */
  steps?: Map<string, Step>
  /** Whether what other systems said of writes stays on this machine. */
  isBare?: boolean
}

/** Throws `not_found`. */
export function why(
  store: Store,
  runId: string,
  bundleOf: (id: string) => Bundle,
  { waitsOf = () => [], endWaitOf = () => null, unasked = null, steps = new Map(), isBare = false }: Question = {},
): Explanation {
  const teamOf = (row: RunRow) => bundleOf(row.bundle_id).team(row.team_key)
  const phasesOf = (row: RunRow) => teamOf(row).phases
  const way: Step[] = []
  for (let id: string | null = runId; id !== null; ) {
    const step: Step = steps.get(id) ?? stepOf(store, id, phasesOf, waitsOf, endWaitOf)
    steps.set(id, step)
    way.push(step)
    id = step.below
  }
  const run = way[0]!.row
  const leaf = way.at(-1)!.row
  const receipts = store.receipts.below(run.root_id, run.tree_key)
  const writes = written(store, receipts, phasesOf)
  return explain({
    root_run_id: run.root_id,
    chain: way.map(({ facts }) => (isBare ? withoutReplies(facts) : facts)) as [RunFacts, ...RunFacts[]],
    written: isBare ? writes.map(bare) : writes,
    unasked: unasked === null ? [] : unaskedOf(store, receipts, writes, unasked),
    mayAsk:
      (runEnded(run.state) || run.state === 'awaiting_input') &&
      receipts.some((each, at) => !isCertain(writes[at]!) && store.looks.has(placeOf(each))),
    review: run.state === 'awaiting_input' ? reviewOf(store, leaf) : null,
    holder: run.state === 'queued' ? holderOf(store, run) : null,
    unfilled: unfilledIn(store, leaf, teamOf(leaf)),
    below: runEnded(run.state)
      ? failuresBelow(store, run, bundleOf(run.bundle_id), new Set(way.map(({ row }) => row.id)))
      : NOTHING_BELOW,
    began: true,
  })
}

/**
 * The explanation that is reported to a hub. Null for a run that goes on or waits for nothing, and for one that completed
 * and of which there is no more to say.
 */
export function reportedWhy(
  store: Store,
  run: Pick<RunRow, 'id' | 'state'>,
  bundleOf: (id: string) => Bundle,
  question: Pick<Question, 'steps' | 'isBare'>,
): Explanation | null {
  if (run.state === 'running' || (run.state === 'queued' && turnOfRun(store, run.id) === null)) return null
  const found = why(store, run.id, bundleOf, question)
  const isPlain = found.lines.length <= 2 && found.written.length === 0 && found.next.length === 1
  return run.state === 'completed' && isPlain ? null : found
}

function stepOf(
  store: Store,
  runId: string,
  phasesOf: (row: RunRow) => readonly Phase[],
  waitsOf: (runId: string) => Waits,
  endWaitOf: (runId: string) => string | null,
): Step {
  const row = store.runs.get(runId)
  if (!row) throw new CadreError('not_found', `there is no run ${runId}`)
  const phases = phasesOf(row)
  const rows = store.phases.of(row.id)
  const waits = row.state === 'running' ? waitsOf(row.id) : []
  const facts = rows.map(each => factsOf(store, each, phases[each.position]!, waits[each.position] ?? null))
  const cause = causeOf(row, rows, phases, waits)
  const phase = cause && phases[cause.position]!
  const below = phase && phase.type !== 'standard' ? store.runs.decidingChild(row.id, phase.index) : null
  const turn = waitOfRun(store, row, endWaitOf)
  return { row, facts: runFacts(store, row, facts, cause && facts[cause.position]!, turn), below: below?.id ?? null }
}

/** What a run itself waits for: its key, an approval, or what its end needs. */
function waitOfRun(store: Store, row: RunRow, endWaitOf: (runId: string) => string | null): string | null {
  if (row.state === 'queued') return turnOfRun(store, row.id)
  if (row.state === 'running') return endWaitOf(row.id)
  const asksStart = row.state === 'awaiting_input' && store.reviews.pending(row.id, START) !== null
  return asksStart ? approvalText(startReviewers(row)) : null
}

/** Without what other systems answered to messages. */
const withoutReplies = (facts: RunFacts): RunFacts => ({
  ...facts,
  deliveries: facts.deliveries.map(delivery => ({ ...delivery, error: null })),
})

const bare = ({ copies, request: _, ...write }: Written): Written => ({
  ...write,
  id: null,
  url: null,
  ...(copies && { copies: copies.map(() => ({ id: null, url: null })) }),
})

function runFacts(
  store: Store,
  row: RunRow,
  phases: readonly PhaseFacts[],
  cause: PhaseFacts | null,
  turn: string | null,
): RunFacts {
  const { id, run_name, team, environment, call_depth, state, reason, error } = row
  const deliveries = store.deliveries
    .of(id)
    .map(({ listener, event, state, error }) => ({ phase: listener, event, state, error }))
  const place = { run_id: id, run_name, team, environment, call_depth, state, reason }
  const { started_at, completed_at, lived_ms } = row
  return { ...place, started_at, completed_at, lived_ms, error: parse(error), phases, cause, turn, deliveries }
}

function factsOf(store: Store, row: PhaseRow, phase: Phase, waiting: Waiting | null): PhaseFacts {
  const { state, reason, attempt, error } = row
  const { name, type } = phase
  const isLeaf = phase.type === 'standard'
  return {
    ...{ name, type, state, reason, attempt },
    agent: isLeaf ? phase.agent : null,
    action: (isLeaf && phase.action) || null,
    error: parse(error),
    tolerated: phase.onFailure === 'continue',
    cleanup: phase.always,
    waiting: waiting && waitText(waiting),
    turn: turnOf(store, row, phase),
    items: type === 'map' ? failedItemsOf(store, row) : null,
  }
}

/** The turn in which a phase is, or the last that it had. */
function turnOf({ turns }: Store, { run_id, position }: PhaseRow, { repeat }: Phase): string | null {
  const last = repeat ? turns.last(run_id, position) : null
  return last && turnText(last.turn, repeat!.most)
}

function failedItemsOf(store: Store, { run_id, position, data }: PhaseRow): PhaseFacts['items'] {
  const counts = parse<{ total: number; failed: number }>(data)
  if (!counts || counts.failed === 0) return null
  return { total: counts.total, failed: counts.failed, causes: causesOf(store, run_id, position) }
}

function reviewOf(store: Store, run: RunRow): string | null {
  const start = store.reviews.pending(run.id, START)
  if (start) return start.id
  const asked = store.phases.of(run.id).find(({ state }) => state === 'awaiting_input')
  return (asked && store.reviews.pending(run.id, asked.position)?.id) ?? null
}

function holderOf(store: Store, run: RunRow): string | null {
  const place = store.concurrencyKeys.get(run.id)
  const holders = place && !place.holds ? store.concurrencyKeys.of(place.key, 1) : []
  return holders[0]?.run_id ?? null
}

const placeOf = ({ run_id, position, entry }: ReceiptRow): EntryId => ({ runId: run_id, position, entry })

/** What is not certain, and was not asked for although a person wanted to know, each with the reason. */
function unaskedOf(
  store: Store,
  receipts: readonly ReceiptRow[],
  writes: readonly Written[],
  unasked: readonly Unasked[],
): string[] {
  return receipts.flatMap((receipt, at) => {
    const place = placeOf(receipt)
    const failed = unasked.find(each => Bun.deepEquals(each, { ...place, reason: each.reason }))
    const known = failed || isCertain(writes[at]!) || receipt.state === 'done' || store.looks.has(place)
    const reason = failed?.reason ?? (known ? null : 'only a resume asks, before it sends anything again')
    return reason === null ? [] : [`${nameOfWrite(writes[at]!)} (${oneLine(reason)})`]
  })
}

/** A phase that a person completed, and whose result is read where the run failed: by a phase, or by an output. */
function unfilledIn(store: Store, run: RunRow, team: Team): string | null {
  if (run.state !== 'failed' && run.reason !== 'outputs') return null
  const rows = store.phases.of(run.id)
  const cause = causeOf(run, rows, team.phases)
  if (cause ? parse<RunError>(cause.error)?.code !== 'invalid_request' : run.reason !== 'outputs') return null
  const unfilled = rows.find(({ position, attempt, state }) => {
    const { outputs, phases } = readersOf(team, team.phases[position]!.name)
    const isRead = cause ? phases.includes(team.phases[cause.position]!.name) : outputs.length > 0
    const asked = () => store.reviews.of(run.id, position)
    return (
      state === 'completed' &&
      isRead &&
      (asked().some(each => each.attempt === attempt && each.decision === 'complete') ||
        store.receipts.hasVouched(run.id, position))
    )
  })
  return unfilled ? team.phases[unfilled.position]!.name : null
}

/** The phase that failed first and so decided the end of a run, or for which the run waits. */
function causeOf(run: RunRow, rows: readonly PhaseRow[], phases: readonly Phase[], waits: Waits = []): PhaseRow | null {
  if (run.state === 'failed') {
    const failed = rows.filter(row => row.state === 'failed' && phases[row.position]!.onFailure !== 'continue')
    return failed.toSorted((a, b) => a.completed_at! - b.completed_at!)[0] ?? null
  }
  if (run.state !== 'awaiting_input' && run.state !== 'running') return null
  return rows.find(row => row.state === run.state) ?? heldUp(rows, phases, waits)
}

/** In a run of which no phase is at work: a phase that waits, and not only for other phases of the run. */
function heldUp(rows: readonly PhaseRow[], phases: readonly Phase[], waits: Waits): PhaseRow | null {
  const mayBegin = (row: PhaseRow) => phases[row.position]!.dependsOn.every(each => phaseEnded(rows[each]!.state))
  return rows.find(row => row.state === 'pending' && (waits[row.position] ?? null) !== null && mayBegin(row)) ?? null
}
