// Standard phases: one agent, called for each entry or for the phase as a whole.

import type { StandardPhase } from '../../../team/team.ts'
import { completeTurn } from '../phase/turn-end.ts'
import { launch, stopAttempt } from './leaf.ts'
import type { PhaseKind } from './phase-kind.ts'

export const standard: PhaseKind<StandardPhase> = {
  start: launch,
  stop: stopAttempt,
  attempts: {
    completed: completeTurn,
    entriesAfter({ sources, targets }, entries) {
      const names = [...sources, ...targets].map(({ name }) => name)
      const last = names.findLastIndex(name => entries.includes(name))
      return last < 0 ? [] : names.slice(last + 1)
    },
  },
  subRuns: null,
}
