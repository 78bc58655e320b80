// Why a run ended as it did, from what its daemon has reported to the hub: the way from the run to the phase that failed
// first, through the sub-runs between them.

import type { HubPhase, HubRun } from '../../../../wire/calls/hub-runs.ts'
import { GetHubPhases, GetHubRun } from '../../../../wire/calls/hub-runs.ts'
import type { Why } from '../../../../wire/records/run-records.ts'
import { hub } from './api.ts'

const FAILED = ['failed', 'crashed', 'cancelled']
/** Levels that are followed. Deeper ones are a link away. */
const DEEPEST = 30

const messageOf = (error: unknown): string => {
  const told = error as { message?: unknown } | null
  return typeof told?.message === 'string' ? told.message : ''
}

export async function explain(runId: string): Promise<Why> {
  const chain: Why['chain'] = []
  let run = await hub(GetHubRun, { run_id: runId })
  const { state } = run
  let leaf: HubPhase | undefined
  while (chain.length < DEEPEST) {
    const { phases } = await hub(GetHubPhases, { run_id: run.run_id })
    leaf = firstToFail(phases)
    chain.push(causeOf(run, leaf))
    const below = leaf?.sub_runs.find(each => FAILED.includes(each.state))
    if (!below) break
    run = await hub(GetHubRun, { run_id: below.run_id })
  }
  const lines = linesOf(state, run, leaf)
  return { run_id: runId, text: lines.join('\n'), lines, next: [], chain, written: [], cancelled: [] }
}

const firstToFail = (phases: HubPhase[]): HubPhase | undefined =>
  phases
    .filter(phase => phase.state === 'failed' || phase.state === 'awaiting_input')
    .sort((a, b) => (a.completed_at ?? Number.MAX_VALUE) - (b.completed_at ?? Number.MAX_VALUE))[0]

const causeOf = (run: HubRun, phase: HubPhase | undefined): Why['chain'][number] => {
  const message = messageOf(phase?.error ?? run.error)
  const error = message === '' ? null : { code: 'failed', message }
  const { run_id, run_name, team, state } = run
  return { run_id, run_name, team, state, phase: phase?.name ?? null, error }
}

function linesOf(state: string, run: HubRun, leaf: HubPhase | undefined): string[] {
  const place = leaf ? `Phase ${leaf.name} of ${run.run_name ?? run.team}` : (run.run_name ?? run.team)
  const why = messageOf(leaf?.error ?? run.error)
  switch (state) {
    case 'completed':
      return ['The run has completed.']
    case 'queued':
      return [run.reason ? `The run waits: ${run.reason}` : 'The run waits for a daemon: the queue says for which.']
    case 'running':
      return ['The run goes on.']
    case 'awaiting_input':
      return [`${place} waits for a person.`, ...(leaf?.reason ? [leaf.reason] : [])]
    case 'crashed':
      return [
        'The daemon of this run is silent. The run goes on when the daemon is back.',
        'Start that daemon again, or dispatch the run again to another one.',
      ]
    case 'cancelled':
      return ['The run was cancelled.', ...(run.reason ? [run.reason] : [])]
    default:
      return [`${place} failed${why ? `: ${why}` : '.'}`, ...(leaf ? [] : run.reason ? [run.reason] : [])]
  }
}
