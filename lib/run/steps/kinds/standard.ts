// Standard phases: one agent, called for each entry or for the phase as a whole.

import type { StandardPhase } from '../../../team/team.ts'
import { endPhase } from '../phase/phase-end.ts'
import { launch, stopAttempt } from './leaf.ts'
import type { PhaseKind } from './phase-kind.ts'

export const standard: PhaseKind<StandardPhase> = {
  start: launch,
  stop: stopAttempt,
  attempts: {
    completed: (engine, live, { index }, result) => endPhase(engine, live, index, 'completed', result),
    entriesAfter({ sources, targets }, entries) {
      const names = [...sources, ...targets].map(({ name }) => name)
      const last = names.findLastIndex(name => entries.includes(name))
      return last < 0 ? [] : names.slice(last + 1)
    },
  },
  subRuns: null,
}
