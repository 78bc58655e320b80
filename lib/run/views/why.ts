// Explains why a run ended as it did: the first leaf that failed, the causal chain from the run to it, which failures
// were tolerated, what was written outside, which phases did not run because of it, and which commands go on. Each fact
// is one line, whatever the errors contain. It needs only the rows.

import { formatDuration } from '../../duration.ts'
import { CadreError } from '../../error.ts'
import { oneLine } from '../../one-line.ts'
import type { Bundle, Phase } from '../../team/team.ts'
import type { Cause, Why } from '../../wire/run-records.ts'
import { type PhaseRow, parse, type RunError, type RunRow } from '../core/core.ts'
import { type Written, written } from '../steps/steps.ts'
import type { Store } from '../store/store.ts'
import { turnOfRun } from './waits.ts'

/** Maximum number of sentences for the chain. */
const CHAIN = 8

export type { Why }

/** `text` is missing, because it has the commands in the form in which the caller can paste them. */
export function why(store: Store, runId: string, bundleOf: (id: string) => Bundle): Omit<Why, 'text'> {
  const run = store.runs.get(runId)
  if (!run) throw new CadreError('not_found', `there is no run ${runId}`)
  const phasesOf = (row: RunRow) => bundleOf(row.bundle_id).team(row.team_key).phases
  const chain: Cause[] = []
  const cancelled: Why['cancelled'] = []
  const tolerated: string[] = []
  const undelivered: string[] = []
  const sentences: string[] = []
  for (let row: RunRow | null = run; row; ) {
    const phases = phasesOf(row)
    const rows = store.phases.of(row.id)
    const cause = causeOf(row, rows, phases)
    const step = { run_id: row.id, run_name: row.run_name, team: row.team, state: row.state }
    chain.push({ ...step, phase: cause?.phase.name ?? null, error: parse<RunError>(cause?.row.error ?? row.error) })
    sentences.push(sentence(row, cause, row.state === 'queued' ? turnOfRun(store, row.id) : null))
    for (const { position, state, reason, error, data } of rows) {
      const { name, type, onFailure } = phases[position]!
      if (state === 'failed' && onFailure === 'continue') {
        tolerated.push(`phase ${name} (${oneLine(parse<RunError>(error)?.message ?? `${reason}`)})`)
      }
      const items = state === 'completed' && type === 'map' ? parse<Items>(data) : null
      if (items && items.failed > 0) tolerated.push(`phase ${name} (${items.failed} of ${items.total} items)`)
      if (state !== 'cancelled' && !(state === 'skipped' && reason === 'upstream')) continue
      cancelled.push({ run_id: row.id, phase: name, state })
    }
    for (const { listener, event, state, error } of store.deliveries.of(row.id)) {
      if (state === 'failed' || state === 'unknown') undelivered.push(`${listener}, ${event} (${oneLine(`${error}`)})`)
    }
    row = cause && cause.phase.type !== 'standard' ? store.runs.decidingChild(row.id, cause.phase.index) : null
  }
  const writes = writtenBelow(store, run, phasesOf)
  const besides = [
    listText('Failed and passed over:', tolerated),
    listText('Could not be told, or may not have been:', undelivered),
  ]
  const parts = [...leafFirst(sentences), ...besides, writtenText(writes), cancelledText(cancelled)]
  const lines = parts.filter(Boolean).map(oneLine)
  return { run_id: runId, lines, next: nextCommands(store, run, chain, tolerated), chain, written: writes, cancelled }
}

interface Items {
  total: number
  failed: number
}

/** The commands to go on with, as their arguments. */
function nextCommands(store: Store, run: RunRow, chain: readonly Cause[], tolerated: readonly string[]): string[][] {
  const leaf = chain.at(-1)!
  const logs = ['logs', leaf.run_id, ...(leaf.phase === null ? [] : ['--phase', leaf.phase])]
  const resume = ['resume', run.root_id]
  switch (run.state) {
    case 'completed':
      return [['show', run.id], ...(tolerated.length > 0 ? [[...resume, '--failed']] : [])]
    case 'failed':
      return [logs, resume]
    case 'cancelled':
      return [resume]
    case 'awaiting_input': {
      const waiting = store.runs.get(leaf.run_id)!
      const asked = store.phases.of(waiting.id).find(({ state }) => state === 'awaiting_input')
      const review = asked && store.reviews.pending(waiting.id, asked.position)
      return [['reviews'], ...(review ? [['decide', review.id]] : [])]
    }
    case 'queued': {
      const place = store.keyPlaces.get(run.id)
      const holders = place && !place.holds ? store.keyPlaces.of(place.key, 1) : []
      return [...holders.slice(0, 1).map(holder => ['why', holder.run_id]), ['watch', run.root_id], ['cancel', run.id]]
    }
    default:
      return [['watch', run.root_id], logs]
  }
}

/** The last sentence is about the leaf, where the failure began. */
function leafFirst(sentences: readonly string[]): readonly string[] {
  return [...sentences.slice(-1), ...shortened(sentences.slice(0, -1))]
}

