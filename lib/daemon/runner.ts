// What commands do to runs: through the daemon that holds the home, or in this process, which holds the home meanwhile.

import type { Log } from '../log.ts'
import type { Decision } from '../run/reviews.ts'
import type { Field } from '../team/team.ts'
import { connect } from './client.ts'
import type { RunEvent } from './events.ts'
import type { RunRequest } from './start.ts'

export type Answer = Omit<Decision, 'by'>

export interface Runner {
  /** Checks the team and tells the inputs that it takes. */
  inputsOf(request: Pick<RunRequest, 'team' | 'path'>): Promise<readonly Field[]>
  start(request: RunRequest): Promise<{ run_id: string }>
  cancel(runId: string): Promise<void>
  /** Tells the run that goes on. */
  decide(reviewId: string, answer: Answer): Promise<{ run_id: string }>
  events(runId: string, signal: AbortSignal): AsyncGenerator<RunEvent>
  /** In this process: what still runs is interrupted, and continued by the next start. */
  close(): Promise<void>
  /** False: what runs stops with this process. */
  readonly remote: boolean
}

export async function openRunner(home: string, log: Log): Promise<Runner> {
  const client = connect(home)
  if (!client) return inProcess(home, log)
  return {
    remote: true,
    inputsOf: async request => (await client.call<{ inputs: Field[] }>('/v1/teams/validate', request)).inputs,
    start: request => client.call('/v1/runs/start', request),
    cancel: async run_id => void (await client.call('/v1/runs/cancel', { run_id })),
    decide: (review_id, answer) => client.call('/v1/reviews/decide', { review_id, ...answer }),
    events: (runId, signal) => client.events(runId, signal),
    close: async () => {},
  }
}

async function inProcess(home: string, log: Log): Promise<Runner> {
  const [{ Daemon }, { loadTeam, startRun }, { runEvents }] = await Promise.all([
    import('./daemon.ts'),
    import('./start.ts'),
    import('./events.ts'),
  ])
  const daemon = await Daemon.open({ home, log })
  const { engine } = daemon
  await engine.recover()
  return {
    remote: false,
    async inputsOf(request) {
      const bundle = await loadTeam(daemon, request)
      return bundle.team(bundle.root).inputs
    },
    start: request => startRun(daemon, request, { local: true }),
    cancel: async runId => void (await engine.cancel(runId)),
    async decide(reviewId, answer) {
      const { answerReview, findReview } = await import('./reviews.ts')
      const { userInfo } = await import('node:os')
      const by = `local:${userInfo().username}`
      return answerReview(engine, findReview(engine, reviewId), { ...answer, by })
    },
    events: (runId, signal) => runEvents(engine, runId, signal),
    close: () => daemon.close(),
  }
}
