// What commands do to runs: through the daemon that holds the home, or in this process, which holds the home meanwhile.

import type { Log } from '../log.ts'
import type { Decision, ResumePlan, ReviewRecord } from '../run/engine.ts'
import type { Field } from '../team/team.ts'
import { connect } from './client.ts'
import type { RunEvent } from './events.ts'
import type { RunRequest } from './start.ts'

type Answer = Omit<Decision, 'by'>

type Which = Pick<RunRequest, 'team' | 'path'>

/** A team that was read and found valid. */
interface Prepared {
  inputs: readonly Field[]
  start(request: Omit<RunRequest, keyof Which>): Promise<{ run_id: string }>
}

export interface Runner {
  /** Throws `invalid_request` with every problem of the team. */
  prepare(which: Which): Promise<Prepared>
  cancel(runId: string): Promise<void>
  /** Tells what runs again, and what was written outside and is not sent again. */
  resume(runId: string, fromPhase: string | null): Promise<Pick<ResumePlan, 'repeats' | 'written'>>
  /** Tells the run that goes on. */
  decide(reviewId: string, answer: Answer): Promise<{ run_id: string }>
  events(runId: string, signal: AbortSignal): AsyncGenerator<RunEvent>
  /** Reviews that nobody has answered, newest first, at most 100. */
  pending(): Promise<ReviewRecord[]>
  /** In this process: what still runs is interrupted, and continued by the next start. */
  close(): Promise<void>
  /** Waits until those who are to hear of what happened so far have been told; a daemon tells them by itself. */
  told(): Promise<void>
  /** False: what runs stops with this process. */
  readonly remote: boolean
}

const PENDING = { state: 'pending', limit: 100, offset: 0 }

export async function openRunner(home: string, log: Log): Promise<Runner> {
  const client = connect(home)
  if (!client) return inProcess(home, log)
  return {
    remote: true,
    async prepare(which) {
      const { inputs } = await client.call<{ inputs: Field[] }>('/v1/teams/validate', which)
      return { inputs, start: request => client.call('/v1/runs/start', { ...which, ...request }) }
    },
    resume: (run_id, from) => client.call('/v1/runs/resume', { run_id, ...(from !== null && { from_phase: from }) }),
    cancel: async run_id => void (await client.call('/v1/runs/cancel', { run_id })),
    decide: (review_id, answer) => client.call('/v1/reviews/decide', { review_id, ...answer }),
    events: (runId, signal) => client.events(runId, signal),
    pending: async () => (await client.call<{ reviews: ReviewRecord[] }>('/v1/reviews/list', PENDING)).reviews,
    close: async () => {},
    told: async () => {},
  }
}

async function inProcess(home: string, log: Log): Promise<Runner> {
  const [{ Daemon }, { loadTeam, startBundle }, { runEvents }] = await Promise.all([
    import('./daemon.ts'),
    import('./start.ts'),
    import('./events.ts'),
  ])
  const daemon = await Daemon.open({ home, log })
  const { engine } = daemon
  await engine.recover()
  return {
    remote: false,
    async prepare(which) {
      const bundle = await loadTeam(daemon, which)
      return {
        inputs: bundle.team(bundle.root).inputs,
        start: request => startBundle(daemon, bundle, { ...which, ...request }, { local: true }),
      }
    },
    async resume(runId, from) {
      const plan = engine.planResume(runId, { from })
      await engine.resume(runId, { from })
      return plan
    },
    cancel: async runId => void (await engine.cancel(runId)),
    async decide(reviewId, answer) {
      const [{ answerReview, findReview }, { localName }] = await Promise.all([
        import('./reviews.ts'),
        import('./access.ts'),
      ])
      return answerReview(engine, findReview(engine, reviewId), { ...answer, by: localName() })
    },
    events: (runId, signal) => runEvents(engine, runId, signal),
    async pending() {
      const { listReviewRecords } = await import('./reviews.ts')
      return listReviewRecords(engine, PENDING).reviews
    },
    close: () => daemon.close(),
    told: () => engine.told(),
  }
}