/** The outside writes that must not happen twice, of a run and of all runs below it. */
function writtenBelow(store: Store, run: RunRow, phasesOf: (row: RunRow) => readonly Phase[]): Written[] {
  return store.receipts
    .below(run.root_id, run.tree_key)
    .map(receipt => written(receipt, phasesOf(store.runs.get(receipt.run_id)!)[receipt.position]!.name))
}

interface Deciding {
  phase: Phase
  row: PhaseRow
}

/** The phase that decided the end of a run, or for which the run waits. */
function causeOf(run: RunRow, rows: PhaseRow[], phases: readonly Phase[]): Deciding | null {
  const first = (wanted: (row: PhaseRow, phase: Phase) => boolean): Deciding | null => {
    const row = rows.find(row => wanted(row, phases[row.position]!))
    return row ? { row, phase: phases[row.position]! } : null
  }
  if (run.state === 'failed') return first((row, phase) => row.state === 'failed' && phase.onFailure !== 'continue')
  if (run.state === 'awaiting_input') return first(row => row.state === 'awaiting_input')
  if (run.state === 'running') return first(row => row.state === 'running')
  return null
}

/** `turn` is what a run waits for that has not begun. */
function sentence(run: RunRow, cause: Deciding | null, turn: string | null): string {
  const name = `${run.call_depth === 0 ? 'Run' : 'Sub-run'} ${run.run_name ? `${oneLine(run.run_name)} (${run.id})` : run.id} of ${run.team}`
  const took = run.completed_at && run.started_at ? ` after ${formatDuration(run.completed_at - run.started_at)}` : ''
  if (run.state === 'completed') return `${name} completed${took}.`
  if (run.state === 'cancelled')
    return `${name} was cancelled${took}${run.reason && run.reason !== 'cancelled' ? ` (${run.reason})` : ''}${run.error === null ? '' : `: ${parse<RunError>(run.error)!.message}`}.`
  if (run.state === 'failed' && !cause) {
    const error = parse<RunError>(run.error)
    return `${name} failed${took}: ${error?.message ?? (run.reason === 'timeout' ? 'it took longer than its timeout' : run.reason)}.`
  }
  if (turn !== null) return `${name} waits for ${turn}.`
  if (!cause) return `${name} is ${run.state}.`
  const { phase, row } = cause
  const agent =
    phase.type === 'standard' ? ` (${phase.agent}${phase.action ? `.${phase.action}` : ''})` : ` (${phase.type})`
  if (run.state === 'awaiting_input') return `${name} waits for a person: phase ${phase.name}${agent}, ${row.reason}.`
  if (run.state === 'running') return `${name} is in phase ${phase.name}${agent}, attempt ${row.attempt}.`
  const error = parse<RunError>(row.error)
  // The error of a sub-run is part of the sentence about the sub-run, which follows.
  const below = error?.code === 'sub_run_failed' || error?.code === 'item_failed'
  const how = row.attempt > 1 ? ` on attempt ${row.attempt}` : ''
  if (below) return `${name} failed${took} because its phase ${phase.name}${agent} did.`
  const hint = error?.hint ? ` (${error.hint})` : ''
  return `${name} failed${took} because its phase ${phase.name}${agent} failed${how}: ${oneLine(error?.message ?? `${row.reason}`)}${hint}.`
}

/**
 * Shortens a long chain. Teams may nest a thousand levels deep, and the sentences in the middle repeat the same
 * failure.
 */
function shortened(sentences: readonly string[]): readonly string[] {
  if (sentences.length <= CHAIN) return sentences
  const left = sentences.length - CHAIN + 1
  return [
    ...sentences.slice(0, CHAIN - 3),
    `${left} more sub-runs below it failed the same way.`,
    ...sentences.slice(-2),
  ]
}

function listText(lead: string, items: readonly string[]): string {
  if (items.length === 0) return ''
  const more = items.length > 10 ? `; and ${items.length - 10} more` : ''
  return `${lead} ${items.slice(0, 10).join('; ')}${more}.`
}

function writtenText(written: Written[]): string {
  if (written.length === 0) return 'Nothing was written outside that could be written twice.'
  const shown = written.slice(0, 10).map(({ phase, entry, state, id, url }) => {
    const what = url ?? id
    return `${phase}${entry ? `/${entry}` : ''}${what ? ` (${what})` : ''}${state === 'done' ? '' : ', which may or may not have arrived'}`
  })
  const more = written.length > 10 ? `, and ${written.length - 10} more` : ''
  return `Written outside: ${shown.join('; ')}${more}.`
}

function cancelledText(cancelled: Why['cancelled']): string {
  if (cancelled.length === 0) return ''
  const names = [...new Set(cancelled.map(({ phase }) => phase))]
  return `Because of it ${names.length === 1 ? 'phase' : 'phases'} ${names.slice(0, 10).join(', ')}${names.length > 10 ? ' and more' : ''} did not complete.`
}
