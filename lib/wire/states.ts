// The states of runs and phases, as rows, changes and replies name them, and how deep runs nest. Nothing else is
// imported here, so that the engine can take them without loading schemas.

export const RUN_STATES = ['queued', 'running', 'awaiting_input', 'completed', 'failed', 'cancelled'] as const
export type RunState = (typeof RUN_STATES)[number]

export const PHASE_STATES = [
  'pending',
  'running',
  'awaiting_input',
  'completed',
  'failed',
  'skipped',
  'cancelled',
] as const
export type PhaseState = (typeof PHASE_STATES)[number]

/** The hub also shows `crashed`: the daemon of a run that has not ended is silent. This state is not final. */
export const HUB_RUN_STATES = [...RUN_STATES, 'crashed'] as const

/** The daemon also shows `interrupted`: the run has not ended, and no process continues it. */
export const DAEMON_RUN_STATES = [...RUN_STATES, 'interrupted'] as const

/** The states in which a daemon or a hub shows a run. */
export const SHOWN_RUN_STATES = [...DAEMON_RUN_STATES, 'crashed'] as const

/** States that a run leaves only through a resume. */
export const ENDED_RUN_STATES: readonly string[] = ['completed', 'failed', 'cancelled'] satisfies RunState[]

const RESULTS: Readonly<Record<string, string>> = {
  completed: 'success',
  failed: 'failure',
  cancelled: 'cancellation',
  skipped: 'skip',
}

/** How a run or a phase ended, in the words of OpenTelemetry's conventions for CI/CD. */
export function resultOf({ state, reason }: { state: string; reason?: string | null }): string {
  return reason === 'timeout' ? 'timeout' : (RESULTS[state] ?? state)
}

export const PHASE_TYPES = ['standard', 'gate', 'team', 'map'] as const

/** The maximum number of levels of sub-runs below a top run, which is level 0. */
export const MAX_DEPTH = 1_000

/** Characters of a tree key for each level. */
export const TREE_KEY_STEP = 9
