// Asks a person about a phase, or whether a run may begin. There is one review for each phase and attempt, and its answer
// decides how the phase or the run continues (review.ts).

import type { FileRecord } from '../../../agent/agent-context.ts'
import { type Masked, type MaskedText, maskedJson } from '../../../secrets/masked.ts'
import type { ReviewNext, ReviewShown } from '../../../wire/records/review-records.ts'
import { type LiveRun, type ReviewRow, type RunError, START } from '../../core/core.ts'
import type { PhaseChange } from '../../store/store.ts'
import type { EngineState } from '../state/state.ts'
import { setPhaseState } from './transition.ts'

export interface Question {
  kind: ReviewRow['kind']
  reason: string
  prompt: string
  /** Entries of which it is unknown whether they were written. */
  entries: readonly string[]
  /** The error of the phase, and the result that it keeps if the person lets it fail. */
  error?: RunError
  change?: PhaseChange
  /** What the commands of a gate printed and wrote, and the files, which are its result from now on. */
  shown?: ReviewShown
  files?: readonly FileRecord[]
  /** Milliseconds until the question escalates. */
  timeout?: number
}

/** Opens the review of a phase. */
export function askPerson(
  engine: EngineState,
  live: LiveRun,
  position: number,
  { change, files = [], ...asked }: Question,
): void {
  const question = engine.world.mask(live.root, asked)
  setPhaseState(engine, live, position, 'awaiting_input', question.reason)
  live.dropReady(position)
  live.maps.delete(position)
  live.tasks.delete(position)
  if (files.length > 0) engine.store.phases.keepFiles(live.id, position, files)
  if (question.error) engine.store.phases.keepResult(live.id, position, question.error, change ?? {})
  openReview(engine, live, position, question)
  noteEscalation(engine, live, position)
}

/** Raises `on_escalate` once for a review: in its run, and in each run above. */
export function noteEscalation({ notes }: EngineState, live: LiveRun, position: number | null): void {
  let asked = position
  for (let run: LiveRun | null = live; run; run = run.parent) {
    notes.event(run, 'on_escalate', asked, position === null ? undefined : { live, position })
    asked = run.row.parent_position
  }
}

/** Opens the review of a phase, or of the whole run at `START`. */
export function openReview(
  engine: EngineState,
  live: LiveRun,
  position: number,
  question: Omit<Question, 'prompt' | 'error' | 'shown'> & { prompt: MaskedText; shown?: Masked<ReviewShown> },
): void {
  const { kind, reason, prompt, entries, timeout } = question
  const shown = question.shown ? maskedJson(question.shown) : null
  const at = engine.world.now()
  const deadline = timeout === undefined ? null : engine.world.lived() + timeout
  const { attempt } = position === START ? live.row : live.phases[position]!
  engine.store.reviews.open({ run_id: live.id, position, attempt, kind, reason, prompt, entries, shown, deadline, at })
  if (deadline !== null) engine.world.wakeAt(deadline)
  engine.notes.after({ kind: 'next', runId: live.id, position })
  noteReview(engine, live, position)
}

/** Closes the review of a phase without an answer, because its run ends for another reason. */
export function closeReview(engine: EngineState, live: LiveRun, position: number): void {
  engine.store.reviews.close(live.id, position, engine.world.now())
  noteReview(engine, live, position)
}

/** Records what the approval of a review leads to. */
export function reviewLeadsTo(engine: EngineState, review: ReviewRow, next: ReviewNext): void {
  const live = engine.lives.get(review.run_id)
  if (!live || !engine.store.reviews.tellNext(review, maskedJson(engine.world.mask(live.root, next)))) return
  noteReview(engine, live, review.position)
}

export function noteReview({ notes }: EngineState, live: LiveRun, position: number): void {
  notes.add({ run: live.row, team: live.team, position, kind: 'review' })
}
