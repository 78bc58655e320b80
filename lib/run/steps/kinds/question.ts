// Asks a person about a phase. There is one review for each phase and attempt, and its answer decides how the phase
// continues (review.ts).

import type { Phase } from '../../../team/team.ts'
import type { LiveRun, ReviewRow, RunError } from '../../core/core.ts'
import type { PhaseChange } from '../../store/store.ts'
import type { Work } from '../state/state.ts'
import { enter } from '../state/transition.ts'

export interface Question {
  kind: ReviewRow['kind']
  reason: string
  prompt: string
  /** Entries of which it is unknown whether they were written. */
  entries: readonly string[]
  /** The error of the phase, and the result that it keeps if the person lets it fail. */
  error?: RunError
  change?: PhaseChange
  /** Milliseconds until the question escalates. */
  timeout?: number
}

/** Opens the review of a phase. */
export function ask(work: Work, live: LiveRun, position: number, { change, ...asked }: Question): void {
  const question = work.world.mask(live.root, asked)
  enter(work, live, position, 'awaiting_input', question.reason)
  live.unready(position)
  live.maps.delete(position)
  live.tasks.delete(position)
  if (question.error) work.store.phases.keepResult(live.id, position, question.error, change ?? {})
  openReview(work, live, position, question)
  tellEscalation(work, live, position)
}

/** The entries of a phase after those that its attempt came to. */
export function entriesAfter(phase: Phase, entries: readonly string[]): string[] {
  if (phase.type !== 'standard') return []
  const names = [...phase.sources, ...phase.targets].map(({ name }) => name)
  const last = names.findLastIndex(name => entries.includes(name))
  return last < 0 ? [] : names.slice(last + 1)
}

/** Raises `on_escalate` once for a review: in its run, and in each run above. */
function tellEscalation({ notes }: Work, live: LiveRun, position: number): void {
  let asked: number | null = position
  for (let run: LiveRun | null = live; run; run = run.parent) {
    notes.event(run, 'on_escalate', asked)
    asked = run.row.parent_position
  }
}

export function openReview(work: Work, live: LiveRun, position: number, question: Question): void {
  const { kind, reason, prompt, entries, timeout } = question
  const at = work.world.now()
  const deadline = timeout === undefined ? null : at + timeout
  const { attempt } = live.phases[position]!
  work.store.reviews.open({ run_id: live.id, position, attempt, kind, reason, prompt, entries, deadline, at })
  if (deadline !== null) work.world.wakeAt(deadline)
  noteReview(work, live, position)
}

/** Closes the review of a phase without an answer, because its run ends for another reason. */
export function closeReview(work: Work, live: LiveRun, position: number): void {
  work.store.reviews.close(live.id, position, work.world.now())
  noteReview(work, live, position)
}

export function noteReview({ notes }: Work, live: LiveRun, position: number): void {
  notes.add({ run: live.row, team: live.team, position, kind: 'review' })
}
