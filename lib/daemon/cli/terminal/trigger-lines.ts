// How triggers and firings look in a terminal.

import { formatDuration } from '../../../duration.ts'
import { line, type Paint, type Printable, type Shown } from '../../../text/printable.ts'
import type { FiringRecord, TriggerRecord } from '../../../wire/records/triggers.ts'
import { clock } from './table.ts'

const COLOURS = {
  active: 'green',
  paused: 'yellow',
  disabled: 'dim',
  broken: 'red',
  waiting: 'cyan',
  started: 'green',
  skipped: 'yellow',
  refused: 'red',
} as const

export const triggerWord = (paint: Paint, state: TriggerRecord['state'] | FiringRecord['state']): Printable =>
  paint[COLOURS[state]](state)

/** A slot in its own zone with the offset, and in UTC: `2026-11-23T06:00+01:00  2026-11-23T05:00Z`. */
export const slotCells = ({ at, local }: TriggerRecord['next'][number]): Shown[] => [local, utc(at)]

const utc = (at: number): string => `${new Date(at).toISOString().slice(0, 16)}Z`

/** What became of an occasion, in columns. */
export function firingCells(paint: Paint, firing: FiringRecord): Shown[] {
  const { at, late_ms, manual, run_id } = firing
  const { state } = firing
  const late = state === 'started' && late_ms !== null && late_ms >= 1_000 ? `${formatDuration(late_ms)} late` : ''
  const by = manual ? `by ${manual.by}` : ''
  return [clock(at), firingWord(paint, firing), [late, by].filter(Boolean).join(', '), run_id ?? whyNot(firing)]
}

/** The state of a firing, with what became of its run where that is no success. */
export function firingWord(paint: Paint, { state, run_state }: FiringRecord): Printable {
  if (run_state !== 'failed' && run_state !== 'cancelled') return triggerWord(paint, state)
  return line`${paint.red(state)}, ${paint.red(`run ${run_state}`)}`
}

/** Why a firing has started nothing. */
export function whyNot({ reason, detail, count, until }: FiringRecord): string {
  const span = count > 1 && until !== null ? ` (${count} slots until ${clock(until)})` : ''
  return [reason, detail].filter(Boolean).join(': ') + span
}
